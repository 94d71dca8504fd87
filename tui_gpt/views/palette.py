"""The styles of every rung of the colour ladder.

Truecolor and 256 colours share one dark scheme; 16 colours use the terminal's own; without
colour, bold, reverse and underline carry what colour would. On every rung the glyphs of a
heatmap alone tell five steps apart, nine in ASCII, and the sign of a value. Both colour maps
run between blue and a warm tone, which colour-blind people can tell apart, and grow brighter
with the value.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from rich.color import Color
from rich.style import Style

from tui_gpt.views.profile import TerminalProfile

BACKGROUND = "#11151c"
"""Behind everything on the two upper rungs."""

SEQUENTIAL_LEVELS = 9
"""Levels 0 to 8: none of it, to the largest."""

DIVERGING_LEVELS = 4
"""Levels −4 to 4 around 0."""

_SEQUENTIAL = ((22, 28, 44), (30, 60, 118), (34, 116, 150), (92, 184, 122), (250, 231, 85))
_NEGATIVE = ((26, 30, 38), (28, 62, 120), (52, 118, 196), (132, 196, 255))
_POSITIVE = ((26, 30, 38), (112, 58, 22), (198, 108, 36), (255, 196, 110))

_SIXTEEN_SEQUENTIAL = ("blue", "bright_blue", "cyan", "green", "yellow")
_SIXTEEN_NEGATIVE = ("blue", "blue", "cyan", "bright_cyan")
_SIXTEEN_POSITIVE = ("red", "red", "yellow", "bright_yellow")


@dataclass(frozen=True, slots=True)
class Mark:
    """How one level of a heatmap is drawn: a glyph, repeated over the cell, and its style."""

    glyph: str
    style: Style


@dataclass(frozen=True, slots=True)
class Palette:
    """Every style that a screen needs, for one terminal."""

    profile: TerminalProfile
    plain: Style
    faint: Style
    """Beside the point: rulers, hints, separators."""
    strong: Style
    """Headings."""
    accent: Style
    """Numbers and keys that the eye should find."""
    chosen: Style
    """The row or tab that is chosen, in the zone that has the keys."""
    chosen_elsewhere: Style
    """The chosen row, in a zone that does not have the keys."""
    cursor: Style
    """The cell that is read."""
    bar: Style
    """Title and footer."""
    bar_key: Style
    problem: Style
    stream: Style
    """The residual stream's line."""
    branch: Style
    """The lines of its two branches."""
    sequential: tuple[Mark, ...]
    """Levels 0 … SEQUENTIAL_LEVELS − 1."""
    diverging: tuple[Mark, ...]
    """Levels −DIVERGING_LEVELS … DIVERGING_LEVELS."""
    masked: Mark
    nan: Mark
    above: Mark
    """+∞."""
    below: Mark
    """−∞."""


@lru_cache(8)
def palette(profile: TerminalProfile) -> Palette:
    """Choose the styles for a terminal."""
    glyphs = _ascii_glyphs() if profile.ascii else _unicode_glyphs()
    match profile.colour:
        case "truecolor" | "256":
            return _full(profile, glyphs)
        case "16":
            return _sixteen(profile, glyphs)
        case "none":
            return _colourless(profile, glyphs)


@dataclass(frozen=True, slots=True)
class _Glyphs:
    sequential: str
    negative: str
    """Levels −1, −2, … outwards."""
    zero: str
    positive: str
    masked: str
    nan: str
    above: str
    below: str


def _unicode_glyphs() -> _Glyphs:
    return _Glyphs("·░░▒▒▓▓██", "╌─═≡", "·", "░▒▓█", " ", "?", "∞", "∞")


def _ascii_glyphs() -> _Glyphs:
    return _Glyphs(".,:;+*%#@", "-~=%", ".", ":+*#", " ", "?", "^", "v")


