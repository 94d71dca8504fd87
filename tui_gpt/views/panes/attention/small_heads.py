"""All heads of a block as little pictures, each with its mean entropy.

A picture is a head's pattern, query by query from top to bottom. Where the terminal has the
colours for it a line holds two queries as half blocks; elsewhere a glyph is a cell. A pattern
that does not fit is shrunk, and the largest weight of each bin is drawn. Blank: the future.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rich.segment import Segment
from rich.style import Style

from tui_gpt.records.analyses.attention import Attention, bins, pooled_by_largest
from tui_gpt.views.palette import SEQUENTIAL_LEVELS, Mark, Palette
from tui_gpt.views.rows import Row, fitted, padded
from tui_gpt.views.text import transliterate
from tui_gpt.views.window import has_halves

_SMALLEST = 8
"""Cells across, below which a picture shows nothing."""

_LARGEST = 64
"""Cells across, beyond which nothing more is told apart."""

_ENLARGED = 16
"""Cells up to which a short pattern is drawn larger."""

_CAPTION = 10
"""Cells of a head's name and its entropy."""


_FLAT = (10, 6)
"""Cells across and half lines of a picture where not all heads fit."""


@dataclass(frozen=True, slots=True)
class Tiling:
    """How the pictures of a block are laid out."""

    columns: int
    rows: int
    """Rows of pictures that are in sight."""
    across: int
    """Cells across a picture, at most."""
    down: int
    """Half lines of a picture, at most."""

    @property
    def lines(self) -> int:
        """Lines of a picture."""
        return -(-self.down // 2)

    @property
    def width(self) -> int:
        """Cells of all columns together."""
        return self.columns * (1 + max(self.across, _CAPTION))


def tiling(n_head: int, n_positions: int, width: int, height: int) -> Tiling:
    """Find the largest square pictures for which all heads fit, or flat ones to page through.

    Args:
        n_head: H.
        n_positions: T.
        width: Cells at most.
        height: Rows at most, without the heading and the note.
    """
    most = min(_LARGEST, n_positions * max(1, _ENLARGED // n_positions))
    best: Tiling | None = None
    for columns in range(1, n_head + 1):
        rows = -(-n_head // columns)
        room = width // columns - 1
        side = min(most, room, 2 * (height // rows - 1))
        fits = room >= _CAPTION and side >= min(most, _SMALLEST)
        if fits and (best is None or side > best.across):
            best = Tiling(columns, rows, side, side)
    if best is not None:
        return best
    across, down = (min(most, size) for size in _FLAT)
    columns = max(1, width // (max(across, _CAPTION) + 1))
    return Tiling(columns, max(1, height // (-(-down // 2) + 1)), across, down)


def small_heads(
    record: Attention, tiles: Tiling, *, head: int, height: int, palette: Palette
) -> list[Row]:
    """Draw the heads: a heading, the pictures, and a note on what was left out.

    Args:
        record: With a pattern.
        tiles: From `tiling`.
        head: The chosen one, which is marked and always in sight.
        height: Rows to return.
        palette: For this terminal.

    Returns:
        `height` rows of exactly `tiles.width` cells.
    """
    all_rows = -(-record.n_head // tiles.columns)
    page = head // tiles.columns // tiles.rows * tiles.rows
    first = max(0, min(page, all_rows - tiles.rows)) * tiles.columns
    end = min(first + tiles.rows * tiles.columns, record.n_head)
    title = transliterate(_title(record, tiles, first, end, palette), palette.profile.glyphs)
    rows: list[Row] = [[Segment(title, palette.faint)]]
    for start in range(first, end, tiles.columns):
        tiles_of_row = [
            _tile(record, tiles, i, chosen=i == head, palette=palette)
            for i in range(start, min(start + tiles.columns, end))
        ]
        for parts in zip(*tiles_of_row, strict=True):
            rows.append([segment for part in parts for segment in part])
    note = transliterate(_note(record, tiles, palette), palette.profile.glyphs)
    rows = fitted(rows, tiles.width, height - 1, palette.plain)
    return [*rows, padded([Segment(note, palette.faint)], tiles.width, palette.plain)]


def head_name(layer: int, head: int) -> str:
    """Give the short name of a head, both numbers from 0."""
    return f"L{layer}H{head}"


def _title(record: Attention, tiles: Tiling, first: int, end: int, palette: Palette) -> str:
    """Say what the numbers are and the most they could be, and which heads are in sight."""
    most = transliterate(f"entropy ≤ {record.ceiling.mean():.2f}", palette.profile.glyphs)
    if end - first < record.n_head:
        shown = f"H{first}–H{end - 1}" if end - first > 1 else f"H{first}"
        return f" {most} · {shown} of {record.n_head}"
    titles = (f" mean {most} nats", f" mean {most}", f" {most}")
    return next((title for title in titles if len(title) <= tiles.width), titles[-1])


def _note(record: Attention, tiles: Tiling, palette: Palette) -> str:
    """Say how the patterns were shrunk; nothing where they were not."""
    n, (down, across) = record.n_positions, _told_apart(record, tiles, palette)
    if (down, across) == (n, n):
        return ""
    shrunk = f" → {down}×{across} by largest"
    whole = f" {n}×{n}{shrunk}"
    return whole if len(whole) < tiles.width else shrunk  # an arrow may take two cells


def _tile(
    record: Attention, tiles: Tiling, head: int, *, chosen: bool, palette: Palette
) -> list[Row]:
    """Draw one head: its caption, then its picture, a mark at the left of the chosen one."""
    width = tiles.width // tiles.columns
    mean = None if record.mean_entropy is None else float(record.mean_entropy[head])
    name = head_name(record.layer, head)
    number = "-" if mean is None else _entropy(mean, width - 2 - len(name))
    style = palette.chosen if chosen else palette.plain
    if mean is not None and math.isnan(mean):
        style = palette.problem
    pointer, rail = (">", "|") if palette.profile.ascii else ("▸", "▎")
    caption = [
        Segment(pointer if chosen else " ", palette.accent),
        *padded([Segment(f"{name} {number}", style)], width - 1, palette.plain),
    ]
    left = Segment(rail if chosen else " ", palette.accent)
    picture = _picture(record, tiles, head, palette)
    return [caption, *([left, *padded(row, width - 1, palette.plain)] for row in picture)]


def _entropy(mean: float, room: int) -> str:
    """Round to as many decimals as fit, two at most."""
    if math.isnan(mean):
        return "NaN"
    return next((text for digits in (2, 1) if len(text := f"{mean:.{digits}f}") <= room), "")


def _told_apart(record: Attention, tiles: Tiling, palette: Palette) -> tuple[int, int]:
    """Count the queries and keys, or bins of them, that a picture tells apart."""
    n = min(record.n_positions, _LARGEST)
    return min(n, tiles.down if has_halves(palette) else tiles.lines), min(n, tiles.across)


def _picture(record: Attention, tiles: Tiling, head: int, palette: Palette) -> list[Row]:
    """Draw one head's pattern, as large as the tiling lets it be."""
    assert record.overview is not None
    whole = record.overview[head]
    halves = has_halves(palette)
    weights = pooled_by_largest(whole, *_told_apart(record, tiles, palette))
    marks = _marks(weights, _future(record.n_positions, whole.shape[0], weights.shape), palette)
    across = tiles.across // weights.shape[1]
    down = (tiles.down if halves else tiles.lines) // weights.shape[0]
    grid = [row for row in marks for _ in range(down)]
    if not halves:
        return [_joined([(mark.glyph, mark.style) for mark in row], across) for row in grid]
    if len(grid) % 2:
        grid.append([palette.masked] * len(grid[0]))
    return [
        _joined(
            [
                ("▀", Style.from_color(above.style.bgcolor, below.style.bgcolor))
                for above, below in zip(upper, lower, strict=True)
            ],
            across,
        )
        for upper, lower in zip(grid[::2], grid[1::2], strict=True)
    ]


def _future(n_positions: int, n_first: int, shape: tuple[int, int]) -> NDArray[np.bool_]:
    """Mark the bins whose first key comes after their last query.

    Args:
        n_positions: T.
        n_first: Bins of the overview.
        shape: Bins of the picture, which are bins of those.
    """
    starts = np.append(bins(n_positions, n_first), n_positions)
    rows, columns = (starts[np.append(bins(n_first, n), n_first)] for n in shape)
    future: NDArray[np.bool_] = columns[None, :-1] >= rows[1:, None]
    return future


def _marks(
    weights: NDArray[np.float32], future: NDArray[np.bool_], palette: Palette
) -> list[list[Mark]]:
    """Give each bin its mark; a weight in the future, which should not be, is drawn."""
    top = SEQUENTIAL_LEVELS - 1
    finite = np.isfinite(weights)
    levels = np.clip(np.rint(np.where(finite, weights, 0) * top), 0, top).astype(np.int64)
    return [
        [
            palette.nan
            if not is_number
            else palette.masked
            if is_future and weight == 0
            else palette.sequential[level]
            for weight, level, is_future, is_number in zip(*rows, strict=True)
        ]
        for rows in zip(
            weights.tolist(), levels.tolist(), future.tolist(), finite.tolist(), strict=True
        )
    ]


def _joined(cells: list[tuple[str, Style]], across: int) -> Row:
    """Draw glyphs, each `across` cells wide, neighbours of one look as one segment."""
    row: Row = []
    for glyph, style in cells:
        if row and row[-1].style == style:
            row[-1] = Segment(row[-1].text + glyph * across, style)
        else:
            row.append(Segment(glyph * across, style))
    return row
