"""A pane's size, and which part of a matrix is in sight in it."""

from __future__ import annotations

from rich.segment import Segment

from tui_gpt.views.heatmap import Frame, scrolled
from tui_gpt.views.palette import Palette
from tui_gpt.views.rows import Row, fitted
from tui_gpt.views.stage_text import wrapped
from tui_gpt.views.text import sanitize, transliterate


def has_halves(palette: Palette) -> bool:
    """True where one line can hold two rows of colours, as half blocks."""
    return palette.profile.colour in ("truecolor", "256") and not palette.profile.ascii


def finished(rows: list[Row], width: int, height: int, palette: Palette) -> list[Row]:
    """Bring a pane to its exact size, cuts marked in the characters of the terminal."""
    shown = fitted(rows, width, height, palette.plain)
    if not palette.profile.ascii:
        return shown
    return [[Segment(text.replace("…", "~"), style) for text, style, _ in row] for row in shown]


def reason_rows(reason: str, width: int, height: int, palette: Palette) -> list[Row]:
    """Say why something is not there, over as many of `height` rows as it needs."""
    text = transliterate(sanitize(reason, palette.profile.glyphs), palette.profile.glyphs)
    lines = wrapped(text, max(1, width - 2))
    rows: list[Row] = [[Segment(f" {line}", palette.problem)] for line in lines]
    return fitted(rows, width, height, palette.plain)


def window(
    frame: Frame, shape: tuple[int, int], cell: tuple[int, int], top: int, left: int
) -> tuple[int, int]:
    """Move a window so that a cell is in it.

    Args:
        frame: How many rows and columns it has.
        shape: Of the whole matrix.
        cell: (row, column) that must be in sight.
        top: The first row so far.
        left: The first column so far.

    Returns:
        The first row and column; the row is even where two rows share a line.
    """
    top = scrolled(top, cell[0], frame.rows, shape[0])
    left = scrolled(left, cell[1], frame.columns, shape[1])
    if frame.dense and top % 2:
        # One row up; or down, where that would hide the chosen row at the other end.
        top += 1 if cell[0] >= top - 1 + frame.rows else -1
    return top, left
