"""What a checkpoint layout is: it recognises its files, reads their config, and names tensors.

One `Layout` answers three questions. Is this yours? What is its config? Which tensor of the file
is which parameter, and how is it arranged there? A parameter is named as in `model/gpt.py`; the
tensors that a file must have follow from the stages of the config.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from tui_gpt.checkpoints.headers import TensorEntry
from tui_gpt.checkpoints.weight_files import WeightFiles
from tui_gpt.config import GPTConfig
from tui_gpt.records.stages import Parameter, stage_table
from tui_gpt.records.vocabulary import VocabularySource

if TYPE_CHECKING:
    import torch

HEAD, TABLE = "lm_head.weight", "wte.weight"
"""Our names of the output head and of the token table, which may be one."""

Entries: TypeAlias = Mapping[str, TensorEntry]
"""What a file holds, by names without prefixes."""

NotAWeight = Literal["mask", "masked_bias", "tied", "frequencies"]
"""Why a tensor of a file is no parameter."""


@dataclass(frozen=True, slots=True)
class Location:
    """What was found where a model was asked for, before it is known whose it is."""

    name: str
    """As it was asked for."""
    folder: Path
    files: WeightFiles | None
    """The weights that would be read."""
    config: Mapping[str, Any] | None = None
    """What `config.json` says, where there is one."""
    kind: str | None = None
    """Said by the place itself: a model that ships with the program."""

    @property
    def named(self) -> Path:
        """What a message calls it."""
        return self.folder if self.files is None else self.files.named


@dataclass(frozen=True, slots=True)
class LayoutConfig:
    """Another program's config in our terms."""

    config: GPTConfig
    """`tied` is what the files say, or true where they say nothing."""
    called: str | None = None
    """What the config calls the model."""
    remarks: tuple[str, ...] = ()
    """What was assumed or left out."""


@dataclass(frozen=True, slots=True)
class Arrangement:
    """How a tensor lies in the file, and what makes parameters of it."""

    split: Callable[[torch.Tensor, int], Sequence[torch.Tensor]]
    """Takes the tensor and the number of parameters it becomes."""
    transposed: bool = False
    """The file has (inputs, outputs)."""
    note: str = ""
    """What to say of it in the loader report."""


STACKED = Arrangement(lambda tensor, count: tensor.chunk(count))
"""(outputs, inputs), as torch keeps it; several parameters one below the other."""

CONV1D = Arrangement(
    lambda tensor, count: tensor.t().chunk(count), True, "Conv1D keeps (inputs, outputs)"
)
"""(inputs, outputs), as GPT-2 keeps it; several parameters side by side."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """One tensor that a config asks a file for."""

    name: str
    """The key without prefixes."""
    shape: tuple[int, ...]
    """In the file."""
    parameters: tuple[str, ...]
    """What it becomes: one, or several that share it."""
    arrangement: Arrangement = STACKED


class Layout:
    """One program's way of keeping a model."""

    kind: ClassVar[str] = "huggingface"
    """As `models` lists it."""
    title: ClassVar[str]
    """Whose it is, for messages."""
    architectures: ClassVar[tuple[str, ...]] = ()
    """What a config.json calls the models that are read this way."""
    prefixes: ClassVar[tuple[str, ...]] = ()
    """What a key may begin with; taken off until none is left."""
    reads_header_first: ClassVar[bool] = True
    """The tensors are looked at as soon as the model is found."""

    def recognises(self, found: Location) -> bool:
        """Say whether the files are of this make."""
        raise NotImplementedError

    def read_config(self, found: Location, entries: Entries) -> LayoutConfig:
        """Say the config in our terms.

        Raises:
            DamagedModel: It is not usable, or asks for mathematics that is not computed here.
        """
        raise NotImplementedError

    def wanted(self, config: GPTConfig) -> Iterator[Wanted]:
        """List every tensor that a file of a config must have, in the order of the stages."""
        raise NotImplementedError

    def not_a_weight(self, name: str, entry: TensorEntry, config: GPTConfig) -> NotAWeight | None:
        """Say why a tensor that nothing asked for is no fault, if so.

        Raises:
            DamagedModel: It looks like one that is left out, but is of another shape.
        """
        return None

    def vocabulary(self, found: Location) -> VocabularySource:
        """Say where the tokenizer is; by default among the files of the folder."""
        return VocabularySource("folder", found.folder)

    def bare(self, key: str) -> str:
        """Take prefixes off a key until none is left."""
        while True:
            prefix = next((prefix for prefix in self.prefixes if key.startswith(prefix)), None)
            if prefix is None:
                return key
            key = key.removeprefix(prefix)

    def head_name(self, config: GPTConfig) -> str:
        """Give the file's name of the output head."""
        return self.file_name(HEAD)

    def file_name(self, parameter: str) -> str:
        """Give the file's name of a parameter; by default they are the same."""
        return parameter


def owned_parameters(config: GPTConfig) -> Iterator[Parameter]:
    """List a model's parameters in the order of the stages, a shared one once."""
    for stage in stage_table(config, 1):
        for parameter in stage.parameters:
            if not parameter.shared:
                yield parameter


@dataclass(frozen=True, slots=True)
class Names:
    """A family's words for our parameters."""

    outside: Mapping[str, str]
    """`wte` → `embed_tokens`."""
    block: str
    """Before the parts of a block, `{}` for its number: `layers.{}.`."""
    inside: Mapping[str, str]
    """`attn.q` → `self_attn.q_proj`."""

    def of(self, parameter: str) -> str:
        """Translate one name: `h.0.attn.q.weight` → `layers.0.self_attn.q_proj.weight`."""
        module, _, kind = parameter.rpartition(".")
        if not module.startswith("h."):
            return f"{self.outside[module]}.{kind}"
        _, number, part = module.split(".", 2)
        return f"{self.block.format(number)}{self.inside[part]}.{kind}"
