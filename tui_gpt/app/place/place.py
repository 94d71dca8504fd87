"""Where a person stands: a value, and the moves from one to the next.

All panes share it, so that stage, block, head, position and cell stay when the pane changes.
Nothing is drawn here. The cell that is wanted is kept beyond the matrix that is shown, so
that it comes back when a larger one is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from tui_gpt.records.stages import ActivationName, Stage
from tui_gpt.records.trace import Run

if TYPE_CHECKING:
    from tui_gpt.records.tensors import StageTensor

if TYPE_CHECKING:
    from tui_gpt.app.place.budget import BudgetPlace
    from tui_gpt.app.place.generation import GenerationPlace

Zone = Literal["stages", "cells", "terms"]
"""What the arrow keys move in pane 1: the chosen stage, the cell that is read, or the line of
its explanation."""


@dataclass(frozen=True, slots=True)
class Place:
    """What is looked at, and how."""

    run: Run
    index: int
    """Of the stage, in the stage table."""
    pane: str = "1"
    head: int = 0
    row: int | None = None
    """Of the cell, in the matrix of one head: a position everywhere but in parameters. None
    until the first values are there."""
    column: int = 0
    zone: Zone = "stages"
    parameter: int | None = None
    """Which of the stage's parameters is shown in its place."""
    explained: bool = False
    """The cell's explanation is shown."""
    line: int = 0
    """The chosen line of the explanation."""
    side: int = 0
    """Of a term in it: 0 for its input, 1 for its weight."""
    depth: int = 0
    """The point of the stream that is read, in the stream pane."""
    choice: int = 0
    """The candidate that is read, in the output pane."""
    budget: BudgetPlace | None = None
    """The shape in the budget pane; None is the open model's."""
    generation: GenerationPlace | None = None
    """The text in the generation pane; None is the prompt alone."""
    scores: bool = False
    """The attention pane shows scores, and not the pattern."""
    dense: bool = False
    """Two rows a line."""
    turned: bool = False
    """Rows are columns."""
    overview: bool = False
    """The whole matrix in sight, several values in a cell."""
    robust: bool = False
    """The scale leaves the largest hundredth out."""
    shared: bool = False
    """One scale for this stage in all blocks."""

    @property
    def stage(self) -> Stage:
        """The chosen stage."""
        return self.run.stages[self.index]

    @property
    def block(self) -> int:
        """The block that is looked at: the stage's, or the nearest."""
        if self.stage.layer is not None:
            return self.stage.layer
        first = next(i for i, stage in enumerate(self.run.stages) if stage.layer is not None)
        return 0 if self.index < first else self.run.model.config.n_layer - 1

    @property
    def position(self) -> int:
        """The token that is looked at."""
        return min(self.row or 0, len(self.run.tokens) - 1)

    @property
    def matrix_shape(self) -> tuple[int, int]:
        """Rows and columns of what pane 1 draws: the stage of one head, or a parameter."""
        if self.parameter is not None:
            shape = self.stage.parameters[self.parameter].shape
            return (shape[0], shape[1]) if len(shape) == 2 else (1, shape[0])
        shape = self.stage.shape[1:] if self.stage.axes[0] == "H" else self.stage.shape
        return (shape[0], shape[1] if len(shape) == 2 else 1)

    @property
    def cell(self) -> tuple[int, int]:
        """The cell that is read: the wanted one, or the nearest there is."""
        rows, columns = self.matrix_shape
        return min(self.row or 0, rows - 1), min(self.column, columns - 1)

    @property
    def cell_index(self) -> tuple[int, ...]:
        """The same cell as an index into the stage's tensor."""
        if self.stage.axes[0] == "H":
            return (self.head, *self.cell)
        return self.cell[: len(self.stage.axes)]

    def at_pane(self, key: str) -> Place:
        """Show another pane; a text that writes itself stops."""
        generation = self.generation
        if generation is not None and key != self.pane:
            generation = replace(generation, running=False)
        return replace(self, pane=key, generation=generation)

    def at_stage(self, index: int) -> Place:
        """Go to a stage, or the nearest there is."""
        index = max(0, min(index, len(self.run.stages) - 1))
        return replace(self, index=index, parameter=None, line=0)

    def at_block(self, layer: int) -> Place:
        """Go to the same stage of another block; stay where there is none."""
        name: ActivationName = "pattern" if self.stage.layer is None else self.stage.name
        if self.stage.layer is None and self.pane == "1":
            return self
        index = _find(self.run, name, layer)
        return self if index is None else self.at_stage(index)

    def by_heads(self, step: int) -> Place:
        """Show another head, the first after the last."""
        return replace(self, head=(self.head + step) % self.run.model.config.n_head, line=0)

    def at_cell(self, row: int, column: int) -> Place:
        """Read a cell of the matrix, or the nearest there is."""
        rows, columns = self.matrix_shape
        return self.at_row_and_column(row, column, rows, columns)

    def at_row_and_column(self, row: int, column: int, rows: int, columns: int) -> Place:
        """Choose a row and a column out of so many."""
        return replace(
            self,
            row=max(0, min(row, rows - 1)),
            column=max(0, min(column, columns - 1)),
            line=0,
        )

    def on(self, run: Run) -> Place:
        """Keep stage, head and cell for another run, where they exist."""
        stage = self.stage
        same = _find(run, stage.name, stage.layer)
        if same is None and stage.layer is not None:
            same = _find(run, stage.name, run.model.config.n_layer - 1)
        index = min(self.index, len(run.stages) - 1) if same is None else same
        owned = len(run.stages[index].parameters)
        keeps = self.parameter is not None and self.parameter < owned
        return replace(
            self,
            run=run,
            index=index,
            head=min(self.head, run.model.config.n_head - 1),
            parameter=self.parameter if keeps else None,
            line=0,
            generation=None if self.generation is None else self.generation.again(run.tokens),
            budget=self.budget if run.model.name == self.run.model.name else None,
        )


def at_largest(place: Place, tensor: StageTensor) -> Place:
    """Start at the last position, at the largest value there: what the prediction builds on."""
    values = tensor.values
    matrix = values[place.head] if place.stage.axes[0] == "H" else values
    last = matrix.shape[0] - 1
    column = int(matrix[last].argmax()) if matrix.ndim == 2 else 0
    return place.at_cell(tensor.first + last, column)


def _find(run: Run, name: str, layer: int | None) -> int | None:
    """Find a stage by name and layer; None where the model has none."""
    for index, stage in enumerate(run.stages):
        if stage.name == name and stage.layer == layer:
            return index
    return None
