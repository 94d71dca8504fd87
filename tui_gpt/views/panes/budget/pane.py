"""Pane 6: the fields of a shape on the left, what follows from them on the right.

From a wide and tall screen on everything is shown at once; else one section at a time. A
narrow screen shows the chosen field alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rich.segment import Segment

from tui_gpt.config import GPTConfig
from tui_gpt.records.budget.counts import Budget, StateDictCount, budget
from tui_gpt.records.budget.memory import memory, shape_rows
from tui_gpt.views.palette import Palette
from tui_gpt.views.panes.budget.compare import compare_rows
from tui_gpt.views.panes.budget.memory import bytes_rows, shapes_rows
from tui_gpt.views.panes.budget.parts import counts_rows, family_rows, names_rows, parts_rows
from tui_gpt.views.panes.budget.table_rows import Cell, heading_row, sentence, table_row
from tui_gpt.views.rows import Row, blank_rows, fitted, padded, width_of
from tui_gpt.views.text import sanitize, transliterate
from tui_gpt.views.units import both, count_text

Section = Literal["parts", "counts", "bytes", "shapes", "compare"]

SECTIONS: tuple[Section, ...] = ("parts", "counts", "bytes", "shapes", "compare")

_FIELDS = 24
_NARROW = 72
_WIDE, _TALL = 140, 44


@dataclass(frozen=True, slots=True)
class Sheet:
    """What the pane shows."""

    name: str
    """What the shape was started from, and whether it was changed; outside text."""
    config: GPTConfig
    batch: int
    context: int
    fields: Sequence[tuple[str, str]]
    """(name, value); values may be outside text."""
    chosen: int
    """Of the fields."""
    section: Section
    refused: str = ""
    """Why the last change was not made."""
    held: tuple[str, GPTConfig] | None = None
    """What is compared with."""
    state_dict: StateDictCount | None = None
    """What is in the model's file, as long as the shape is the model's."""


def budget_pane(sheet: Sheet, *, width: int, height: int, palette: Palette) -> list[Row]:
    """Draw the pane.

    Returns:
        `height` rows of exactly `width` cells.
    """
    found = budget(sheet.config)
    if width < _NARROW:
        top = _one_field(sheet, found, width, palette)
        below = [_tabs(sheet, width, palette), *_section(sheet, found, width, palette)]
        return fitted([*top, *below], width, height, palette.plain)
    line = Segment("|" if palette.profile.ascii else "│", palette.faint)
    columns = [_fields(sheet, found, _FIELDS, height, palette)]
    room = width - _FIELDS - 1
    if width >= _WIDE and height >= _TALL:
        half = (room - 1) // 2
        columns += _everything(sheet, found, (half, room - 1 - half), height, palette)
    else:
        rows = [_tabs(sheet, room, palette), *_section(sheet, found, room, palette)]
        columns.append(fitted(rows, room, height, palette.plain))
    joined: list[Row] = []
    for parts in zip(*columns, strict=True):
        row = list(parts[0])
        for part in parts[1:]:
            row += [line, *part]
        joined.append(row)
    return joined


def budget_reading(sheet: Sheet, palette: Palette) -> Row:
    """Read the total aloud: parameters, bytes, and what each number of it is."""
    found = budget(sheet.config)
    glyphs = palette.profile.glyphs
    size = transliterate(f" · float32 {both(4 * found.total)} · parameters ", glyphs)
    return [
        Segment(f" {sanitize(sheet.name, glyphs)}", palette.plain),
        Segment(size, palette.plain),
        Segment(f"{found.total:,}", palette.accent),
    ]


def _fields(sheet: Sheet, found: Budget, width: int, height: int, palette: Palette) -> list[Row]:
    """List the fields, the chosen one marked, the total and what was refused below."""
    rows: list[Row] = []
    for i, (name, value) in enumerate(sheet.fields):
        chosen = i == sheet.chosen
        style = palette.chosen if chosen else palette.plain
        left, right = ("<", ">") if palette.profile.ascii else ("‹", "›")
        shown = sanitize(value, palette.profile.glyphs)
        shown = f"{left}{shown}{right} " if chosen else f"{shown}  "
        label = 5 if name == "from" else 11
        cells = [Cell(f" {name}", label, style), Cell(shown, label - width, style)]
        rows.append(table_row(cells, width, palette))
    total = [
        Cell(" total", 7, palette.strong),
        Cell(f"{count_text(found.total, width - 9)}  ", 7 - width, palette.accent),
    ]
    below = [table_row(total, width, palette)]
    if sheet.refused:
        below += sentence(f"refused: {sheet.refused}", width, palette, palette.problem)
    if len(rows) + 1 + len(below) <= height:
        rows += blank_rows(1, width, palette.plain)
    return fitted([*rows, *below], width, height, palette.plain)


def _one_field(sheet: Sheet, found: Budget, width: int, palette: Palette) -> list[Row]:
    """Show the chosen field and the total on one line."""
    name, value = sheet.fields[sheet.chosen]
    left, right = ("<", ">") if palette.profile.ascii else ("‹", "›")
    shown = sanitize(value, palette.profile.glyphs)
    row = [
        Segment(f" {name} {left}{shown}{right} ", palette.chosen),
        Segment(" total ", palette.strong),
        Segment(f"{found.total:,}", palette.accent),
    ]
    rows = [padded(row, width, palette.plain)]
    if sheet.refused:
        rows += sentence(f"refused: {sheet.refused}", width, palette, palette.problem)
    return rows


def _tabs(sheet: Sheet, width: int, palette: Palette) -> Row:
    row: Row = [Segment(" ", palette.plain)]
    for section in SECTIONS:
        style = palette.chosen_elsewhere if section == sheet.section else palette.faint
        text = f" {section} "
        if section == sheet.section and palette.profile.colour == "none":
            text = f"[{section}]"
        row.append(Segment(text, style))
    hint = Segment("x: next ", palette.faint)
    blank = width - width_of(row) - len(hint.text)
    if blank > 0:
        row += [Segment(" " * blank, palette.plain), hint]
    return padded(row, width, palette.plain)


def _section(sheet: Sheet, found: Budget, width: int, palette: Palette) -> list[Row]:
    """Draw the chosen section."""
    match sheet.section:
        case "parts":
            return [*parts_rows(found, width, palette), *names_rows(found, width, palette)]
        case "counts":
            return counts_rows(found, sheet.state_dict, width, palette)
        case "bytes":
            return _bytes(sheet, width, palette)
        case "shapes":
            return _shapes(sheet, width, palette)
        case "compare":
            return _compare(sheet, found, width, palette)


def _everything(
    sheet: Sheet, found: Budget, widths: tuple[int, int], height: int, palette: Palette
) -> list[list[Row]]:
    """Draw all sections in two columns."""
    left, right = widths
    first = [
        parts_rows(found, left, palette),
        names_rows(found, left, palette),
        counts_rows(found, sheet.state_dict, left, palette),
    ]
    second = [
        _bytes(sheet, right, palette),
        [heading_row("Shapes", right, palette), *_shapes(sheet, right, palette)],
        family_rows(right, palette),
    ]
    if sheet.held is not None:
        # It is what was asked for, so it goes where it surely fits.
        first.insert(1, _compare(sheet, found, left, palette))
    return [
        fitted(_stacked(first, left, palette), left, height, palette.plain),
        fitted(_stacked(second, right, palette), right, height, palette.plain),
    ]


def _stacked(sections: list[list[Row]], width: int, palette: Palette) -> list[Row]:
    rows: list[Row] = []
    for section in sections:
        rows += [*section, *blank_rows(1, width, palette.plain)]
    return rows


def _bytes(sheet: Sheet, width: int, palette: Palette) -> list[Row]:
    found = memory(sheet.config, batch=sheet.batch, context=sheet.context)
    return bytes_rows(found, width, palette)


def _shapes(sheet: Sheet, width: int, palette: Palette) -> list[Row]:
    rows = shape_rows(sheet.config, batch=sheet.batch, context=sheet.context)
    return shapes_rows(sheet.config, rows, width, palette)


def _compare(sheet: Sheet, found: Budget, width: int, palette: Palette) -> list[Row]:
    if sheet.held is None:
        words = (
            "v holds this shape. Then change it, or take another preset: both stand here side "
            "by side, part by part. v again lets it go."
        )
        rows = sentence(words, width, palette)
        return [*rows, *blank_rows(1, width, palette.plain), *family_rows(width, palette)]
    name, config = sheet.held
    return compare_rows(budget(config), found, (name, sheet.name), width, palette)
