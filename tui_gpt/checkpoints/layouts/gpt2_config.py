"""What other programs' configs say, as a `GPTConfig`: honoured, or refused by name.

Two kinds are read: `config.json` of a Hugging Face GPT-2 folder, and `model_args` of a nanoGPT
checkpoint. No size is ever assumed; where the file is silent on something else, what GPT-2
does is taken, and a notice says so. Only what training or text generation uses is left out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tui_gpt.config import Activation, GPTConfig
from tui_gpt.errors import DamagedModel, ImpossibleShape

_SIZES = {
    "n_layer": ("num_hidden_layers",),
    "n_head": ("num_attention_heads",),
    "n_embd": ("hidden_size",),
    "vocab_size": (),
    "n_positions": ("n_ctx", "max_position_embeddings"),
}
"""Each size that must be given, and the other names it goes by."""

ACTIVATIONS: Mapping[str, Activation] = {
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
}
"""Hugging Face's names of the activations that this program computes."""

_FIXED: Mapping[str, tuple[Any, ...]] = {
    "scale_attn_weights": (True, None),
    "scale_attn_by_inverse_layer_idx": (False, None),
    "add_cross_attention": (False, None),
    "is_encoder_decoder": (False, None),
    "pruned_heads": ({}, [], None),
    "quantization_config": (None,),
    "chunk_size_feed_forward": (0, None),
}
"""Fields that change the mathematics, with the only values that are computed here."""

_DROPOUT = ("resid_pdrop", "embd_pdrop", "attn_pdrop")

_ABOUT_NUMBERS = frozenset(
    {
        "_attn_implementation", "_attn_implementation_autoset", "_commit_hash", "_name_or_path",
        "architectures", "attn_implementation", "auto_map", "bad_words_ids",
        "begin_suppress_tokens",
        "bos_token_id", "cross_attention_hidden_size", "decoder_start_token_id",
        "diversity_penalty", "do_sample", "dtype", "early_stopping",
        "encoder_no_repeat_ngram_size", "eos_token_id", "exponential_decay_length_penalty",
        "finetuning_task", "forced_bos_token_id", "forced_eos_token_id", "gradient_checkpointing",
        "id2label", "initializer_range", "is_decoder", "label2id", "length_penalty", "max_length",
        "min_length", "model_type", "no_repeat_ngram_size", "num_beam_groups", "num_beams",
        "num_labels", "num_return_sequences", "output_attentions", "output_hidden_states",
        "output_past", "output_scores", "pad_token_id", "predict_special_tokens", "prefix",
        "problem_type", "remove_invalid_values",
        "repetition_penalty", "return_dict", "return_dict_in_generate", "sep_token_id",
        "suppress_tokens", "task_specific_params", "temperature", "tf_legacy_loss",
        "tokenizer_class", "top_k", "top_p", "torch_dtype", "torchscript", "transformers_version",
        "typical_p", "use_bfloat16", "use_cache", "vocab_file", "n_special",
    }
)  # fmt: skip
"""Fields that change no number of a forward pass."""


@dataclass(frozen=True, slots=True)
class LayoutConfig:
    """Another program's config in our terms."""

    config: GPTConfig
    """`tied` is what the config says, or true where it says nothing."""
    name: str | None
    """What the config calls the model."""
    notices: tuple[str, ...]


def read_gpt2_config(path: Path, raw: Mapping[str, Any]) -> LayoutConfig:
    """Read the config of a Hugging Face GPT-2 folder.

    Args:
        path: For messages.
        raw: The JSON object.

    Raises:
        DamagedModel: Another architecture, a size missing or given twice, or a field that
            asks for mathematics that is not computed here; the message names it.
    """
    notices: list[str] = []
    _refuse_others(path, raw, notices)
    sizes = {name: _size(path, raw, name, others) for name, others in _SIZES.items()}
    for name, allowed in _FIXED.items():
        value = raw.get(name)
        if not any(value is choice or value == choice for choice in allowed):
            raise DamagedModel(f"{path}: {name} is {value!r}, which is not computed here")
    if raw.get("reorder_and_upcast_attn"):
        notices.append("reorder_and_upcast_attn changes nothing: all is computed in float32")
    n_inner = raw.get("n_inner")
    if n_inner is None:
        n_inner = 4 * sizes["n_embd"]
    if "layer_norm_epsilon" not in raw:
        notices.append(f"{path.name} gives no layer_norm_epsilon; GPT-2's 1e-05 is used")
    tied = raw.get("tie_word_embeddings")
    if tied is not None and not isinstance(tied, bool):
        raise DamagedModel(f"{path}: tie_word_embeddings is {tied!r}; it is true or false")
    config = _config(
        path,
        n_layer=sizes["n_layer"],
        n_head=sizes["n_head"],
        n_embd=sizes["n_embd"],
        n_inner=n_inner,
        block_size=sizes["n_positions"],
        vocab_size=sizes["vocab_size"],
        activation=_activation(path, raw, notices),
        tied=tied is not False,
        layer_norm_epsilon=raw.get("layer_norm_epsilon", 1e-5),
    )
    if any(raw.get(name) for name in _DROPOUT):
        notices.append("dropout belongs to training and is left out")
    known = {*_SIZES, *(alias for others in _SIZES.values() for alias in others), *_FIXED}
    known |= {"reorder_and_upcast_attn", "n_inner", "layer_norm_epsilon", "tie_word_embeddings"}
    known |= {"activation_function", *_DROPOUT, *_ABOUT_NUMBERS}
    strange = sorted(key for key in raw if key not in known and not key.startswith("summary_"))
    if strange:
        notices.append(f"not understood in {path.name} and left out: {', '.join(strange[:20])}")
    called = raw.get("_name_or_path")
    called = called if isinstance(called, str) and called else None
    return LayoutConfig(config, called, tuple(notices))


