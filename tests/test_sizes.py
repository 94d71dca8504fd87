"""Every size of terminal: nothing wraps, nothing crashes, and growing brings all of it back."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from explorer import Explorer
from rich.cells import cell_len
from terminal import DOWN, HOME, TAB, UP, Terminal

TOO_SMALL = "Too small: {}x{}, need 44x12"


@pytest.mark.parametrize("size", [(20, 5), (1, 1), (43, 24), (80, 11)])
def test_a_terminal_that_is_too_small_says_what_it_needs_and_can_grow(
    size: tuple[int, int],
) -> None:
    # case D01
    with Terminal(size=size) as terminal:
        said = TOO_SMALL.format(*size)[: size[0]]
        terminal.wait_for(said)
        terminal.resize(80, 24)
        terminal.wait_for(lambda _: " reads key " in terminal.text)
        assert all(said in terminal.text for said in ("1 Pipeline", "attn_scores", "q quit"))


def test_shrinking_and_growing_again_loses_nothing() -> None:
    # case D01
    with Explorer() as explorer:
        explorer.send(TAB)
        explorer.wait_for("Tab stages")
        panel, reading = explorer.panel, explorer.reading
        for size in ((20, 5), (44, 12), (1, 1)):
            explorer.resize(*size)
            explorer.settle(quiet=0.2)
        explorer.send(UP)  # a key goes on working while nothing can be drawn
        explorer.resize(80, 24)
        explorer.wait_for("query 17")
        explorer.send(DOWN)
        explorer.wait_for(lambda _: explorer.reading == reading)
        assert explorer.panel == panel


def test_resizing_while_torch_loads_ends_in_the_right_layout() -> None:
    # case D03
    def first_stage(explorer: Explorer) -> str:
        explorer.press(HOME)
        return explorer.text

    with Explorer() as explorer:
        for size in ((60, 20), (120, 40), (44, 12), (20, 5), (100, 30)):
            explorer.resize(*size)
            explorer.settle(quiet=0.4, most=0.4)
        explorer.wait_for(lambda _: "loading" not in explorer.text)
        resized = first_stage(explorer)
    with Explorer(size=(100, 30)) as explorer:
        explorer.wait_until_loaded()
        assert first_stage(explorer) == resized


@pytest.fixture(scope="module")
def walker() -> Iterator[Explorer]:
    with Explorer() as explorer:
        explorer.wait_until_loaded()
        yield explorer


@pytest.mark.parametrize("size", [(44, 12), (79, 23), (80, 24), (200, 60)])
def test_no_row_is_too_wide_or_too_short_at_any_stage(
    walker: Explorer, size: tuple[int, int]
) -> None:
    columns, lines = size
    walker.resize(*size)
    walker.settle()
    before = len(walker.received)
    walker.press(HOME)
    for i in range(36):
        rows = walker.screen.display
        assert rows[0].rstrip().endswith("”")
        assert rows[-1].startswith(" ↑↓ stage")
        assert "q quit" in rows[-1]
        assert len(walker.panel) == lines - 4, f"the rule is broken at stage {i}"
        walker.press(DOWN, quiet=0.02)
    walker.wait_for("Probabilities", most=5)
    for column, text in written(bytes(walker.received[before:])):
        assert column + cell_len(text) <= columns


def written(sent: bytes) -> Iterator[tuple[int, str]]:
    """Take what was sent apart: the column of each piece of text, and the text."""
    plain = re.sub(rb"\x1b\[[0-9;]*m|\x1b\[\?[0-9;]*[hl]", b"", sent)
    for piece in plain.split(b"\x1b[")[1:]:
        place = re.match(rb"\d+;(\d+)H", piece)
        assert place is not None, f"a sequence that draws nothing: {piece!r}"
        yield int(place[1]) - 1, piece[place.end() :].decode()
