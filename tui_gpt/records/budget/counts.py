"""Where a model's parameters sit: exact counts by part, and every number they are confused with.

All counts come from the stage table, so they are those of the built model; nothing here needs
a tensor library. Blocks are alike, so one is laid out and multiplied: a thousand blocks cost
what one does.

Letters: V vocabulary, C n_embd, F n_inner, L n_layer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod

from tui_gpt.config import PRESETS, GPTConfig
from tui_gpt.errors import ImpossibleShape
from tui_gpt.records.stages import ActivationName, Stage, stage_table

FAMILY = {"gpt2": "117M", "gpt2-medium": "345M", "gpt2-large": "762M", "gpt2-xl": "1542M"}
"""What the paper of 2019 called its four models; later names follow from the counts."""


@dataclass(frozen=True, slots=True)
class Part:
    """One kind of weight, with the biases that belong to it."""

    name: str
    in_block: bool
    """True where every block has one."""
    formula: str
    """In letters: `3·(C·C + C)`. Empty where the model has no such part."""
    numbers: str
    """The same with the sizes put in: `3 × (768 × 768 + 768)`."""
    each: int
    """Parameters: in one block, or in the one place there is."""
    times: int
    """Places: n_layer, or 1."""
    note: str = ""
    """Why nothing is counted here."""

    @property
    def count(self) -> int:
        """Parameters in the whole model."""
        return self.each * self.times


@dataclass(frozen=True, slots=True)
class Budget:
    """A model's parameters, part by part; every model has the same parts in the same order."""

    config: GPTConfig
    parts: tuple[Part, ...]

    @property
    def total(self) -> int:
        """Parameters, a tied head once."""
        return sum(part.count for part in self.parts)

    @property
    def per_block(self) -> int:
        """Parameters of one block."""
        return sum(part.each for part in self.parts if part.in_block)

    @property
    def blocks(self) -> int:
        """Parameters of all blocks."""
        return self.per_block * self.config.n_layer

    @property
    def head(self) -> int:
        """Parameters of the output head, whether it is counted or shared."""
        return self.config.vocab_size * self.config.n_embd

    @property
    def tied(self) -> int:
        """The total with the token embedding as the head."""
        return self.total if self.config.tied else self.total - self.head

    @property
    def untied(self) -> int:
        """The total with a head of its own; a state dict of a tied model adds up to it too.

        A state dict lists a tied head under both of its names; buffers are not counted.
        """
        return self.tied + self.head

    @property
    def without_positions(self) -> int:
        """The total without the position table."""
        return self.total - self["positions"].count

    @property
    def approx_blocks(self) -> int:
        """12·L·C²: all blocks, biases and norms left out and F taken as 4·C."""
        return 12 * self.config.n_layer * self.config.n_embd**2

    @property
    def approx_embedding(self) -> int:
        """V·C: the token embedding, positions left out."""
        return self.config.vocab_size * self.config.n_embd

    @property
    def attention(self) -> int:
        """Parameters of one block's attention."""
        return self["q k v"].each + self["attention out"].each

    @property
    def ffn(self) -> int:
        """Parameters of one block's feed-forward network."""
        return self["FFN expand"].each + self["FFN contract"].each

    @property
    def qkv_biases(self) -> int:
        """Parameters in the biases of q, k and v: L · 3 · C, or none."""
        return 3 * self.config.n_layer * self.config.n_embd if self.config.qkv_bias else 0

    @property
    def embedding_shaped(self) -> int:
        """Parameters in matrices of V × C: the token embedding and a head of its own."""
        return self["token embedding"].count + self["head"].count

    @property
    def expansion(self) -> float:
        """F / C."""
        return self.config.n_inner / self.config.n_embd

    @property
    def parity(self) -> float:
        """The expansion at which the feed-forward network would be as large as the attention.

        It solves 2·C·F + (F + C where there are biases) = attention; F need not be whole.
        """
        width, bias = self.config.n_embd, int(self.config.bias)
        return (self.attention - bias * width) / (2 * width + bias) / width

    def share(self, count: int) -> float:
        """Give a count as a share of the total."""
        return count / self.total

    def __getitem__(self, name: str) -> Part:
        """Give a part by its name."""
        return next(part for part in self.parts if part.name == name)


@dataclass(frozen=True, slots=True)
class SizeName:
    """A size that a model goes by."""

    name: str
    """`124M`."""
    count: int | None
    """The exact count behind it; None where no count gives it."""
    why: str
    current: bool
    """True where it is the count of the config itself."""


@dataclass(frozen=True, slots=True)
class StateDictCount:
    """What is really in a weight file."""

    n_tensors: int
    n_parameters: int
    """Numbers in tensors that are parameters, each once."""
    twice: tuple[tuple[str, int], ...]
    """(key, numbers) of tensors stored again although they are shared."""
    buffers: tuple[tuple[str, int], ...]
    """(key, numbers) of tensors that are no parameters."""