def _full(profile: TerminalProfile, glyphs: _Glyphs) -> Palette:
    on = f"on {BACKGROUND}"
    mark = Style.parse(f"bold #ffffff on {'#8a2be2'}")
    return Palette(
        profile=profile,
        plain=Style.parse(f"#d5d9e0 {on}"),
        faint=Style.parse(f"#8b93a1 {on}"),
        strong=Style.parse(f"bold #ffffff {on}"),
        accent=Style.parse(f"bold #ffc66d {on}"),
        chosen=Style.parse("bold #ffffff on #2f5d8c"),
        chosen_elsewhere=Style.parse("#ffffff on #2a3442"),
        cursor=Style.parse("bold #000000 on #ffffff"),
        bar=Style.parse("#c3cad5 on #1f2733"),
        bar_key=Style.parse("bold #ffc66d on #1f2733"),
        problem=Style.parse(f"bold #ff8f70 {on}"),
        stream=Style.parse(f"bold #5fc9b8 {on}"),
        branch=Style.parse(f"#5b7f9e {on}"),
        sequential=tuple(
            Mark(glyph, _tile(_SEQUENTIAL, level / (SEQUENTIAL_LEVELS - 1)))
            for level, glyph in enumerate(glyphs.sequential)
        ),
        diverging=(
            *(
                Mark(glyphs.negative[level - 1], _tile(_NEGATIVE, level / DIVERGING_LEVELS))
                for level in range(DIVERGING_LEVELS, 0, -1)
            ),
            Mark(glyphs.zero, _tile(_POSITIVE, 0)),
            *(
                Mark(glyphs.positive[level - 1], _tile(_POSITIVE, level / DIVERGING_LEVELS))
                for level in range(1, DIVERGING_LEVELS + 1)
            ),
        ),
        masked=Mark(glyphs.masked, Style.parse(on)),
        nan=Mark(glyphs.nan, mark),
        above=Mark(glyphs.above, mark),
        below=Mark(glyphs.below, mark),
    )


def _sixteen(profile: TerminalProfile, glyphs: _Glyphs) -> Palette:
    parse = Style.parse
    return Palette(
        profile=profile,
        plain=Style.null(),
        faint=parse("dim"),
        strong=parse("bold"),
        accent=parse("bold yellow"),
        chosen=parse("bold reverse"),
        chosen_elsewhere=parse("reverse"),
        cursor=parse("bold reverse"),
        bar=parse("reverse"),
        bar_key=parse("bold reverse"),
        problem=parse("bold red"),
        stream=parse("bold cyan"),
        branch=parse("blue"),
        sequential=tuple(
            Mark(glyph, parse(_SIXTEEN_SEQUENTIAL[level // 2]))
            for level, glyph in enumerate(glyphs.sequential)
        ),
        diverging=(
            *(
                Mark(glyphs.negative[level], parse(_SIXTEEN_NEGATIVE[level]))
                for level in range(DIVERGING_LEVELS - 1, -1, -1)
            ),
            Mark(glyphs.zero, parse("dim")),
            *(
                Mark(glyphs.positive[level], parse(_SIXTEEN_POSITIVE[level]))
                for level in range(DIVERGING_LEVELS)
            ),
        ),
        masked=Mark(glyphs.masked, Style.null()),
        nan=Mark(glyphs.nan, parse("bold magenta")),
        above=Mark(glyphs.above, parse("bold magenta")),
        below=Mark(glyphs.below, parse("bold magenta")),
    )


def _colourless(profile: TerminalProfile, glyphs: _Glyphs) -> Palette:
    parse = Style.parse
    plain = Style.null()
    return Palette(
        profile=profile,
        plain=plain,
        faint=plain,
        strong=parse("bold"),
        accent=parse("bold"),
        chosen=parse("bold reverse"),
        chosen_elsewhere=parse("underline"),
        cursor=parse("bold reverse"),
        bar=parse("reverse"),
        bar_key=parse("bold reverse"),
        problem=parse("bold"),
        stream=parse("bold"),
        branch=plain,
        sequential=tuple(Mark(glyph, plain) for glyph in glyphs.sequential),
        diverging=tuple(
            Mark(glyph, plain) for glyph in f"{glyphs.negative[::-1]}{glyphs.zero}{glyphs.positive}"
        ),
        masked=Mark(glyphs.masked, plain),
        nan=Mark(glyphs.nan, parse("bold")),
        above=Mark(glyphs.above, parse("bold")),
        below=Mark(glyphs.below, parse("bold")),
    )


def _tile(anchors: tuple[tuple[int, int, int], ...], share: float) -> Style:
    """Fill a cell with a map's colour, its glyph a shade lighter."""
    red, green, blue = _along(anchors, share)
    ink = (red + (255 - red) // 5, green + (255 - green) // 5, blue + (255 - blue) // 5)
    return Style.from_color(Color.from_rgb(*ink), Color.from_rgb(red, green, blue))


def _along(anchors: tuple[tuple[int, int, int], ...], share: float) -> tuple[int, int, int]:
    """Interpolate between evenly spaced anchors; share runs from 0 to 1."""
    place = share * (len(anchors) - 1)
    i = min(int(place), len(anchors) - 2)
    part = place - i
    red, green, blue = (
        round(low + (high - low) * part)
        for low, high in zip(anchors[i], anchors[i + 1], strict=True)
    )
    return red, green, blue
