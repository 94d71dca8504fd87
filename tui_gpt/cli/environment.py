"""The only place that reads the environment: it becomes a `TerminalProfile`."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from typing import TextIO

from tui_gpt.views.profile import Colour, Glyphs, TerminalProfile

_SIXTEEN = ("linux", "cons25", "eterm", "screen", "tmux", "xterm", "vt100", "vt220", "ansi", "rxvt")


def terminal_profile(*, colour: str, ascii_only: bool, stream: TextIO | None) -> TerminalProfile:
    """Decide what to draw with.

    Args:
        colour: `auto`, or a rung of the ladder that the person asked for.
        ascii_only: The person asked for characters below 128.
        stream: Where the output goes; what is no terminal gets no colour. None is a
            stream that was closed before we started.
    """
    size = shutil.get_terminal_size()
    rung: Colour
    match colour:
        case "truecolor" | "256" | "16" | "none":
            rung = colour
        case _:
            rung = colour_rung(os.environ) if stream and stream.isatty() else "none"
    return TerminalProfile(
        colour=rung,
        glyphs="ascii" if ascii_only else glyph_set(stream.encoding if stream else None),
        width=size.columns,
        height=size.lines,
    )


def colour_rung(environ: Mapping[str, str]) -> Colour:
    """Read the ladder's rung from NO_COLOR, COLORTERM and TERM, as terminals set them.

    NO_COLOR: https://no-color.org, any non-empty value.
    """
    term = environ.get("TERM", "").lower()
    if environ.get("NO_COLOR") or term in ("", "dumb", "unknown") or term.endswith("-mono"):
        return "none"
    if environ.get("COLORTERM", "").lower() in ("truecolor", "24bit") or term.endswith("-direct"):
        return "truecolor"
    if "256color" in term or term in ("xterm-kitty", "alacritty", "foot", "xterm-ghostty"):
        return "256"
    return "16" if term.startswith(_SIXTEEN) or "color" in term else "none"


def glyph_set(encoding: str | None) -> Glyphs:
    """Take blocks and arrows only where the stream can carry them."""
    name = (encoding or "ascii").lower().replace("-", "").replace("_", "")
    return "unicode" if name in ("utf8", "utf8sig", "utf16", "utf32") else "ascii"


def threads(asked: int | None) -> int:
    """Take as many threads as asked for, or as OMP_NUM_THREADS says, or two at most.

    Many people share one host in a class, and small models gain nothing from more.
    """
    if asked is not None:
        return asked
    first = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    if first.isdigit() and int(first) > 0:
        return int(first)
    return min(2, os.cpu_count() or 1)


def has_terminal() -> str | None:
    """Give the reason why nothing can be drawn and no key read, or None if both can."""
    for stream, name in (
        (sys.__stdin__, "standard input"),
        (sys.__stdout__, "standard output"),
        (sys.__stderr__, "standard error"),
    ):
        try:
            if stream is None or not stream.isatty():
                return f"{name} is not a terminal"
        except ValueError:  # closed before we started
            return f"{name} is closed"
    if os.environ.get("TERM", "") in ("", "dumb"):
        return f"TERM is {os.environ.get('TERM', '')!r}, a terminal that cannot move its cursor"
    return None
