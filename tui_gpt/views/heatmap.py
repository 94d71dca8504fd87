"""A matrix as characters: colour and glyph of each cell say how large its value is.

Only the part that is on the screen is ever looked at, so a (1024, 50257) tensor costs what a
(19, 64) one costs. Attention and probabilities run from 0 to 1; everything else runs both
ways from 0, to the largest magnitude in the tensor. Masked, NaN and infinite cells have
marks of their own. A cell that is wide enough holds its number.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style

from tui_gpt.records.tensors import Values
from tui_gpt.views.matrix import Matrix, matrix_of
from tui_gpt.views.numbers import short
from tui_gpt.views.palette import DIVERGING_LEVELS, SEQUENTIAL_LEVELS, Mark, Palette
from tui_gpt.views.rows import Row, padded
from tui_gpt.views.text import fit

__all__ = ["Frame", "Matrix", "frame_for", "heatmap_rows", "legend", "matrix_of", "scrolled"]

NUMBER_CELL = 8
"""Cells a number needs, the blank after it included."""

_MASKED, _NAN, _ABOVE, _BELOW = 100, 101, 102, 103
"""Codes beside the levels, for cells that have none."""

_LONGEST_LABEL = 10
_FEW = 64


@dataclass(frozen=True, slots=True)
class Frame:
    """Which part of a matrix a space shows, and how."""

    label_width: int
    cell_width: int
    rows: int
    """Matrix rows that fit."""
    columns: int
    dense: bool
    """Two matrix rows in each line, as half blocks."""


def frame_for(matrix: Matrix, width: int, height: int, *, dense: bool = False) -> Frame:
    """Decide how a matrix is drawn in a space, its line of column labels included."""
    label_width = _label_width(matrix) + 1
    n_rows, n_columns = matrix.shape
    lines = max(0, height - 1)
    if dense and not matrix.whole:
        label_width = 2 * (label_width - 1) + 2
    room = max(1, width - label_width - 1)  # the last cell is the scroll bar's
    rows = lines * 2 if dense and not matrix.whole else lines
    if not dense and n_columns * NUMBER_CELL <= room:
        cell = NUMBER_CELL
    else:
        cell = next((size for size in (3, 2) if n_columns * size <= room), 1)
    return Frame(
        label_width,
        cell,
        min(rows, n_rows),
        min(room // cell, n_columns),
        dense and not matrix.whole,
    )


def scrolled(first: int, wanted: int, visible: int, total: int) -> int:
    """Move a window as little as needed to show one line: the new first line."""
    if wanted < first:
        first = wanted
    elif wanted >= first + visible:
        first = wanted - visible + 1
    return max(0, min(first, total - visible))


def heatmap_rows(
    matrix: Matrix,
    frame: Frame,
    *,
    top: int,
    left: int,
    cursor: tuple[int, int],
    width: int,
    palette: Palette,
) -> list[Row]:
    """Draw the part of a matrix that a frame shows: column labels, then its rows.

    Args:
        matrix: What to draw.
        frame: From `frame_for`.
        top: First matrix row shown; even where the frame is dense.
        left: First matrix column shown.
        cursor: (row, column) of the cell that is read.
        width: Cells of each row that is returned.
        palette: For this terminal.
    """
    n_rows, n_columns = matrix.shape
    columns = range(left, min(left + frame.columns, n_columns))
    marks = _marks(matrix, palette)
    rows = [_column_header(matrix, frame, columns, cursor[1], palette)]
    last = min(top + frame.rows, n_rows)
    for row in range(top, last, 2 if frame.dense else 1):
        if frame.dense:
            rows.append(_dense_row(matrix, frame, marks, row, columns, cursor, palette))
        else:
            rows.append(_row(matrix, frame, marks, row, columns, cursor, palette))
    bar = _scroll_bar(len(rows) - 1, top, last - top, n_rows, palette)
    return [
        [*padded(row, width - 1, palette.plain), end]
        for row, end in zip(rows, [Segment(" ", palette.plain), *bar], strict=True)
    ]


def legend(matrix: Matrix, low: float, high: float, palette: Palette) -> Row:
    """Show the scale: the marks from the smallest value to the largest, between both."""
    steps = 2 * DIVERGING_LEVELS + 1
    if low == high:
        steps = 1
    values = np.linspace(low, high, steps, dtype=np.float64).astype(np.float32)
    marks = _marks(matrix, palette)
    codes = _codes(values[None], None, matrix)[0]
    return [
        Segment(f"{short(low)} ", palette.plain),
        *(Segment(marks[code].glyph, marks[code].style) for code in codes.tolist()),
        Segment(f" {short(high)}", palette.plain),
    ]


def _label_width(matrix: Matrix) -> int:
    """Find how wide row labels are; of very many, the ends tell."""
    labels = matrix.row_labels
    seen = labels if len(labels) <= _FEW else [*labels[:_FEW], *labels[-_FEW:]]
    return min(max((cell_len(name) for name in seen), default=1), _LONGEST_LABEL)


def _marks(matrix: Matrix, palette: Palette) -> dict[int, Mark]:
    """Give the mark of each code a cell can have."""
    if matrix.sequential:
        marks = dict(enumerate(palette.sequential))
    else:
        marks = {i - DIVERGING_LEVELS: mark for i, mark in enumerate(palette.diverging)}
    return {
        **marks,
        _MASKED: palette.masked,
        _NAN: palette.nan,
        _ABOVE: palette.above,
        _BELOW: palette.below,
    }


def _codes(values: Values, masked: NDArray[np.bool_] | None, matrix: Matrix) -> NDArray[np.int64]:
    """Turn values into levels: 0…8 from nothing to all, or −4…4 around 0, and the marks."""
    if matrix.whole:
        return np.zeros(values.shape, dtype=np.int64)
    levels = SEQUENTIAL_LEVELS - 1 if matrix.sequential else DIVERGING_LEVELS
    low = 0 if matrix.sequential else -levels
    finite = np.isfinite(values)
    share = np.where(finite, values, 0).astype(np.float64) / (matrix.bound or 1.0)
    codes = np.clip(np.rint(share * levels), low, levels).astype(np.int64)
    codes[np.isnan(values)] = _NAN
    codes[np.isposinf(values)] = _ABOVE
    codes[np.isneginf(values)] = _BELOW
    if masked is not None:
        codes[masked] = _MASKED
    return codes


def _codes_of_row(matrix: Matrix, row: int, columns: range) -> list[int]:
    """Give the codes of one row's part; a row that is not held has no values yet."""
    held = row - matrix.first
    if not 0 <= held < matrix.values.shape[0]:
        return [_MASKED] * len(columns)
    part = slice(columns.start, columns.stop)
    masked = None if matrix.masked is None else matrix.masked(range(row, row + 1), columns)
    codes: list[int] = _codes(matrix.values[held : held + 1, part], masked, matrix)[0].tolist()
    return codes