def budget(config: GPTConfig) -> Budget:
    """Count a model's parameters by part."""
    stages = stage_table(replace(config, n_layer=1), 1)
    return Budget(config, tuple(_part(config, stages, *row) for row in _PARTS))


def size_names(found: Budget) -> tuple[SizeName, ...]:
    """List the sizes a model goes by: the paper's, tied, untied; each with its reason."""
    config = found.config
    sizes = _sizes(config)
    names: list[SizeName] = []
    paper = next((name for key, name in FAMILY.items() if _sizes(PRESETS[key]) == sizes), None)
    if paper is not None:
        names.append(SizeName(paper, None, "the GPT-2 paper's name; no count gives it", False))
    return (
        *names,
        SizeName(rounded(found.tied), found.tied, "tied: the head is the token table", config.tied),
        SizeName(
            rounded(found.untied), found.untied, "untied, and in a state dict", not config.tied
        ),
    )


def rounded(count: int) -> str:
    """Say a count as people do: 124M, 115k."""
    if count < 1000:
        return str(count)
    if count < 999_500:
        return f"{count / 1e3:.0f}k"
    return f"{count / 1e6:.0f}M" if count < 10**10 else f"{count / 1e9:,.0f}B"


def inner_width(expansion: float, n_embd: int) -> int:
    """Turn an expansion into hidden units: n_inner = round(expansion · n_embd).

    Raises:
        ImpossibleShape: Nothing or less would be left, or the expansion is no finite number.
    """
    try:
        n_inner = round(expansion * n_embd)
    except (OverflowError, ValueError):  # infinite, or not a number
        raise ImpossibleShape(f"expansion is {expansion}; it must be a finite number") from None
    if n_inner < 1:
        raise ImpossibleShape(
            f"expansion {expansion:g} of n_embd {n_embd} leaves {n_inner} hidden units; "
            "n_inner must be at least 1"
        )
    return n_inner


def state_dict(config: GPTConfig, tensors: Mapping[str, tuple[int, ...]]) -> StateDictCount:
    """Add up the tensors of a weight file.

    Args:
        config: Of its model.
        tensors: Shapes by key.
    """
    owned: set[str] = set()
    shared: set[str] = set()
    for stage in stage_table(config, 1):
        for parameter in stage.parameters:
            (shared if parameter.shared else owned).add(parameter.name)
    again = {"lm_head.weight"} if shared else set()
    others = [(key, prod(shape)) for key, shape in tensors.items() if key not in owned]
    return StateDictCount(
        n_tensors=len(tensors),
        n_parameters=sum(prod(shape) for key, shape in tensors.items() if key in owned),
        twice=tuple((key, count) for key, count in others if key in again),
        buffers=tuple((key, count) for key, count in others if key not in again),
    )


_PARTS: tuple[tuple[str, tuple[ActivationName, ...], tuple[str, ...]], ...] = (
    ("token embedding", ("embed",), ("V", "C")),
    ("positions", ("pos_embed",), ("block_size", "C")),
    ("norms", ("ln_1", "ln_2"), ("C",)),
    ("q k v", ("q", "k", "v"), ("C", "C")),
    ("attention out", ("attn_out",), ("C", "C")),
    ("FFN expand", ("mlp_pre",), ("F", "C")),
    ("FFN contract", ("mlp_out",), ("C", "F")),
    ("final norm", ("ln_final",), ("C",)),
    ("head", ("logits",), ("V", "C")),
)
"""(name, the stages that own it, the letters of its weight's shape)."""


def _sizes(config: GPTConfig) -> tuple[int, ...]:
    return (config.n_layer, config.n_head, config.n_embd, config.n_inner, config.vocab_size)


def _part(
    config: GPTConfig,
    stages: tuple[Stage, ...],
    name: str,
    owners: tuple[ActivationName, ...],
    letters: tuple[str, ...],
) -> Part:
    """Add up the parameters of some stages, and say how."""
    owning = [stage for stage in stages if stage.name in owners]
    shapes = [
        [parameter.shape for parameter in stage.parameters if not parameter.shared]
        for stage in owning
    ]
    in_block = any(stage.layer is not None for stage in owning)
    formula = numbers = ""
    if shapes and shapes[0]:
        weight, *bias = shapes[0]
        formula = "·".join(letters) + (f" + {letters[0]}" if bias else "")
        numbers = " × ".join(map(str, weight)) + (f" + {bias[0][0]}" if bias else "")
        if len(shapes) > 1:
            plain = not bias
            formula = f"{len(shapes)}·{formula}" if plain else f"{len(shapes)}·({formula})"
            numbers = f"{len(shapes)} × {numbers}" if plain else f"{len(shapes)} × ({numbers})"
    return Part(
        name=name,
        in_block=in_block,
        formula=formula,
        numbers=numbers,
        each=sum(stage.n_parameters for stage in owning),
        times=config.n_layer if in_block else 1,
        note="" if formula else _NOTHING[name],
    )


_NOTHING = {
    "positions": "computed",
    "final norm": "post-norm: none",
    "head": "the token table",
}
"""Why a part may own nothing."""
