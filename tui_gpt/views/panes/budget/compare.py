"""Two budgets side by side, part by part."""

from __future__ import annotations

from rich.cells import cell_len
from rich.style import Style

from tui_gpt.records.budget.counts import Budget
from tui_gpt.views.palette import Palette
from tui_gpt.views.panes.budget.table_rows import Cell, heading_row, sentence, table_row
from tui_gpt.views.rows import Row
from tui_gpt.views.text import fit, sanitize
from tui_gpt.views.units import count_text, decimal

_FIRST, _SECOND, _CHANGE = 26, 14, 15
"""Cells of a part's name with its first count, of the second count, of the difference."""


def compare_rows(
    found: Budget, other: Budget, names: tuple[str, str], width: int, palette: Palette
) -> list[Row]:
    """Put two budgets side by side; the difference is the second less the first.

    Args:
        found: The first.
        other: The second.
        names: What each is called; outside text.
        width: Cells of each row.
        palette: For this terminal.
    """
    glyphs = palette.profile.glyphs
    plain, faint, accent, strong = palette.plain, palette.faint, palette.accent, palette.strong
    more = min(10, max(0, width - _FIRST - _SECOND - _CHANGE) // 3)
    left, middle, right = _FIRST + more, _SECOND + more, _CHANGE + more
    titles = [sanitize(name, glyphs) for name in names]
    shown = [t if cell_len(t) < middle else fit(t, middle - 1, glyphs) for t in titles]
    head = [Cell(" part", left - middle, faint), Cell(shown[0], -middle, strong)]
    head += [Cell(shown[1], -middle, strong), Cell("difference", -right, faint)]
    rows = [heading_row("Side by side", width, palette), table_row(head, width, palette)]

    def line(label: str, first: int, second: int, style: Style = plain) -> Row:
        off = second - first
        change = count_text(off, right - 1, signed=True).replace("-", "−") if off else "="
        label = f" {label}" if more else label
        count = count_text(first, left - len(label) - 1)
        cells = [
            Cell(f"{label}{count:>{left - len(label)}}", left, style),
            Cell(count_text(second, middle - 1), -middle, style),
            Cell(change, -right, accent if off else faint),
        ]
        return table_row(cells, width, palette)

    for first, second in zip(found.parts, other.parts, strict=True):
        rows.append(line(first.name, first.count, second.count))
    rows += [
        line("one block", found.per_block, other.per_block),
        line("all blocks", found.blocks, other.blocks),
        line("total", found.total, other.total, accent),
    ]
    a, b = decimal(4 * found.total), decimal(4 * other.total)
    ratio = other.total / found.total
    said = f"float32: {a} and {b}, {ratio:.3g} times"
    for name, sizes in _changes(found, other):
        said += f"; {name} {sizes}"
    return [*rows, *sentence(sanitize(said), width, palette, faint)]


def _changes(found: Budget, other: Budget) -> list[tuple[str, str]]:
    """List the fields of the configs that differ."""
    first, second = found.config.to_dict(), other.config.to_dict()
    return [
        (key, f"{_word(first[key])}, {_word(second[key])}")
        for key in first
        if first[key] != second[key]
    ]


def _word(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)
