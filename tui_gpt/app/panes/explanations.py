"""The explanation of a cell as something to walk through: its lines lead to other cells."""

from __future__ import annotations

from dataclasses import replace

from tui_gpt.app.panes.pane import Scene
from tui_gpt.app.place.place import Place
from tui_gpt.records.analyses.explanation import CellRef, Explanation
from tui_gpt.records.trace import Run
from tui_gpt.views.panes.pipeline.explanation import NARROWEST, explanation_rows
from tui_gpt.views.rows import Row, fitted


def targets(explanation: Explanation) -> list[tuple[CellRef, ...]]:
    """List the cells that each line leads to: one of an operand, two of a term."""
    operands = [(operand.cell,) for operand in explanation.operands if operand.cell is not None]
    terms = [(term.input_cell, term.weight_cell) for term in explanation.terms]
    return [*operands, *terms]


def chosen(place: Place, explanation: Explanation) -> CellRef | None:
    """Give the cell that the chosen line names; None where no line names one."""
    lines = targets(explanation)
    if not lines:
        return None
    line = lines[min(place.line, len(lines) - 1)]
    return line[min(place.side, len(line) - 1)]


def followed(place: Place, explanation: Explanation) -> Place | None:
    """Go to the cell that the chosen line names.

    Returns:
        The place of that cell, explained in its turn where it is one of a stage; None where
        there is nowhere to go.
    """
    cell = chosen(place, explanation)
    if cell is None:
        return None
    if cell.stage is not None:
        index = next(i for i, stage in enumerate(place.run.stages) if stage.id == cell.stage)
        there = place.at_stage(index)
        inside = cell.index
        if there.stage.axes[0] == "H":
            there, inside = replace(there, head=inside[0]), inside[1:]
        row, column = (*inside, 0)[:2]
        return replace(there.at_cell(row, column), explained=True, zone="terms")
    index, which = _owner(place.run, cell.parameter or "")
    there = replace(place.at_stage(index), parameter=which, explained=False, zone="cells")
    row, column = cell.index if len(cell.index) == 2 else (0, cell.index[0])
    return there.at_cell(row, column)


def draw_explanation(explanation: Explanation, scene: Scene, width: int, height: int) -> list[Row]:
    """Draw an explanation in a space, scrolled so that the chosen line is in sight.

    Returns:
        `height` rows of `width` cells.
    """
    place, palette = scene.place, scene.palette
    active = chosen(place, explanation) if place.zone == "terms" else None
    rows = explanation_rows(
        explanation,
        place.run,
        width=max(width, NARROWEST),
        palette=palette,
        vocabulary=scene.vocabulary,
        chosen=active,
    )
    marked = [y for y, row in enumerate(rows) if any(part.style is palette.cursor for part in row)]
    first = max(0, min(marked[-1] + 2 - height, len(rows) - height)) if marked else 0
    return fitted(rows[first:], width, height, palette.plain)


def _owner(run: Run, parameter: str) -> tuple[int, int]:
    """Find the stage that a parameter is counted at, and its place among the stage's."""
    found = [
        (i, which, owned.shared)
        for i, stage in enumerate(run.stages)
        for which, owned in enumerate(stage.parameters)
        if owned.name == parameter
    ]
    index, which, _ = min(found, key=lambda entry: entry[2])
    return index, which
