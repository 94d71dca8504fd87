"""Where one number comes from, as rows: place, formula, value, operands, largest terms."""

from __future__ import annotations

from collections.abc import Callable

from rich.cells import cell_len
from rich.segment import Segment

from tui_gpt.records.analyses.explanation import CellRef, Explanation, Operand
from tui_gpt.records.float_format import shortest_float
from tui_gpt.records.stages import POSITION_AXES, Axis, Stage, find_stage
from tui_gpt.records.tokens import Token
from tui_gpt.records.trace import Run
from tui_gpt.views.palette import Palette
from tui_gpt.views.panes.pipeline.term_table import term_rows
from tui_gpt.views.rows import Row, padded
from tui_gpt.views.stage_text import AXIS_WORDS, wrapped
from tui_gpt.views.text import fit, named, transliterate
from tui_gpt.views.text import formula as formula_text

NARROWEST = 40
"""Cells below which the table of terms has no room."""

WIDEST = 100
"""Cells above which nothing more is gained."""

_NAME = 12
"""Cells of the names of the values."""


def explanation_rows(
    explanation: Explanation,
    run: Run,
    *,
    width: int,
    palette: Palette,
    vocabulary: Callable[[int], Token] | None = None,
    chosen: CellRef | None = None,
) -> list[Row]:
    """Write an explanation out.

    Args:
        explanation: Of one cell.
        run: The run it belongs to, for the tokens' names.
        width: Cells of each row, from NARROWEST on.
        palette: For this terminal.
        vocabulary: Gives the token of an id, where the vocabulary is at hand.
        chosen: One of the cells that are named; it is marked wherever it stands.

    Returns:
        Rows of exactly `width` cells, all of them plain text to the terminal.
    """
    glyphs = palette.profile.glyphs
    stage = find_stage(run.stages, explanation.stage)
    place = _place(stage, explanation.index, run, vocabulary, palette)
    rows: list[Row] = [[Segment(line, palette.strong)] for line in _joined(place, width, palette)]
    lines = wrapped(formula_text(explanation.formula, glyphs), width)
    rows += [[Segment(line, palette.accent)] for line in lines]
    if explanation.reason is not None:
        reason = wrapped(transliterate(explanation.reason, glyphs), width)
        rows += [[Segment(line, palette.strong)] for line in reason]
    rows += _values(explanation, palette)
    rows += _operands(explanation.operands, width, palette, chosen)
    if explanation.has_terms:
        rows += term_rows(explanation, run, width, palette, chosen)
    return [padded(row, width, palette.plain) for row in rows]


def cell_name(cell: CellRef) -> str:
    """Write a cell as it would be indexed: `blocks.0.q[1, 4, 7]`."""
    return f"{cell.stage or cell.parameter}{list(cell.index)}"


def _place(
    stage: Stage,
    index: tuple[int, ...],
    run: Run,
    vocabulary: Callable[[int], Token] | None,
    palette: Palette,
) -> list[str]:
    """Say which cell it is, an axis at a time, with its tokens."""
    glyphs = palette.profile.glyphs

    def along(axis: Axis, i: int) -> str:
        if axis == "H":
            return f"L{stage.layer}H{i}"
        words = f"{AXIS_WORDS[axis]} {i}"
        if axis in POSITION_AXES:
            return f"{words} {named(run.tokens[i], glyphs)}"
        if axis == "V" and vocabulary is not None:
            return f"{words} {named(vocabulary(i), glyphs)}"
        return words

    places = [along(axis, i) for axis, i in zip(stage.axes, index, strict=True)]
    return [transliterate(stage.id, glyphs), *places]


def _joined(parts: list[str], width: int, palette: Palette) -> list[str]:
    """Put parts on as few lines as hold them, each cut where it alone is too wide."""
    glyphs = palette.profile.glyphs
    separator = transliterate(" · ", glyphs)
    lines: list[str] = []
    for part in parts:
        if lines and cell_len(lines[-1]) + cell_len(separator) + cell_len(part) <= width:
            lines[-1] += separator + part
        else:
            lines.append(part if cell_len(part) <= width else fit(part, width, glyphs))
    return lines


def _values(explanation: Explanation, palette: Palette) -> list[Row]:
    """Write the recorded value, the one in float64, and how far they are apart."""
    value, wide = explanation.value, explanation.value_float64
    if value is None or wide is None:
        return [_field("value", "none", palette)]
    if isinstance(value, int):
        return [_field("value", str(value), palette)]
    return [
        _field("float32", str(shortest_float(value)), palette),
        _field("float64", str(wide), palette),
        _field("difference", f"{wide - value:.1e}" if wide != value else "0", palette),
    ]


def _field(name: str, text: str, palette: Palette) -> Row:
    return [Segment(f"{name:<{_NAME}}", palette.faint), Segment(text, palette.plain)]


def _operands(
    operands: tuple[Operand, ...], width: int, palette: Palette, chosen: CellRef | None
) -> list[Row]:
    """Write each operand with its value and where it stands; below it where there is no room."""
    glyphs = palette.profile.glyphs
    roles = [transliterate(operand.role, glyphs) for operand in operands]
    values = [_operand_value(operand) for operand in operands]
    role_cells = max((cell_len(role) for role in roles), default=0)
    role_cells = max(role_cells, _NAME - 1)
    value_cells = max((len(value) for value in values), default=0)
    rows: list[Row] = []
    for operand, role, value in zip(operands, roles, values, strict=True):
        mark = chosen is not None and operand.cell == chosen
        row = [
            Segment(fit(role, role_cells, glyphs) + " ", palette.faint),
            Segment(value, palette.cursor if mark else palette.plain),
        ]
        where = "" if operand.cell is None else cell_name(operand.cell)
        style = palette.cursor if mark else palette.faint
        if role_cells + 1 + value_cells + 2 + len(where) <= width:
            gap = " " * (value_cells - len(value) + 2)
            rows.append([*row, Segment(gap, palette.plain), Segment(where, style)])
        else:
            room = width - 2
            shown = where if len(where) <= room else fit(where, room, glyphs, keep_end=True)
            rows += [row, [Segment("  ", palette.plain), Segment(shown, style)]]
    return rows


def _operand_value(operand: Operand) -> str:
    if operand.value is None:
        return "masked"
    if isinstance(operand.value, int):
        return str(operand.value)
    return str(shortest_float(operand.value)) if operand.cell else f"{operand.value:.8g}"