def _row(
    matrix: Matrix,
    frame: Frame,
    marks: dict[int, Mark],
    row: int,
    columns: range,
    cursor: tuple[int, int],
    palette: Palette,
) -> Row:
    """Draw one matrix row in one line, neighbours of one level joined."""
    name = fit(matrix.row_labels[row], frame.label_width - 1, palette.profile.glyphs)
    here = palette.accent if row == cursor[0] else palette.faint
    line: Row = [Segment(name, here), Segment(" ", palette.plain)]
    numbers = frame.cell_width >= NUMBER_CELL
    for column, code in zip(columns, _codes_of_row(matrix, row, columns), strict=True):
        mark = marks[code]
        style = palette.cursor if (row, column) == cursor else mark.style
        if numbers:
            text = _number(matrix, row, column, code, frame.cell_width, mark)
            if matrix.whole and style is not palette.cursor:
                style = palette.plain
            elif style is not palette.cursor:
                style = _readable(style)
        else:
            text = mark.glyph * frame.cell_width
        if line[-1].style is style:
            line[-1] = Segment(line[-1].text + text, style)
        else:
            line.append(Segment(text, style))
    return line


def _number(matrix: Matrix, row: int, column: int, code: int, cell_width: int, mark: Mark) -> str:
    """Write a cell's number right-aligned, or its mark where it has none."""
    if code == _MASKED:
        return mark.glyph * cell_width
    return f"{short(matrix.values[row - matrix.first, column].item()):>{cell_width - 1}} "


