"""GPT-2 folders, and checkpoints of nanoGPT, which uses the same names.

    file                     GPT-2 folder   nanoGPT      becomes
    h.0.attn.c_attn.weight   (C, 3C)        (3C, C)      q, k and v, each (C, C)
    h.0.attn.c_proj.weight   (C, C)         (C, C)       the same name, (C, C)
    h.0.mlp.c_fc.weight      (C, F)         (F, C)       the same name, (F, C)
    h.0.mlp.c_proj.weight    (F, C)         (C, F)       the same name, (C, F)

GPT-2 keeps a matrix as (inputs, outputs), its `Conv1D`; torch's `Linear` as (outputs, inputs).
Only the kind of file tells: a square matrix looks the same both ways.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from tui_gpt.checkpoints.headers import TensorEntry
from tui_gpt.checkpoints.layouts.hf_config import ConfigReader, architecture_of
from tui_gpt.checkpoints.layouts.layout import (
    CONV1D,
    STACKED,
    Arrangement,
    Entries,
    Layout,
    LayoutConfig,
    Location,
    NotAWeight,
    Wanted,
    owned_parameters,
)
from tui_gpt.checkpoints.names import CONFIG
from tui_gpt.config import GPTConfig
from tui_gpt.errors import DamagedModel, ImpossibleShape
from tui_gpt.records.vocabulary import VocabularySource

_MASK = re.compile(r"h\.(\d+)\.attn\.bias")
_MASKED_BIAS = re.compile(r"h\.(\d+)\.attn\.masked_bias")

_FIXED: Mapping[str, tuple[Any, ...]] = {
    "scale_attn_weights": (True, None),
    "scale_attn_by_inverse_layer_idx": (False, None),
}

_SUMMARY = ("type", "use_proj", "activation", "first_dropout", "proj_to_labels")
"""Fields `summary_…` of a head that GPT-2's language model does not have."""


class GPT2Layout(Layout):
    """A Hugging Face folder of GPT-2."""

    title = "GPT-2"
    architectures: ClassVar[tuple[str, ...]] = ("gpt2",)
    prefixes = ("_orig_mod.", "module.", "model.", "transformer.")
    matrices: Arrangement = CONV1D

    def recognises(self, found: Location) -> bool:
        """Whatever says that it is GPT-2, or does not say what it is."""
        return found.config is not None and architecture_of(found.config) == "gpt2"

    def read_config(self, found: Location, entries: Entries) -> LayoutConfig:
        """Read the fields under GPT-2's names or the common ones; see `Layout.read_config`."""
        assert found.config is not None
        read = ConfigReader(found.folder / CONFIG, found.config, "GPT-2")
        sizes = {
            "n_layer": read.size("n_layer", "num_hidden_layers"),
            "n_head": read.size("n_head", "num_attention_heads"),
            "n_embd": read.size("n_embd", "hidden_size"),
            "vocab_size": read.size("vocab_size"),
            "block_size": read.size("n_positions", "n_ctx", "max_position_embeddings"),
        }
        read.fixed(_FIXED)
        if read.given("reorder_and_upcast_attn"):
            read.remarks.append(
                "reorder_and_upcast_attn changes nothing: all is computed in float32"
            )
        for name in _SUMMARY:
            read.given(f"summary_{name}")
        n_inner = read.given("n_inner")
        config = read.config(
            **sizes,
            n_inner=4 * sizes["n_embd"] if n_inner is None else n_inner,
            layer_norm_epsilon=read.number("layer_norm_epsilon", 1e-5),
            tied=read.switch("tie_word_embeddings", True),
            activation=read.activation("activation_function", "gelu_new"),
        )
        return LayoutConfig(config, *read.finish())

    def wanted(self, config: GPTConfig) -> Iterator[Wanted]:
        """GPT-2 keeps q, k and v in one; see `Layout.wanted`."""
        for parameter in owned_parameters(config):
            module, _, kind = parameter.name.rpartition(".")
            matrix = kind == "weight" and module.startswith("h.") and len(parameter.shape) == 2
            arrangement = self.matrices if matrix else STACKED
            shape = parameter.shape
            parameters: tuple[str, ...] = (parameter.name,)
            if module.endswith((".attn.k", ".attn.v")):
                continue
            if module.endswith(".attn.q"):
                attention = module.removesuffix(".q")
                parameters = tuple(f"{attention}.{part}.{kind}" for part in "qkv")
                module, shape = f"{attention}.c_attn", (3 * shape[0], *shape[1:])
            if arrangement.transposed:
                shape = shape[::-1]
            yield Wanted(f"{module}.{kind}", shape, parameters, arrangement)

    def not_a_weight(self, name: str, entry: TensorEntry, config: GPTConfig) -> NotAWeight | None:
        """Old files keep the causal mask beside the weights; see `Layout.not_a_weight`."""
        kind: NotAWeight = "mask"
        found = _MASK.fullmatch(name)
        if found is None:
            kind, found = "masked_bias", _MASKED_BIAS.fullmatch(name)
        if found is None or int(found[1]) >= config.n_layer:
            return None
        square = entry.shape[:2] == (1, 1) and len(set(entry.shape[2:])) == 1
        if kind == "mask" and not (square and len(entry.shape) == 4):
            raise DamagedModel(
                f"{entry.path}: {entry.key} is {entry.shape}; GPT-2's mask is "
                f"{(1, 1, config.block_size, config.block_size)}"
            )
        return kind

    def vocabulary(self, found: Location) -> VocabularySource:
        """A folder without any reads GPT-2's own."""
        return VocabularySource("folder", found.folder, or_gpt2=True)


