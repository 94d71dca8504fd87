"""The cell that is asked about, and how its explanation reads what it needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tui_gpt.config import GPTConfig
from tui_gpt.records.analyses.explanation import CellRef, Explanation, Operand
from tui_gpt.records.stages import Stage, find_stage
from tui_gpt.records.tensors import Values
from tui_gpt.records.trace import Trace


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a trace, with the trace and the weights around it."""

    trace: Trace
    parameter: Callable[[str], NDArray[np.float32]]
    """Gives a parameter by name; only rows and single numbers of it are read."""
    stage: Stage
    index: tuple[int, ...]
    value: float
    """As recorded: exactly a float32, or a token's id; −∞ where a score is masked."""

    @classmethod
    def of(
        cls,
        trace: Trace,
        parameter: Callable[[str], NDArray[np.float32]],
        stage: Stage,
        index: tuple[int, ...],
    ) -> Cell:
        """Read a cell's own value first: without it there is nothing to explain.

        Raises:
            MissingStage: The stage could not be recorded.
        """
        if stage.axes == ("T", "V"):
            position, entry = index
            value = output_row(trace, stage.id, position)[entry]
        else:
            value = trace.tensor(stage.id).values[index]
        return cls(trace, parameter, stage, index, number(value))

    @property
    def config(self) -> GPTConfig:
        """Of the model."""
        return self.trace.run.model.config

    def stage_of(self, stage_id: str) -> Stage:
        """Describe another stage of the run."""
        return find_stage(self.trace.run.stages, stage_id)

    def values(self, stage_id: str) -> Values:
        """Give a whole stage as it was recorded, without a copy.

        Raises:
            MissingStage: It could not be recorded.
        """
        return self.trace.tensor(stage_id).values

    def of_stage(self, role: str, stage_id: str, *index: int) -> Operand:
        """Read a cell of another stage as an operand."""
        value = number(self.values(stage_id)[index])
        return Operand(role, CellRef.of_stage(stage_id, *index), value)

    def of_parameter(self, role: str, name: str, *index: int) -> Operand:
        """Read a cell of a parameter as an operand."""
        value = number(self.parameter(name)[index])
        return Operand(role, CellRef.of_parameter(name, *index), value)

    def explained(
        self, numbers: str, value_float64: float, operands: Sequence[Operand]
    ) -> Explanation:
        """Put an explanation without terms together.

        Args:
            numbers: The formula again with its operands in their places.
            value_float64: What it gives in float64.
            operands: In the order of the formula.
        """
        return Explanation(
            stage=self.stage.id,
            index=self.index,
            value=self.value,
            value_float64=value_float64,
            formula=f"{self.stage.formula} = {numbers} = {read(self.value)}",
            operands=tuple(operands),
        )


def output_row(trace: Trace, stage_id: str, position: int) -> Values:
    """Give one position of logits or probs and compute no other: (V,).

    Raises:
        MissingStage: It could not be recorded.
    """
    row: Values = trace.tensor(stage_id, (position, position + 1)).values[0]
    return row


def number(value: np.generic) -> float:
    """Turn one recorded number into Python's, exactly; ids stay whole numbers."""
    plain = value.item()
    assert isinstance(plain, int | float)
    return plain


def known(operand: Operand) -> float:
    """Give an operand's value, which every cell has that is not masked."""
    assert operand.value is not None
    return operand.value


def read(value: float) -> str:
    """Write a number into a formula, rounded."""
    return str(value) if isinstance(value, int) else f"{value:.4g}"


def inner(value: float) -> str:
    """Write a number after an operator: a negative one in brackets."""
    text = read(value)
    return f"({text})" if text.startswith("-") else text
