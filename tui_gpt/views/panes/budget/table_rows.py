"""What the tables of a budget share: cells in columns, headings, sentences."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style

from tui_gpt.views.palette import Palette
from tui_gpt.views.rows import Row, padded
from tui_gpt.views.stage_text import wrapped
from tui_gpt.views.text import fit, formula, transliterate


class Cell(NamedTuple):
    """One field of a table."""

    text: str
    width: int
    """Cells; negative: to the right."""
    style: Style


def table_row(cells: Iterable[Cell], width: int, palette: Palette) -> Row:
    """Put cells side by side; a text that is too long is cut.

    Returns:
        A row of exactly `width` cells.
    """
    glyphs = palette.profile.glyphs
    row: Row = []
    for text, room, style in cells:
        shown = formula(text, glyphs)
        if cell_len(shown) > abs(room):
            shown = fit(shown, abs(room), glyphs)
        blank = " " * (abs(room) - cell_len(shown))
        row.append(Segment(shown + blank if room > 0 else blank + shown, style))
    return padded(row, width, palette.plain)


def heading_row(text: str, width: int, palette: Palette) -> Row:
    """Name what follows."""
    said = formula(f" {text}", palette.profile.glyphs)
    return padded([Segment(said, palette.strong)], width, palette.plain)


def sentence(text: str, width: int, palette: Palette, style: Style | None = None) -> list[Row]:
    """Say something in as many rows as it needs."""
    said = transliterate(text, palette.profile.glyphs)
    return [
        padded([Segment(f" {line}", style or palette.plain)], width, palette.plain)
        for line in wrapped(said, max(8, width - 2))
    ]
