"""Hugging Face folders of Llama and what is built like it: SmolLM2, Mistral, Qwen 2 and 3.

Every matrix is (outputs, inputs), every parameter a tensor of its own; only the names differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from tui_gpt.checkpoints.headers import TensorEntry
from tui_gpt.checkpoints.layouts.hf_config import ConfigReader, architecture_of
from tui_gpt.checkpoints.layouts.hf_rotation import read_rotation
from tui_gpt.checkpoints.layouts.layout import (
    HEAD,
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

_NAMES = Names(
    {"wte": "embed_tokens", "ln_f": "norm", "lm_head": "lm_head"},
    "layers.{}.",
    {
        "ln_1": "input_layernorm",
        "attn.q": "self_attn.q_proj",
        "attn.k": "self_attn.k_proj",
        "attn.v": "self_attn.v_proj",
        "attn.q_norm": "self_attn.q_norm",
        "attn.k_norm": "self_attn.k_norm",
        "attn.c_proj": "self_attn.o_proj",
        "ln_2": "post_attention_layernorm",
        "mlp.c_fc": "mlp.gate_proj",
        "mlp.c_up": "mlp.up_proj",
        "mlp.c_proj": "mlp.down_proj",
    },
)

_FIXED: Mapping[str, tuple[Any, ...]] = {
    "use_sliding_window": (False, None),
    "pretraining_tp": (1, None),
    "partial_rotary_factor": (1.0, None),
}


class LlamaLayout(Layout):
    """One layout for all that differ by switches of the config alone."""

    title = "this family"
    architectures = ("llama", "mistral", "qwen2", "qwen3")
    prefixes = ("_orig_mod.", "module.", "model.")

    def recognises(self, found: Location) -> bool:
        """`model_type` tells."""
        return found.config is not None and architecture_of(found.config) in self.architectures

    def read_config(self, found: Location, entries: Entries) -> LayoutConfig:
        """Read the common names, and what one of the families adds; see `Layout.read_config`."""
        assert found.config is not None
        family = architecture_of(found.config)
        read = ConfigReader(found.folder / CONFIG, found.config, family.capitalize())
        n_head, width = read.size("num_attention_heads"), read.size("hidden_size")
        read.fixed(_FIXED)
        theta, scaling = read_rotation(read)
        layers = read.size("num_hidden_layers")
        config = read.config(
            n_layer=layers,
            n_head=n_head,
            n_kv_head=_unless(n_head, read.optional_size("num_key_value_heads")),
            n_embd=width,
            own_head_dim=_unless(width // max(1, n_head), read.optional_size("head_dim")),
            n_inner=read.size("intermediate_size"),
            block_size=read.size("max_position_embeddings"),
            vocab_size=read.size("vocab_size"),
            positions="rotary",
            rope_theta=theta,
            rope_scaling=scaling,
            activation=read.activation("hidden_act", "silu"),
            gated=True,
            norm_type="rmsnorm",
            layer_norm_epsilon=read.number("rms_norm_eps", 1e-6),
            tied=read.switch("tie_word_embeddings", self.file_name(HEAD) not in entries),
            qk_norm=family == "qwen3",
            **_biases(read, family),
        )
        if family == "mistral":
            config = replace(config, window=read.optional_size("sliding_window"))
        _check_layer_types(read, layers)
        return LayoutConfig(config, *read.finish())

    def wanted(self, config: GPTConfig) -> Iterator[Wanted]:
        """Every parameter under the family's name; see `Layout.wanted`."""
        for parameter in owned_parameters(config):
            name = self.file_name(parameter.name)
            yield Wanted(name, parameter.shape, (parameter.name,))

    def not_a_weight(self, name: str, entry: TensorEntry, config: GPTConfig) -> NotAWeight | None:
        """Old files keep the frequencies of the rotation; see `Layout.not_a_weight`."""
        return "frequencies" if name.endswith(".rotary_emb.inv_freq") else None

    def file_name(self, parameter: str) -> str:
        """Translate; see `Layout.file_name`."""
        return _NAMES.of(parameter)


def _biases(read: ConfigReader, family: str) -> dict[str, bool]:
    """Say which linear layers have a bias: all, q k v alone, or none."""
    attention = bool(read.switch("attention_bias", False))
    if family == "qwen2":
        return {"bias": False, "qkv_bias": True}
    feed_forward = bool(read.switch("mlp_bias", False))
    if attention != feed_forward:
        raise read.damaged(
            f"attention_bias is {attention} and mlp_bias {feed_forward}; "
            "one without the other is not computed here"
        )
    return {"bias": attention, "qkv_bias": attention}


def _check_layer_types(read: ConfigReader, n_layer: int) -> None:
    """Refuse a model whose blocks are not all alike."""
    read.given("max_window_layers")  # speaks of a window that is not used
    if read.switch("use_sliding_window", False) is False and "qwen" in str(
        read.given("model_type")
    ):
        read.given("sliding_window")
    kinds = read.given("layer_types")
    if kinds is not None and kinds != ["full_attention"] * n_layer:
        raise read.damaged(f"layer_types is {kinds!r:.80}; only full_attention is computed here")


def _unless(usual: int, given: int | None) -> int | None:
    """Leave out a size that is what it would be without being given."""
    return None if given == usual else given


LLAMA = LlamaLayout()