def _dense_row(
    matrix: Matrix,
    frame: Frame,
    marks: dict[int, Mark],
    row: int,
    columns: range,
    cursor: tuple[int, int],
    palette: Palette,
) -> Row:
    """Draw two matrix rows in one line: the upper half of each cell and the lower one."""
    below = row + 1 < matrix.shape[0]
    half = frame.label_width // 2 - 1
    line: Row = []
    for i in (row, row + 1):
        name = fit(matrix.row_labels[i], half, palette.profile.glyphs) if i == row or below else ""
        here = palette.accent if i == cursor[0] else palette.faint
        line += [Segment(f"{name:<{half}}", here), Segment(" ", palette.plain)]
    upper = _codes_of_row(matrix, row, columns)
    lower = _codes_of_row(matrix, row + 1, columns) if below else [_MASKED] * len(upper)
    for column, top, bottom in zip(columns, upper, lower, strict=True):
        colours = [marks[code].style.bgcolor for code in (top, bottom)]
        if column == cursor[1] and cursor[0] in (row, row + 1):
            colours[cursor[0] - row] = palette.cursor.bgcolor
        style = Style.from_color(*colours)
        text = "▀" * frame.cell_width
        if line[-1].style == style:
            line[-1] = Segment(line[-1].text + text, style)
        else:
            line.append(Segment(text, style))
    return line


def _column_header(
    matrix: Matrix, frame: Frame, columns: range, chosen: int, palette: Palette
) -> Row:
    """Name the columns: by token where they are positions, by a ruler where they are counted."""
    glyphs = palette.profile.glyphs
    line: Row = [Segment(" " * frame.label_width, palette.plain)]
    cell = frame.cell_width
    if matrix.column_label is not None:
        for column in columns:
            name = matrix.column_label(column)
            text = f"{name:>{cell - 1}} " if cell >= NUMBER_CELL else name
            style = palette.accent if column == chosen else palette.faint
            line.append(Segment(fit(text[:cell] if cell == 1 else text, cell, glyphs), style))
        return line
    if matrix.whole:
        return [*line, Segment(f"{'id':>{cell - 1}} ", palette.faint)]
    digits = len(str(max(columns, default=0) * matrix.bin[1])) + 1
    step = next(size for size in (1, 2, 5, 10, 20, 50, 100) if size * cell >= digits)
    ruler, width = "", cell * len(columns)
    for column in columns:
        number, start = str(column * matrix.bin[1]), cell * (column - columns.start)
        text = f"{number:>{cell - 1}} " if cell >= NUMBER_CELL else number
        # A number that does not fit whole is left out: its first digit would be another one.
        if column % step == 0 and len(ruler) <= start and start + len(text) <= width:
            ruler = ruler.ljust(start) + text
    line.append(Segment(ruler.ljust(width), palette.faint))
    return line


def _scroll_bar(lines: int, top: int, shown: int, total: int, palette: Palette) -> Row:
    """Say which part of the rows is shown, one segment a line; blank where all are."""
    if shown >= total or not lines:
        return [Segment(" ", palette.plain)] * lines
    thumb = max(1, round(lines * shown / total))
    start = round((lines - thumb) * top / (total - shown))
    rail, block = ("|", "#") if palette.profile.ascii else ("│", "█")
    return [
        Segment(block if start <= i < start + thumb else rail, palette.faint) for i in range(lines)
    ]


def _readable(style: Style) -> Style:
    """Set ink on a tile that can be read: dark on bright tiles, white on dark ones."""
    if style.bgcolor is None or style.bgcolor.triplet is None:
        return style
    red, green, blue = style.bgcolor.triplet
    bright = 0.299 * red + 0.587 * green + 0.114 * blue > 120
    return Style(color="#000000" if bright else "#ffffff", bgcolor=style.bgcolor)
