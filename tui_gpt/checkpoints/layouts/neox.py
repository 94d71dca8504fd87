"""Hugging Face folders of GPT-NeoX: Pythia.

q, k and v are one tensor (3C, C) whose rows go by head, then q k v, then the head's features.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from tui_gpt.checkpoints.headers import TensorEntry
from tui_gpt.checkpoints.layouts.hf_config import ConfigReader, architecture_of
from tui_gpt.checkpoints.layouts.hf_rotation import read_rotation, rope_parameters
from tui_gpt.checkpoints.layouts.layout import (
    Arrangement,
    Entries,
    Layout,
    LayoutConfig,
    Location,
    Names,
    NotAWeight,
    Wanted,
    owned_parameters,
)
from tui_gpt.checkpoints.names import CONFIG
from tui_gpt.config import GPTConfig

if TYPE_CHECKING:
    import torch

_NAMES = Names(
    {"wte": "embed_in", "ln_f": "final_layer_norm", "lm_head": "embed_out"},
    "layers.{}.",
    {
        "ln_1": "input_layernorm",
        "attn.q": "attention.query_key_value",
        "attn.c_proj": "attention.dense",
        "ln_2": "post_attention_layernorm",
        "mlp.c_fc": "mlp.dense_h_to_4h",
        "mlp.c_proj": "mlp.dense_4h_to_h",
    },
)

_FIXED: Mapping[str, tuple[Any, ...]] = {"attention_bias": (True, None)}

_BUFFER = re.compile(r"layers\.\d+\.attention\.(bias|masked_bias|rotary_emb\.inv_freq)")
_BUFFERS: Mapping[str, NotAWeight] = {
    "bias": "mask",
    "masked_bias": "masked_bias",
    "rotary_emb.inv_freq": "frequencies",
}

_FRACTION = 0.25


class NeoXLayout(Layout):
    """The family of Pythia: parallel blocks, part of each head rotated."""

    title = "GPT-NeoX"
    architectures = ("gpt_neox",)
    prefixes = ("_orig_mod.", "module.", "gpt_neox.")

    def recognises(self, found: Location) -> bool:
        """`model_type` tells."""
        return found.config is not None and architecture_of(found.config) == "gpt_neox"

    def read_config(self, found: Location, entries: Entries) -> LayoutConfig:
        """Read the common names and NeoX' own; see `Layout.read_config`."""
        assert found.config is not None
        read = ConfigReader(found.folder / CONFIG, found.config, "GPT-NeoX")
        read.fixed(_FIXED)
        theta, scaling = read_rotation(read)
        base = read.given("rotary_emb_base")
        if base is not None and "rope_theta" not in rope_parameters(read):
            theta = base
            read.remarks = [remark for remark in read.remarks if "rope_theta" not in remark]
        fraction = rope_parameters(read).get("partial_rotary_factor", read.given("rotary_pct"))
        config = read.config(
            n_layer=read.size("num_hidden_layers"),
            n_head=read.size("num_attention_heads"),
            n_embd=read.size("hidden_size"),
            n_inner=read.size("intermediate_size"),
            block_size=read.size("max_position_embeddings"),
            vocab_size=read.size("vocab_size"),
            positions="rotary",
            rope_theta=theta,
            rope_scaling=scaling,
            rotary_fraction=_FRACTION if fraction is None else fraction,
            activation=read.activation("hidden_act", "gelu"),
            parallel=read.switch("use_parallel_residual", True),
            layer_norm_epsilon=read.number("layer_norm_eps", 1e-5),
            tied=read.switch("tie_word_embeddings", False),
        )
        return LayoutConfig(config, *read.finish())

    def wanted(self, config: GPTConfig) -> Iterator[Wanted]:
        """One tensor holds q, k and v; see `Layout.wanted`."""
        by_head = _by_head(config.n_head)
        for parameter in owned_parameters(config):
            module, _, kind = parameter.name.rpartition(".")
            if module.endswith((".attn.k", ".attn.v")):
                continue
            name = self.file_name(parameter.name)
            if not module.endswith(".attn.q"):
                yield Wanted(name, parameter.shape, (parameter.name,))
                continue
            attention = module.removesuffix(".q")
            parts = tuple(f"{attention}.{part}.{kind}" for part in "qkv")
            shape = (3 * parameter.shape[0], *parameter.shape[1:])
            yield Wanted(name, shape, parts, by_head)

    def not_a_weight(self, name: str, entry: TensorEntry, config: GPTConfig) -> NotAWeight | None:
        """Old files keep mask and frequencies beside the weights; see `Layout.not_a_weight`."""
        found = _BUFFER.fullmatch(name)
        return None if found is None else _BUFFERS[found[1]]

    def file_name(self, parameter: str) -> str:
        """Translate; see `Layout.file_name`."""
        return _NAMES.of(parameter)


def _by_head(n_head: int) -> Arrangement:
    """Say how NeoX keeps several matrices in one: rows by head, then by matrix."""

    def split(tensor: torch.Tensor, count: int) -> tuple[torch.Tensor, ...]:
        heads = tensor.reshape(n_head, count, -1, *tensor.shape[1:])  # (H, 3, D, …)
        return tuple(part.flatten(0, 1) for part in heads.unbind(1))

    return Arrangement(split, note="rows by head, then q k v")


NEOX = NeoXLayout()
