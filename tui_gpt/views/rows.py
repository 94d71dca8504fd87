"""Rows of segments: the plain form in which views hand text to a widget or a test."""

from __future__ import annotations

from typing import TypeAlias

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style

from tui_gpt.views.text import fit

Row: TypeAlias = list[Segment]
"""One line; its builder promises the width in cells."""


def plain_text(row: Row) -> str:
    """Give what a row says, without its styles."""
    return "".join(segment.text for segment in row)


def width_of(row: Row) -> int:
    """Count a row's cells."""
    return sum(cell_len(segment.text) for segment in row)


def padded(row: Row, width: int, style: Style) -> Row:
    """Bring a row to an exact width: blanks at its end, or a cut."""
    kept: Row = []
    room = width
    for text, segment_style, _ in row:
        cells = cell_len(text)
        if cells > room:
            kept.append(Segment(fit(text, room), segment_style))
            return kept
        kept.append(Segment(text, segment_style))
        room -= cells
    if room:
        kept.append(Segment(" " * room, style))
    return kept


def spread(left: Row, right: Row, width: int, style: Style) -> Row:
    """Put one row at each end of a line; where both do not fit, the left one is cut.

    Returns:
        A row of exactly `width` cells.
    """
    room = width - width_of(right)
    if room < 0:
        return padded(right, width, style)
    return [*padded(left, room, style), *right]


def blank_rows(count: int, width: int, style: Style) -> list[Row]:
    """Give rows of blanks; none where `count` is not positive."""
    blank: Row = [Segment(" " * width, style)]
    return [blank] * max(0, count)


def fitted(rows: list[Row], width: int, height: int, style: Style) -> list[Row]:
    """Bring rows to an exact size: each to `width` cells, all to `height` rows."""
    shown = [padded(row, width, style) for row in rows[:height]]
    return shown + blank_rows(height - len(shown), width, style)