class NanoGPTLayout(GPT2Layout):
    """A checkpoint that nanoGPT's training wrote: the sizes are in the file itself."""

    kind = "nanogpt"
    architectures = ()
    matrices = STACKED

    def recognises(self, found: Location) -> bool:
        """`model_args` tells; only torch can look."""
        return _model_args(found) is not None

    def read_config(self, found: Location, entries: Entries) -> LayoutConfig:
        """Read `model_args`; see `Layout.read_config`."""
        path, raw = found.named, _model_args(found)
        if not isinstance(raw, dict) or not all(isinstance(key, str) for key in raw):
            raise DamagedModel(f"{path}: model_args is no table of sizes")
        sizes = {}
        for name in ("n_layer", "n_head", "n_embd", "block_size", "vocab_size"):
            if raw.get(name) is None:
                raise DamagedModel(f"{path}: model_args has no {name}")
            sizes[name] = raw[name]
        if type(sizes["n_embd"]) is not int:
            raise DamagedModel(f"{path}: n_embd is {sizes['n_embd']!r}; it must be a whole number")
        remarks = ["nanoGPT's exact GELU is used; its first versions computed the tanh form"]
        bias = raw.get("bias")
        if bias is None:
            bias = "ln_f.bias" in entries
            remarks.append(f"model_args does not say bias; the tensors do: {str(bias).lower()}")
        try:
            config = GPTConfig(
                **sizes,
                n_inner=4 * sizes["n_embd"],
                activation="gelu",
                bias=bias,
                tied=True,
            )
        except ImpossibleShape as error:
            raise DamagedModel(f"{path}: {error}") from error
        if raw.get("dropout"):
            remarks.append("dropout belongs to training and is left out")
        strange = sorted(raw.keys() - sizes.keys() - {"bias", "dropout"})
        if strange:
            raise DamagedModel(
                f"{path}: model_args has {strange[0]}, which is none of nanoGPT's and not "
                "computed here"
            )
        return LayoutConfig(config, None, tuple(remarks))


def _model_args(found: Location) -> object | None:
    """Give what a checkpoint says of its sizes."""
    if found.files is None or not found.files.is_checkpoint:
        return None
    from tui_gpt.checkpoints.pickles import load_state

    return load_state(found.files.paths[0]).model_args


GPT2, NANOGPT = GPT2Layout(), NanoGPTLayout()
