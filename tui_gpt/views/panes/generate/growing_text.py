"""A text that grows by one token: what is still read, what fell out, what is new.

What the model no longer reads stands back, before an upright line; what it wrote itself is
coloured, and the new token is the cursor. Characters that are split over several tokens are
shown whole, and bytes that belong to none are written out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style

from tui_gpt.records.tokens import Token, characters_of
from tui_gpt.views.palette import Palette
from tui_gpt.views.rows import Row
from tui_gpt.views.text import label, sanitize

_LOOKED_AT = 4
"""Tokens a cell of room that are looked at from the end: enough for empty and merged ones."""


@dataclass(frozen=True, slots=True)
class GrowingText:
    """A text at one step."""

    tokens: tuple[Token, ...]
    """Prompt, what was written after it, and the new token last, where it is known."""
    n_prompt: int
    first_read: int
    """The first position that the model still reads."""
    has_new: bool
    """The last token is the new one."""
    by_person: frozenset[int] = frozenset()
    """Positions that a person chose."""


def text_rows(text: GrowingText, width: int, height: int, palette: Palette) -> list[Row]:
    """Write the end of a text, as much as fits.

    Returns:
        At most `height` rows, none wider than `width`.
    """
    start = max(0, len(text.tokens) - _LOOKED_AT * width * height)
    mark = "|" if palette.profile.ascii else "▏"
    rows: list[Row] = [[]]
    used = 0
    for piece, style in _pieces(text, start, mark, palette):
        for char in piece:
            cells = cell_len(char)
            if used + cells > width:
                rows.append([])
                used = 0
            row = rows[-1]
            if row and row[-1].style is style:
                row[-1] = Segment(row[-1].text + char, style)
            else:
                row.append(Segment(char, style))
            used += cells
    shown = rows[-height:]
    if len(rows) > height or start:
        shown[0] = _cut_front(shown[0], palette)
    return shown


def _pieces(
    text: GrowingText, start: int, mark: str, palette: Palette
) -> Iterator[tuple[str, Style]]:
    """Give the text as pieces of one style each."""
    tokens, glyphs = text.tokens[start:], palette.profile.glyphs
    last = len(text.tokens) - 1
    for first, end in characters_of(tokens):
        positions = range(start + first, start + end)
        if first and text.first_read in positions and text.first_read > 0:
            yield mark, palette.accent
        words = "".join(_shown(tokens[first:end], palette))
        if text.has_new and last in positions:
            new = label(tokens[first], glyphs) if end - first == 1 else words
            yield new, palette.cursor
        elif positions[0] < text.first_read:
            yield words, palette.faint
        elif text.by_person.intersection(positions):
            yield words, palette.accent
        elif positions[0] >= text.n_prompt:
            yield words, palette.stream
        else:
            yield words, palette.plain


def _shown(tokens: tuple[Token, ...], palette: Palette) -> Iterator[str]:
    """Write tokens that belong together: their text, or what stands for it."""
    glyphs = palette.profile.glyphs
    joined = b"".join(token.bytes for token in tokens)
    try:
        if joined:
            yield sanitize(joined.decode("utf-8"), glyphs)
            return
    except UnicodeDecodeError:
        pass
    yield from (label(token, glyphs) for token in tokens)


def _cut_front(row: Row, palette: Palette) -> Row:
    """Mark that the text begins before this row."""
    if not row or not row[0].text:
        return row
    dots = "~" if palette.profile.ascii else "…"
    text, style, _ = row[0]
    rest = text[1:]
    gap = " " * (cell_len(text[0]) - 1)
    return [Segment(dots + gap, palette.faint), Segment(rest, style), *row[1:]]
