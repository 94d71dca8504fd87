"""What the terminal and the host allow, read from the environment once and in one place."""

from __future__ import annotations

import io
from typing import Any

import pytest

from tui_gpt.cli.environment import colour_rung, glyph_set, terminal_profile, threads
from tui_gpt.views.profile import Colour, Glyphs


class FakeStream(io.StringIO):
    """A stream that is a terminal or not, with an encoding of its own."""

    def __init__(self, encoding: str, *, terminal: bool) -> None:
        super().__init__()
        self._encoding = encoding
        self._terminal = terminal

    @property
    def encoding(self) -> str:  # type: ignore[override]  # a plain attribute in the stub
        return self._encoding

    def isatty(self) -> bool:
        return self._terminal


@pytest.mark.parametrize(
    ("environ", "rung"),
    [
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor"}, "truecolor"),
        ({"TERM": "tmux-256color", "COLORTERM": "24bit"}, "truecolor"),
        ({"TERM": "xterm-direct"}, "truecolor"),
        ({"TERM": "xterm-256color"}, "256"),
        ({"TERM": "screen-256color"}, "256"),
        ({"TERM": "xterm-kitty"}, "256"),
        ({"TERM": "screen"}, "16"),
        ({"TERM": "xterm"}, "16"),
        ({"TERM": "linux"}, "16"),
        ({"TERM": "xterm-mono"}, "none"),
        ({"TERM": "dumb", "COLORTERM": "truecolor"}, "none"),
        ({"COLORTERM": "truecolor"}, "none"),
        ({}, "none"),
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor", "NO_COLOR": "1"}, "none"),
        ({"TERM": "xterm-256color", "NO_COLOR": "0"}, "none"),
        ({"TERM": "xterm-256color", "NO_COLOR": ""}, "256"),
    ],
)
def test_the_rung_of_the_ladder_is_what_the_terminal_says(
    environ: dict[str, str], rung: Colour
) -> None:
    assert colour_rung(environ) == rung  # cases D05, D06


@pytest.mark.parametrize(
    ("encoding", "glyphs"),
    [
        ("utf-8", "unicode"),
        ("UTF8", "unicode"),
        ("utf-8-sig", "unicode"),
        ("ascii", "ascii"),
        ("ANSI_X3.4-1968", "ascii"),
        ("cp1252", "ascii"),
        ("iso8859-1", "ascii"),
        (None, "ascii"),
    ],
)
def test_blocks_and_arrows_are_for_streams_that_carry_them(
    encoding: str | None, glyphs: Glyphs
) -> None:
    assert glyph_set(encoding) == glyphs  # cases D08, D25


def test_what_is_no_terminal_gets_no_colour_unless_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("COLORTERM", raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)

    def rung(colour: str, *, terminal: bool) -> Colour:
        stream = FakeStream("utf-8", terminal=terminal)
        return terminal_profile(colour=colour, ascii_only=False, stream=stream).colour

    assert rung("auto", terminal=True) == "256"
    assert rung("auto", terminal=False) == "none"
    assert rung("16", terminal=False) == "16"
    monkeypatch.setenv("NO_COLOR", "1")
    assert rung("auto", terminal=True) == "none"
    assert rung("truecolor", terminal=True) == "truecolor"


def test_ascii_is_obeyed_whatever_the_stream_carries() -> None:
    stream: Any = FakeStream("utf-8", terminal=True)
    assert terminal_profile(colour="none", ascii_only=True, stream=stream).ascii
    assert not terminal_profile(colour="none", ascii_only=False, stream=stream).ascii


@pytest.mark.parametrize(
    ("asked", "variable", "count"),
    [
        (3, "1", 3),
        (None, "1", 1),
        (None, "6", 6),
        (None, "4,2", 4),
        (None, "many", None),
        (None, "0", None),
        (None, "", None),
    ],
)
def test_many_people_share_a_host_so_two_threads_are_the_most_unasked(
    monkeypatch: pytest.MonkeyPatch, asked: int | None, variable: str, count: int | None
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", variable)  # case E03
    assert threads(asked) in ((1, 2) if count is None else (count,))
