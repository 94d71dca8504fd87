"""Where one number of a trace comes from: its formula, its operands, its largest terms.

Plain data: tokens appear as ids and positions, and whoever shows them looks their text up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tui_gpt.errors import UnknownCell
from tui_gpt.records.stages import Stage

LISTED = 10
"""Terms that are named one by one; the others are one sum."""


@dataclass(frozen=True, slots=True)
class CellRef:
    """One cell of a stage or of a parameter: a place that can be gone to.

    Raises:
        ValueError: It names both or neither, or an index that no tensor has.
    """

    stage: str | None
    """A stage id, or None for a cell of a parameter."""
    parameter: str | None
    """A name of the state dict, or None for a cell of a stage."""
    index: tuple[int, ...]
    """One number an axis, from 0."""

    def __post_init__(self) -> None:
        if (self.stage is None) == (self.parameter is None):
            raise ValueError(
                f"a cell is of a stage or of a parameter, not {self.stage!r} and {self.parameter!r}"
            )
        if not self.index or min(self.index) < 0:
            raise ValueError(f"{self.index} is no index of {self.stage or self.parameter}")

    @classmethod
    def of_stage(cls, stage_id: str, *index: int) -> CellRef:
        """Name a cell of a stage."""
        return cls(stage_id, None, index)

    @classmethod
    def of_parameter(cls, name: str, *index: int) -> CellRef:
        """Name a cell of a parameter."""
        return cls(None, name, index)


@dataclass(frozen=True, slots=True)
class Operand:
    """One number that a formula is applied to."""

    role: str
    """What it is in the formula: `x`, `mean`, `epsilon`, `gamma`, `row maximum`, …"""
    cell: CellRef | None
    """Where it stands; None where it is derived from others or constant."""
    value: float | None
    """The recorded number, or the derived one in float64; None where the cell is masked."""

    def __post_init__(self) -> None:
        if self.value is None and self.cell is None:
            raise ValueError(f"{self.role} stands nowhere, so it must have a value")


@dataclass(frozen=True, slots=True)
class Term:
    """One product of a sum."""

    label: str
    """`feature 12`, `unit 7`, `key 3`, `L0H1 feature 3`."""
    input: float
    """The recorded activation."""
    weight: float
    """What it is multiplied by: a parameter, or another activation."""
    product: float
    """In float64, already times every constant factor (1/√D for scores)."""
    input_cell: CellRef
    weight_cell: CellRef


@dataclass(frozen=True, slots=True)
class Explanation:
    """How one cell of a stage follows from what the stage reads.

    Raises:
        ValueError: The parts contradict each other.
    """

    stage: str
    """The stage's id."""
    index: tuple[int, ...]
    """One number an axis of the stage, from 0."""
    value: float | None
    """As recorded: exactly a float32, or a token id; None for a masked cell."""
    value_float64: float | None
    """The same operation in float64 on the recorded operands and weights."""
    formula: str
    """One line, with the numbers in it, rounded for reading."""
    operands: tuple[Operand, ...]
    terms: tuple[Term, ...] = ()
    """The largest of a sum of products by magnitude, at most LISTED; NaN counts as largest."""
    remainder: float = 0.0
    """The sum of the products that are not listed, from the operands, in float64."""
    bias: float = 0.0
    """Added to the products; 0 where there is none."""
    n_terms: int = 0
    """Products in all; 0 where the value is no sum of products."""
    reason: str | None = None
    """Why a cell is masked; None for every other cell."""

    def __post_init__(self) -> None:
        place = f"{self.stage}{list(self.index)}"
        if (self.value is None) != (self.value_float64 is None):
            raise ValueError(f"{place}: either both values are there or neither")
        if self.value is None and not self.reason:
            raise ValueError(f"{place}: a cell without a value needs a reason")
        if "\n" in self.formula:
            raise ValueError(f"{place}: the formula is not one line")
        if len(self.terms) != min(LISTED, self.n_terms):
            raise ValueError(f"{place}: {len(self.terms)} terms listed of {self.n_terms}")
        if not self.n_terms and (self.remainder or self.bias):
            raise ValueError(f"{place}: a remainder or bias without products")
        sizes = [_size(term) for term in self.terms]
        if sizes != sorted(sizes, reverse=True):
            raise ValueError(f"{place}: the terms are not in order, the largest first")

    @property
    def has_terms(self) -> bool:
        """True where the value is a sum of products."""
        return self.n_terms > 0

    @property
    def cells(self) -> tuple[CellRef, ...]:
        """Every cell that is named, in reading order: operands, then each term's two."""
        named = [operand.cell for operand in self.operands if operand.cell is not None]
        for term in self.terms:
            named += (term.input_cell, term.weight_cell)
        return tuple(dict.fromkeys(named))


def check_cell(stage: Stage, index: tuple[int, ...]) -> None:
    """Make sure that an index is one of a stage.

    Raises:
        UnknownCell: It has too few or too many numbers, or one that is out of range.
    """
    if len(index) != len(stage.shape):
        axes = ",".join(stage.axes)
        raise UnknownCell(
            f"{stage.id} takes an index of {len(stage.shape)}, {axes}; "
            f"{','.join(map(str, index)) or 'nothing'} has {len(index)}"
        )
    for axis, place, size in zip(stage.axes, index, stage.shape, strict=True):
        if not 0 <= place < size:
            raise UnknownCell(
                f"{stage.id} has no {axis} = {place}; its {size} places are 0…{size - 1}"
            )


def _size(term: Term) -> float:
    return math.inf if math.isnan(term.product) else abs(term.product)
