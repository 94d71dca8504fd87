"""Standard output: lines with the colours the profile allows, and pieces of text as they are."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Iterator
from typing import Literal

from rich.console import Console
from rich.text import Text

from tui_gpt.errors import TuiGPTError
from tui_gpt.views.profile import Colour, TerminalProfile

_SYSTEMS: dict[Colour, Literal["truecolor", "256", "standard"]] = {
    "truecolor": "truecolor",
    "256": "256",
    "16": "standard",
}


def write(pieces: Iterable[str]) -> None:
    """Write text to standard output as it comes.

    It is written to by us and not by Rich, which ends the process when a pipe breaks.

    Raises:
        TuiGPTError: It was closed before we started.
    """
    if sys.stdout is None:
        raise TuiGPTError("standard output is closed; there is nowhere to print to")
    for piece in pieces:
        sys.stdout.write(piece)


def drawn(lines: Iterable[Text], profile: TerminalProfile) -> Iterator[str]:
    """Turn lines into text for a terminal; without colour there is no escape sequence at all."""
    if profile.colour == "none":
        for line in lines:
            yield line.plain.rstrip() + "\n"
        return
    console = Console(
        file=io.StringIO(),
        color_system=_SYSTEMS[profile.colour],
        force_terminal=True,
        no_color=False,
        legacy_windows=False,
        _environ={},
    )
    for line in lines:
        line.rstrip()
        with console.capture() as captured:
            console.print(line, soft_wrap=True, markup=False, highlight=False, emoji=False)
        yield captured.get()
