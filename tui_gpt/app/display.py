"""What was drawn last, so that only cells that changed go over the wire.

Textual sends whole regions again. Over a slow link that is what a key costs, so every update
passes here: its cells are compared with those on the terminal, and the difference is sent.
This leans on Textual's compositor; it is the one module that does.
"""

from __future__ import annotations

from rich.cells import cell_len
from rich.color import Color, ColorSystem
from rich.console import Console, RenderableType
from rich.segment import Segment
from rich.style import Style
from textual._compositor import ChopsUpdate, CompositorUpdate, LayoutUpdate
from textual.strip import Strip

from tui_gpt.views.profile import TerminalProfile
from tui_gpt.views.text import transliterate

_BRIDGE = 4
"""Unchanged cells that are sent again rather than jumped over: a jump costs about as much."""

_SYSTEMS = {
    "truecolor": ColorSystem.TRUECOLOR,
    "256": ColorSystem.EIGHT_BIT,
    "16": ColorSystem.STANDARD,
}

_ATTRIBUTES = (("bold", "1"), ("dim", "2"), ("italic", "3"), ("underline", "4"), ("reverse", "7"))

Cell = tuple[str, str, str, str]
"""(character, attributes, foreground, background); a wide character is followed by an empty
one."""


class Terminal:
    """The cells of one terminal, as far as they are known."""

    def __init__(self, profile: TerminalProfile) -> None:
        self._profile = profile
        self._system = _SYSTEMS.get(profile.colour)
        self._codes: dict[Style | None, tuple[str, str, str]] = {}
        self._rows: dict[int, list[Cell | None]] = {}
        self._pen: tuple[str, str, str] = ("", "", "")

    def forget(self) -> None:
        """Send everything again from now on: the terminal was cleared or resized."""
        self._rows.clear()

    def update(self, renderable: RenderableType | None) -> RenderableType | None:
        """Wrap an update of Textual's so that it sends differences only; others pass as is."""
        if isinstance(renderable, LayoutUpdate | ChopsUpdate):
            return _Difference(self, renderable)
        return renderable

    def difference(self, renderable: LayoutUpdate | ChopsUpdate) -> str:
        """Compare an update with what the terminal shows; give what to send."""
        out: list[str] = []
        for x, y, strip in _strips(renderable):
            self._compare(x, y, strip, out)
        if out and self._pen != ("", "", ""):
            out.append("\x1b[0m")
            self._pen = ("", "", "")
        return "".join(out)

    def _compare(self, x: int, y: int, strip: Strip, out: list[str]) -> None:
        cells = self._cells(strip)
        shown = self._rows.setdefault(y, [])
        if len(shown) < x + len(cells):
            shown.extend([None] * (x + len(cells) - len(shown)))
        i, end = 0, len(cells)
        while i < end:
            if cells[i] == shown[x + i]:
                i += 1
                continue
            first = last = i
            while i < end and i - last <= _BRIDGE:
                if cells[i] != shown[x + i]:
                    last = i
                i += 1
            while first and not cells[first][0]:
                first -= 1  # start at a wide character, not inside it
            self._send(x + first, y, cells[first : last + 1], out)
            i = last + 1
        shown[x : x + len(cells)] = cells

    def _send(self, x: int, y: int, cells: list[Cell], out: list[str]) -> None:
        out.append(f"\x1b[{y + 1};{x + 1}H")
        for char, *pen in cells:
            wanted = (pen[0], pen[1], pen[2])
            if wanted != self._pen and char:
                out.append(_change(self._pen, wanted))
                self._pen = wanted
            out.append(char)

    def _cells(self, strip: Strip) -> list[Cell]:
        """Cut a strip into cells, in the characters and colours that the terminal has."""
        cells: list[Cell] = []
        for text, style, control in strip:
            if control:
                continue
            codes = self._codes.get(style)
            if codes is None:
                codes = self._codes[style] = self._style(style)
            if text.isascii() and text.isprintable():
                cells.extend((char, *codes) for char in text)
                continue
            for char in text:
                width = cell_len(char)
                if not char.isprintable():
                    # A widget of Textual's passes what was typed; nothing of it steers us.
                    cells.extend((" ", *codes) for _ in range(width))
                elif self._profile.ascii and not char.isascii():
                    plain = (
                        "~" if char == "…" else transliterate(char, "ascii")
                    )  # as `fit` marks a cut
                    cells.extend((plain if len(plain) == 1 else "?", *codes) for _ in range(width))
                elif width:
                    cells.append((char, *codes))
                    cells.extend(("", *codes) for _ in range(width - 1))
        return cells

    def _style(self, style: Style | None) -> tuple[str, str, str]:
        """Give the codes of a style: attributes, foreground, background."""
        if style is None:
            return "", "", ""
        attributes = ";".join(code for name, code in _ATTRIBUTES if getattr(style, name))
        return attributes, self._colour(style.color, True), self._colour(style.bgcolor, False)

    def _colour(self, colour: Color | None, foreground: bool) -> str:
        if colour is None or colour.is_default or self._system is None:
            return ""
        return ";".join(colour.downgrade(self._system).get_ansi_codes(foreground))


class _Difference(CompositorUpdate):
    """An update that is compared when it is really sent."""

    def __init__(self, terminal: Terminal, renderable: LayoutUpdate | ChopsUpdate) -> None:
        self._terminal = terminal
        self._renderable = renderable

    def render_segments(self, console: Console) -> str:
        return self._terminal.difference(self._renderable)

    def __rich_console__(self, console: Console, options: object) -> list[Segment]:
        return []  # Textual asks for segments as text only


def _change(before: tuple[str, str, str], after: tuple[str, str, str]) -> str:
    """Give the shortest code from one pen to another."""
    attributes, foreground, background = after
    if before[0] != attributes:
        return f"\x1b[{';'.join(part for part in ('0', *after) if part)}m"
    parts: list[str] = []
    if before[1] != foreground:
        parts.append(foreground or "39")
    if before[2] != background:
        parts.append(background or "49")
    return f"\x1b[{';'.join(parts)}m"


def _strips(renderable: LayoutUpdate | ChopsUpdate) -> list[tuple[int, int, Strip]]:
    """Take an update apart: (x, y, strip) of everything it would send."""
    found: list[tuple[int, int, Strip]] = []
    if isinstance(renderable, LayoutUpdate):
        left, top = renderable.region.x, renderable.region.y
        for y, line in enumerate(renderable.strips, top):
            found.append((left, y, Strip.join(list(line))))
        return found
    for y, x1, x2 in renderable.spans:
        for end, (x, strip) in zip(
            renderable.chop_ends[y], renderable.chops[y].items(), strict=False
        ):
            if strip is None or x >= x2 or end <= x1:
                continue
            left, right = max(x, x1), min(end, x2)
            found.append((left, y, strip.crop(left - x, right - x)))
    return found
