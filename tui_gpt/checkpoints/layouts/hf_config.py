"""Reading a Hugging Face `config.json`: each field is honoured, or refused by name.

No size is ever assumed; where the file is silent on something else, what the family does is
taken, and a remark says so. Only what training or text generation uses is left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tui_gpt.config import Activation, GPTConfig
from tui_gpt.errors import DamagedModel, ImpossibleShape

ACTIVATIONS: Mapping[str, Activation] = {
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
}
"""Hugging Face's names of the activations that this program computes."""

_FIXED: Mapping[str, tuple[Any, ...]] = {
    "add_cross_attention": (False, None),
    "is_encoder_decoder": (False, None),
    "pruned_heads": ({}, [], None),
    "quantization_config": (None,),
    "chunk_size_feed_forward": (0, None),
}
"""Fields of every family that change the mathematics, with the only values computed here."""

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

_DROPOUT = (
    "resid_pdrop", "embd_pdrop", "attn_pdrop", "attention_dropout", "hidden_dropout",
    "classifier_dropout",
)  # fmt: skip

_ENDINGS = ("ForCausalLM", "LMHeadModel", "Model")


def architecture_of(raw: Mapping[str, Any]) -> str:
    """Say which family a config is of, as `model_type` would; `gpt2` where it says nothing."""
    kind = raw.get("model_type")
    if kind is not None:
        return str(kind)
    architectures = raw.get("architectures")
    named = str(architectures[0]) if isinstance(architectures, list) and architectures else "GPT2"
    for ending in _ENDINGS:
        named = named.removesuffix(ending)
    return {"GPTNeoX": "gpt_neox"}.get(named, named.lower())


class ConfigReader:
    """Reads one config, and remembers which fields were asked for."""

    def __init__(self, path: Path, raw: Mapping[str, Any], family: str) -> None:
        self.path = path
        self.remarks: list[str] = []
        self._raw = raw
        self._family = family
        self._known: set[str] = set()
        if raw.get("model_type") is None:
            self.remarks.append(f"{path.name} gives no model_type; it is read as {family}'s")
        self.fixed(_FIXED)

    def given(self, name: str) -> Any:
        """Give a field as it is; None where there is none."""
        self._known.add(name)
        return self._raw.get(name)

    def damaged(self, why: str) -> DamagedModel:
        """Give the error that says what is wrong with the file."""
        return DamagedModel(f"{self.path}: {why}")

    def size(self, name: str, *others: str) -> int:
        """Find one size under any of its names."""
        found = self.optional_size(name, *others)
        if found is None:
            aliases = f" (or {' or '.join(others)})" if others else ""
            raise DamagedModel(f"{self.path} has no {name}{aliases}; no size is assumed")
        return found

    def optional_size(self, name: str, *others: str) -> int | None:
        """Find one size under any of its names; None where it is not given."""
        given = {key: self.given(key) for key in (name, *others)}
        given = {key: value for key, value in given.items() if value is not None}
        if not given:
            return None
        first, *rest = given.items()
        for key, value in rest:
            if value != first[1]:
                raise DamagedModel(
                    f"{self.path} contradicts itself: {first[0]} is {first[1]!r} and {key} is "
                    f"{value!r}"
                )
        if type(first[1]) is not int:
            raise self.damaged(f"{first[0]} is {first[1]!r}; it must be a whole number")
        return first[1]

    def number(self, name: str, assumed: float) -> float:
        """Find a number; where it is not given, the family's own is taken and said."""
        found = self.given(name)
        if name not in self._raw:
            self.remarks.append(
                f"{self.path.name} gives no {name}; {self._family}'s {assumed} is used"
            )
            return assumed
        if isinstance(found, bool) or not isinstance(found, int | float):
            raise self.damaged(f"{name} is {found!r}; it must be a number")
        try:
            number = float(found)
        except OverflowError:  # a whole number of hundreds of digits
            number = math.inf
        if not math.isfinite(number):
            raise self.damaged(f"{name} is {found}; it must be a number")
        return found

    def switch(self, name: str, assumed: bool | None) -> bool | None:
        """Find a field that is true or false; what is assumed where it is not given."""
        found = self.given(name)
        if found is not None and not isinstance(found, bool):
            raise self.damaged(f"{name} is {found!r}; it is true or false")
        return assumed if found is None else found

    def activation(self, name: str, assumed: str) -> Activation:
        """Find the activation by Hugging Face's name."""
        found = self.given(name)
        if found is None:
            self.remarks.append(
                f"{self.path.name} gives no {name}; {self._family}'s {assumed} is used"
            )
            found = assumed
        if not isinstance(found, str) or found not in ACTIVATIONS:
            raise self.damaged(
                f"{name} is {found!r}, which is not computed here; there are "
                + ", ".join(ACTIVATIONS)
            )
        return ACTIVATIONS[found]

    def fixed(self, allowed: Mapping[str, Iterable[Any]]) -> None:
        """Refuse what is not computed here.

        Args:
            allowed: The fields and the values that they may have, None for not given.
        """
        for name, choices in allowed.items():
            value = self.given(name)
            if not any(value is choice or value == choice for choice in choices):
                raise self.damaged(f"{name} is {value!r}, which is not computed here")

    def config(self, **fields: Any) -> GPTConfig:
        """Build the config; what makes no sense is a fault of the file."""
        try:
            return GPTConfig(**fields)
        except ImpossibleShape as error:
            raise self.damaged(str(error)) from error

    def finish(self) -> tuple[str | None, tuple[str, ...]]:
        """Say what the config calls the model, and the remarks on what was left out."""
        if any([self.given(name) for name in _DROPOUT]):
            self.remarks.append("dropout belongs to training and is left out")
        known = self._known | _ABOUT_NUMBERS
        strange = sorted(key for key in self._raw if key not in known)
        if strange:
            self.remarks.append(
                f"not understood in {self.path.name} and left out: {', '.join(strange[:20])}"
            )
        called = self._raw.get("_name_or_path")
        return called if isinstance(called, str) and called else None, tuple(self.remarks)
