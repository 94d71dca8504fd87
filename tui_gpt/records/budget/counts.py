"""Where a model's parameters sit: exact counts by part, and every number they are confused with.

All counts come from the block plan, so they are those of the built model; nothing here needs
a tensor library. Blocks are alike, so one is laid out and multiplied: a thousand blocks cost
what one does.

Letters: V vocabulary, C n_embd, F n_inner, H query heads, K key heads, D head_dim, L n_layer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from tui_gpt.config import PRESETS, GPTConfig
from tui_gpt.errors import ImpossibleShape
from tui_gpt.records.block_plan import PARTS, BlockPlan, block_plan, letter_size
from tui_gpt.records.stages import stage_table

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
        """Parameters in the biases of q, k and v: L · (H + 2·K) · D, or none."""
        if not self.config.qkv_bias:
            return 0
        heads = self.config.n_head + 2 * self.config.n_key_head
        return self.config.n_layer * heads * self.config.head_dim

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

        It solves 2·C·F + (F + C where there are biases) = attention, with a second C·F + F where
        the network is gated; F need not be whole.
        """
        width, bias = self.config.n_embd, int(self.config.bias)
        wide = 2 if self.config.gated else 1
        return (self.attention - bias * width) / ((wide + 1) * width + wide * bias) / width

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
    plan = block_plan(config)
    return Budget(config, tuple(_part(config, plan, name) for name in PARTS))


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


def _sizes(config: GPTConfig) -> tuple[int, ...]:
    return (config.n_layer, config.n_head, config.n_embd, config.n_inner, config.vocab_size)


def _part(config: GPTConfig, plan: BlockPlan, name: str) -> Part:
    """Add up the weights of a part, and say how."""
    in_block = any(step.part == name for step in plan.block)
    steps = plan.block if in_block else (*plan.before, *plan.after)
    owned = [
        weights
        for step in steps
        if step.part == name
        for weights in step.weights
        if not weights.shared
    ]
    formulas: dict[tuple[str, str], int] = {}  # in letters and in numbers: how often
    each = 0
    for weights in owned:
        sizes = [letter_size(letter, config) for letter in weights.letters]
        formula, numbers = "·".join(weights.letters), " × ".join(map(str, sizes))
        if weights.bias:
            formula, numbers = f"{formula} + {weights.letters[0]}", f"{numbers} + {sizes[0]}"
        formulas[formula, numbers] = formulas.get((formula, numbers), 0) + 1
        each += prod(sizes) + (sizes[0] if weights.bias else 0)
    written = [
        (_times(formula, count, "·"), _times(numbers, count, " × "))
        for (formula, numbers), count in formulas.items()
    ]
    return Part(
        name=name,
        in_block=in_block,
        formula=" + ".join(formula for formula, _ in written),
        numbers=" + ".join(numbers for _, numbers in written),
        each=each,
        times=config.n_layer if in_block else 1,
        note="" if owned else _NOTHING[name],
    )


def _times(text: str, count: int, sign: str) -> str:
    """Write a sum so many times: `3·(C·C + C)`."""
    if count == 1:
        return text
    return f"{count}{sign}({text})" if " + " in text else f"{count}{sign}{text}"


_NOTHING = {
    "positions": "computed",
    "norms": "none",
    "final norm": "post-norm: none",
    "head": "the token table",
}
"""Why a part may own nothing."""
