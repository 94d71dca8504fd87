"""Where a person stands in the pipeline: a value, and the moves from one to the next.

Nothing is drawn here. The cell that is wanted is kept beyond the matrix that is shown, so
that it comes back when a larger one is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tui_gpt.app.actions import Zone
from tui_gpt.records.stages import Stage
from tui_gpt.records.trace import Run


@dataclass(frozen=True, slots=True)
class Place:
    """Which stage, head and cell are looked at, and what the arrow keys move."""

    run: Run
    index: int
    """Of the stage, in the stage table."""
    head: int = 0
    row: int | None = None
    """Of the cell, in the matrix of one head; None until the first values are there."""
    column: int = 0
    zone: Zone = "stages"
    dense: bool = False

    @property
    def stage(self) -> Stage:
        """The chosen stage."""
        return self.run.stages[self.index]

    @property
    def matrix_shape(self) -> tuple[int, int]:
        """Rows and columns of what is drawn for the chosen stage."""
        shape = self.stage.shape[1:] if self.stage.axes[0] == "H" else self.stage.shape
        return (shape[0], shape[1] if len(shape) == 2 else 1)

    @property
    def cell(self) -> tuple[int, int]:
        """The cell that is read: the wanted one, or the nearest there is."""
        rows, columns = self.matrix_shape
        return min(self.row or 0, rows - 1), min(self.column, columns - 1)

    def at_stage(self, index: int) -> Place:
        """Go to a stage, or the nearest there is."""
        return replace(self, index=max(0, min(index, len(self.run.stages) - 1)))

    def by_blocks(self, step: int) -> Place:
        """Go to the same stage some blocks on; stay where there is none."""
        if self.stage.layer is None:
            return self
        index = _find(self.run, self.stage.name, self.stage.layer + step)
        return self if index is None else self.at_stage(index)

    def by_heads(self, step: int) -> Place:
        """Show another head, the first after the last."""
        return replace(self, head=(self.head + step) % self.run.model.config.n_head)

    def at_cell(self, row: int, column: int) -> Place:
        """Read a cell, or the nearest there is."""
        rows, columns = self.matrix_shape
        return replace(
            self, row=max(0, min(row, rows - 1)), column=max(0, min(column, columns - 1))
        )

    def on(self, run: Run) -> Place:
        """Keep stage, head and cell for another run, where they exist."""
        stage = self.stage
        same = _find(run, stage.name, stage.layer)
        if same is None and stage.layer is not None:
            same = _find(run, stage.name, run.model.config.n_layer - 1)
        index = min(self.index, len(run.stages) - 1) if same is None else same
        return replace(self, run=run, index=index, head=min(self.head, run.model.config.n_head - 1))


def _find(run: Run, name: str, layer: int | None) -> int | None:
    """Find a stage by name and layer; None where the model has none."""
    for index, stage in enumerate(run.stages):
        if stage.name == name and stage.layer == layer:
            return index
    return None