def read_nanogpt_args(path: Path, raw: Any, biased: bool) -> LayoutConfig:
    """Read the `model_args` of a nanoGPT checkpoint.

    Args:
        path: For messages.
        raw: What the file holds under that name.
        biased: The file has a shift of the last LayerNorm, which nanoGPT's `bias` decides.

    Raises:
        DamagedModel: It is no table of sizes, or one is missing.
    """
    if not isinstance(raw, dict) or not all(isinstance(key, str) for key in raw):
        raise DamagedModel(f"{path}: model_args is no table of sizes")
    sizes = {}
    for name in ("n_layer", "n_head", "n_embd", "block_size", "vocab_size"):
        if raw.get(name) is None:
            raise DamagedModel(f"{path}: model_args has no {name}")
        sizes[name] = raw[name]
    if type(sizes["n_embd"]) is not int:
        raise DamagedModel(f"{path}: n_embd is {sizes['n_embd']!r}; it must be a whole number")
    notices = ["nanoGPT's exact GELU is used; its first versions computed the tanh form"]
    bias = raw.get("bias")
    if bias is None:
        bias = biased
        notices.append(f"model_args does not say bias; the tensors do: {str(bias).lower()}")
    config = _config(
        path, **sizes, n_inner=4 * sizes["n_embd"], activation="gelu", bias=bias, tied=True
    )
    if raw.get("dropout"):
        notices.append("dropout belongs to training and is left out")
    strange = sorted(raw.keys() - sizes.keys() - {"bias", "dropout"})
    if strange:
        raise DamagedModel(
            f"{path}: model_args has {strange[0]}, which is none of nanoGPT's and not computed here"
        )
    return LayoutConfig(config, None, tuple(notices))


def untied(config: GPTConfig) -> GPTConfig:
    """Give the same shape with an output head of its own."""
    return replace(config, tied=False)


def _refuse_others(path: Path, raw: Mapping[str, Any], notices: list[str]) -> None:
    """Refuse what says that it is no GPT-2."""
    kind = raw.get("model_type")
    if kind is None:
        architectures = raw.get("architectures")
        named = architectures if isinstance(architectures, list) else []
        other = next((name for name in named if not str(name).startswith("GPT2")), None)
        if other is not None:
            raise DamagedModel(f"{path}: unsupported architecture {other!r}; GPT-2 is supported")
        notices.append(f"{path.name} gives no model_type; it is read as GPT-2's")
    elif kind != "gpt2":
        raise DamagedModel(
            f"{path}: unsupported architecture {kind!r}; model_type gpt2 is supported"
        )


def _size(path: Path, raw: Mapping[str, Any], name: str, others: tuple[str, ...]) -> int:
    """Find one size under any of its names."""
    given = {key: raw[key] for key in (name, *others) if raw.get(key) is not None}
    if not given:
        aliases = f" (or {' or '.join(others)})" if others else ""
        raise DamagedModel(f"{path} has no {name}{aliases}; no size is assumed")
    first, *rest = given.items()
    for key, value in rest:
        if value != first[1]:
            raise DamagedModel(
                f"{path} contradicts itself: {first[0]} is {first[1]!r} and {key} is {value!r}"
            )
    if type(first[1]) is not int:
        raise DamagedModel(f"{path}: {first[0]} is {first[1]!r}; it must be a whole number")
    return first[1]


def _activation(path: Path, raw: Mapping[str, Any], notices: list[str]) -> Activation:
    name = raw.get("activation_function")
    if name is None:
        notices.append(f"{path.name} gives no activation_function; GPT-2's gelu_new is used")
        return "gelu_tanh"
    if not isinstance(name, str) or name not in ACTIVATIONS:
        raise DamagedModel(
            f"{path}: activation_function is {name!r}, which is not computed here; there are "
            + ", ".join(ACTIVATIONS)
        )
    return ACTIVATIONS[name]


def _config(path: Path, **fields: Any) -> GPTConfig:
    """Build the config; what makes no sense is a fault of the file."""
    epsilon = fields.get("layer_norm_epsilon", 0.0)
    if isinstance(epsilon, float) and not math.isfinite(epsilon):
        raise DamagedModel(f"{path}: layer_norm_epsilon is {epsilon}; it must be a number")
    try:
        return GPTConfig(**fields)
    except ImpossibleShape as error:
        raise DamagedModel(f"{path}: {error}") from error
