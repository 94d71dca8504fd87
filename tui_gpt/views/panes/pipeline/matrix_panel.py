"""The right side of pane 1: a heading, a matrix as a heatmap, its scale."""

from __future__ import annotations

from dataclasses import dataclass

from rich.segment import Segment

from tui_gpt.records.tensors import Statistics
from tui_gpt.views.heatmap import Frame, frame_for, heatmap_rows, legend
from tui_gpt.views.matrix import Matrix
from tui_gpt.views.palette import Palette
from tui_gpt.views.rows import Row, blank_rows, padded
from tui_gpt.views.stage_text import legend_row
from tui_gpt.views.window import has_halves, window


@dataclass(frozen=True, slots=True)
class Panel:
    """What was drawn, and the part of the matrix that is on the screen now."""

    rows: list[Row]
    top: int
    left: int
    page: int
    """Matrix rows on the screen."""


def frame_of(matrix: Matrix, width: int, height: int, palette: Palette, *, dense: bool) -> Frame:
    """Decide how a matrix is drawn in a panel of this size, its legend below it."""
    return frame_for(matrix, width, height - 1, dense=dense and has_halves(palette))


def matrix_panel(
    matrix: Matrix,
    frame: Frame,
    found: Statistics,
    *,
    cell: tuple[int, int],
    top: int,
    left: int,
    width: int,
    height: int,
    palette: Palette,
) -> Panel:
    """Draw a matrix and its scale in a space.

    Args:
        matrix: What to draw.
        frame: From `frame_of`, for the same space.
        found: Statistics of the tensor that the matrix is a part of.
        cell: (row, column) of the cell that is read, in the matrix as it is drawn.
        top: The first matrix row of the last drawing.
        left: The first matrix column of the last drawing.
        width: Cells of each row.
        height: Rows that are returned.
        palette: For this terminal.
    """
    top, left = window(frame, matrix.shape, cell, top, left)
    rows = heatmap_rows(
        matrix, frame, top=top, left=left, cursor=cell, width=width, palette=palette
    )
    rows = rows[: max(0, height - 1)]
    rows += blank_rows(height - len(rows) - 1, width, palette.plain)
    if matrix.whole:
        words = "ids are names, not amounts: no scale"
        rows.append(padded([Segment(words, palette.faint)], width, palette.plain))
    else:
        rows.append(legend_row(_scale(matrix, found, palette), found, width, palette))
    return Panel(rows, top, left, frame.rows)


def _scale(matrix: Matrix, found: Statistics, palette: Palette) -> Row:
    """Draw the scale over the values there are, or over the fixed range of probabilities."""
    if matrix.sequential:
        return legend(matrix, 0.0, 1.0, palette)
    if found.minimum is None or found.maximum is None:
        return [Segment("no finite value", palette.problem)]
    return legend(matrix, found.minimum, found.maximum, palette)
