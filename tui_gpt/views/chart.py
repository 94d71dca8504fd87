"""Curves, drawn by plotext: the only file that knows of it.

plotext draws on one figure that belongs to the process, so it is cleared, drawn and read under
a lock, and nothing of it is left. Its text is taken without colours. Axes, curve and point are
drawn apart on one scale and laid over each other, so that each gets a style of ours and all
are rounded to the same cells.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from threading import Lock

import numpy as np
import plotext
from numpy.typing import ArrayLike
from rich.segment import Segment
from rich.style import Style

from tui_gpt.records.analyses.feed_forward import Curve
from tui_gpt.views.numbers import short
from tui_gpt.views.palette import Palette
from tui_gpt.views.rows import Row, padded, spread

_FIGURE = Lock()

_BELOW = 1 / 9
"""The share of the height that lies below 0, where nothing needs more."""


def curve_rows(
    curve: Curve,
    *,
    window: tuple[float, float],
    point: tuple[float, float] | None,
    width: int,
    height: int,
    palette: Palette,
) -> list[Row]:
    """Draw an activation with both axes and one point on it.

    Args:
        curve: What to draw.
        window: The smallest and the largest x in sight; 0 is between them.
        point: The (x, y) that is marked; None marks nothing.
        width: Cells of each row.
        height: Rows, two or more; the last one numbers the x axis.
        palette: For this terminal.
    """
    low, high = window
    ascii_only = palette.profile.ascii
    top = float(np.interp(high, curve.x, curve.y))
    scale = _Scale((low, high), (_bottom(top, height - 1), top), width, height - 1, ascii_only)
    upright, level, mark = ("|", "-", "O") if ascii_only else ("│", "─", "●")
    cells = [[(" ", palette.plain)] * width for _ in range(height - 1)]
    _lay(cells, scale.line([0, 0], scale.up), upright, palette.faint)
    zero = next((i for i, (char, _) in enumerate(cells[-1]) if char == upright), 0)
    for i, char in enumerate(short(top), zero + 2):
        if i < width:
            cells[0][i] = (char, palette.faint)
    _lay(cells, scale.line(scale.across, [0, 0]), level, palette.faint)
    # plotext walks a line cell by cell, also where it is out of sight, so no more than this.
    x = np.unique([low, *curve.x[(curve.x > low) & (curve.x < high)], high])
    _lay(cells, scale.line(x, np.interp(x, curve.x, curve.y)), None, palette.stream)
    if point is not None:
        _lay(cells, scale.line(point[:1], point[1:]), mark, palette.cursor)
    return [*(_joined(line) for line in cells), _numbered(low, high, zero, width, palette)]


def series_rows(
    values: Sequence[float | None],
    *,
    first: int,
    ceiling: float,
    at: int,
    width: int,
    height: int,
    palette: Palette,
) -> list[Row]:
    """Draw one number a step, from 0 to a ceiling, the step that is looked at marked.

    Args:
        values: By step; None leaves a gap, and a line is not drawn over it.
        first: The step of the first of them.
        ceiling: The y of the top.
        at: The step that is marked, where it has a number.
        width: Cells of each row.
        height: Rows, two or more; the last one numbers the steps.
        palette: For this terminal.
    """
    ascii_only = palette.profile.ascii
    last = len(values) - 1
    scale = _Scale((0, max(1, last)), (0, ceiling), width, height - 1, ascii_only)
    cells = [[(" ", palette.plain)] * width for _ in range(height - 1)]
    _lay(cells, scale.line(scale.across, [0, 0]), "_" if ascii_only else "▁", palette.faint)
    for start, end in _without_gaps(values):
        steps = range(start, end)
        _lay(cells, scale.line(steps, [values[i] or 0.0 for i in steps]), None, palette.stream)
    marked = values[at - first] if first <= at <= first + last else None
    if marked is not None:
        _lay(cells, scale.line([at - first], [marked]), "O" if ascii_only else "●", palette.cursor)
    ends = spread(
        [Segment(str(first), palette.faint)],
        [Segment(str(first + last) if last > 0 else "", palette.faint)],
        width,
        palette.plain,
    )
    return [*(_joined(line) for line in cells), ends]


def _without_gaps(values: Sequence[float | None]) -> Iterator[tuple[int, int]]:
    """Give each stretch of numbers as (first, end)."""
    start = 0
    for i, value in enumerate([*values, None]):
        if value is None:
            if i > start:
                yield start, i
            start = i + 1


@dataclass(frozen=True, slots=True)
class _Scale:
    """Which x and y fall on which cell."""

    across: tuple[float, float]
    up: tuple[float, float]
    width: int
    height: int
    ascii_only: bool

    def line(self, x: ArrayLike, y: ArrayLike) -> list[str]:
        """Let plotext draw a line through points: `height` lines of exactly `width` cells."""
        with _FIGURE:
            plotext.clear_figure()
            plotext.limit_size(False, False)
            plotext.plotsize(self.width, self.height)
            plotext.theme("clear")
            plotext.frame(False)
            plotext.xfrequency(0)
            plotext.yfrequency(0)
            plotext.xlim(*self.across)
            plotext.ylim(*self.up)
            plotext.plot(
                np.asarray(x).tolist(),
                np.asarray(y).tolist(),
                marker="*" if self.ascii_only else "hd",
            )
            text = str(plotext.uncolorize(plotext.build()))
            plotext.clear_figure()
        return [f"{line:<{self.width}}" for line in text.split("\n")[: self.height]]


def _bottom(top: float, height: int) -> float:
    """Choose the lowest y so that 0 falls on the upper half of a line: a dip then shows below."""
    steps = 2 * height - 1
    zero = 2 * max(0, round((steps * _BELOW - 1) / 2)) + 1
    return -top * zero / (steps - zero) if steps > zero else -top


def _lay(
    cells: list[list[tuple[str, Style]]], lines: list[str], glyph: str | None, style: Style
) -> None:
    """Put a drawing over what is there, glyph by glyph or each cell as one glyph."""
    for row, line in zip(cells, lines, strict=True):
        for i, char in enumerate(line):
            if char != " ":
                row[i] = (glyph or char, style)


def _joined(cells: list[tuple[str, Style]]) -> Row:
    row: Row = []
    for char, style in cells:
        if row and row[-1].style is style:
            row[-1] = Segment(row[-1].text + char, style)
        else:
            row.append(Segment(char, style))
    return row


def _numbered(low: float, high: float, zero: int, width: int, palette: Palette) -> Row:
    """Number the x axis at its ends and at 0."""
    left, right = short(low), short(high)
    line = left.ljust(zero) + "0" if zero > len(left) else left
    line = line.ljust(width - len(right))[: max(0, width - len(right))] + right
    return padded([Segment(line, palette.faint)], width, palette.plain)
