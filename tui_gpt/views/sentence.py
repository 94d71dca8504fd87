"""Sentences about tokens: a token with its place, a share in percent, parts over lines."""

from __future__ import annotations

from collections.abc import Callable

from rich.cells import cell_len
from rich.segment import Segment

from tui_gpt.records.tokens import Token
from tui_gpt.views.palette import Palette
from tui_gpt.views.rows import Row, width_of
from tui_gpt.views.text import fit, label

_LONGEST_TOKEN = 14
"""Cells; a longer token is cut."""


def at_position(tokens: tuple[Token, ...], position: int, palette: Palette) -> str:
    """Name a token of the prompt with its position: “e” (18)."""
    glyphs = palette.profile.glyphs
    name = label(tokens[position], glyphs)
    if cell_len(name) > _LONGEST_TOKEN:
        name = fit(name, _LONGEST_TOKEN, glyphs)
    return f'"{name}" ({position})' if glyphs == "ascii" else f"“{name}” ({position})"


def percent(share: float) -> str:
    """Say a share of 1 in percent, to two or three digits, and never as all or nothing.

    Only 1 itself is 100 % and only 0 is 0 %.
    """
    if share in (0, 1):
        return f"{100 * share:.0f} %"
    if share < 0.0005:
        return "<0.1 %"
    if share < 0.0995:
        return f"{100 * share:.1f} %"
    if share < 0.99:
        return f"{100 * share:.0f} %"
    return ">99.9 %" if share >= 0.9995 else f"{100 * share:.1f} %"


def flowing(
    start: Row,
    count: int,
    part: Callable[[int], Row],
    rest: Callable[[int], Row | None],
    *,
    width: int,
    lines: int,
    palette: Palette,
) -> list[Row]:
    """Write as many parts of a sentence as fit, and then what is left.

    Args:
        start: How the sentence begins.
        count: How many parts there are.
        part: Gives one of them.
        rest: Says what the parts from a number on are, or None where nothing is left to say.
        width: Cells of a line.
        lines: Lines at most.
        palette: For this terminal.

    Returns:
        At most `lines` rows, none wider than `width` unless one part alone is.
    """
    most = min(count, width * lines // 8)
    for shown in range(most, 0, -1):
        last = rest(shown)
        pieces = [part(i) for i in range(shown)]
        rows = _broken(start, pieces if last is None else [*pieces, last], width, palette)
        if len(rows) <= lines:
            return rows
    return _broken(start, [part(i) for i in range(min(1, count))], width, palette)[:lines]


def _broken(start: Row, pieces: list[Row], width: int, palette: Palette) -> list[Row]:
    """Put pieces one after the other with commas, breaking lines between them."""
    rows: list[Row] = [list(start)]
    for i, piece in enumerate(pieces):
        comma = Segment("," if i + 1 < len(pieces) else "", palette.plain)
        if width_of(rows[-1]) + 1 + width_of(piece) + len(comma.text) > width:
            rows.append([])
        rows[-1] += [Segment(" ", palette.plain), *piece, comma]
    return rows


def gauge(share: float, width: int, palette: Palette) -> str:
    """Draw a bar for a share of 0 to 1: nothing for 0, `width` cells for 1, all else between.

    Returns:
        Text of exactly `width` cells.
    """
    full, half = ("#", "") if palette.profile.ascii else ("█", "▌")
    if not share > 0:
        return " " * width
    if half:
        halves = max(1, round(2 * width * min(share, 1)))
        return (full * (halves // 2) + half * (halves % 2)).ljust(width)
    return (full * max(1, round(width * min(share, 1)))).ljust(width)
