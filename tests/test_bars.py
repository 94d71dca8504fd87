"""The lines around a pane say as much as fits, in whole words, in exactly the screen's width."""

from __future__ import annotations

from dataclasses import replace

import pytest
from conftest import TINY
from rich.cells import cell_len
from rich.segment import Segment

from tui_gpt.app.actions import KEPT, hints
from tui_gpt.records.stages import stage_table
from tui_gpt.records.trace import ModelFacts, Run
from tui_gpt.views.bars import footer, reading_bar, tab_bar, title_bar
from tui_gpt.views.numbers import short
from tui_gpt.views.palette import palette
from tui_gpt.views.profile import TerminalProfile
from tui_gpt.views.rows import plain_text, width_of

COLOURFUL = palette(TerminalProfile())
ASCII = palette(TerminalProfile(colour="none", glyphs="ascii"))

PANES = (("1", "Pipeline"), ("2", "Attention"))


def run(prompt: str, name: str = "tiny") -> Run:
    return Run(ModelFacts(name, TINY, 114_560, "folder"), prompt, (), (), stage_table(TINY, 1))


def title(prompt: str, width: int, name: str = "tiny", *, ascii_only: bool = False) -> str:
    row = title_bar(run(prompt, name), width, ASCII if ascii_only else COLOURFUL)
    assert width_of(row) == width
    return plain_text(row)


def test_the_title_names_program_model_and_prompt() -> None:
    assert title("To be", 70) == (
        " tui-gpt  tiny · 2 blocks · 114,560 parameters" + " " * 16 + "“To be” "
    )
    assert title("To be", 70, ascii_only=True).endswith(' "To be" ')
    one = replace(run("x").model, config=replace(TINY, n_layer=1))
    assert "1 block ·" in plain_text(title_bar(replace(run("x"), model=one), 70, COLOURFUL))


def test_a_title_that_does_not_fit_shortens_the_prompt_and_then_the_model() -> None:
    assert title("What light through yonder window", 70).endswith(
        "parameters “What light through y… "
    )
    assert title("What light", 44).startswith(" tiny  ")
    assert title("What light", 44).endswith("“What light” ")
    assert title("日本" * 30, 44).rstrip().endswith("日…")
    assert "…/deep/in/a/folder/of/models" in title(
        "x", 80, "/home/someone/deep/in/a/folder/of/models"
    )
    assert title("What light through yonder window", 70, ascii_only=True).endswith("through y~ ")


@pytest.mark.parametrize("width", range(1, 100, 7))
@pytest.mark.parametrize("ascii_only", [False, True])
def test_the_title_is_as_wide_as_the_screen_whatever_is_in_it(width: int, ascii_only: bool) -> None:
    for prompt in ("", "To be, or not to be", "日本" * 40, "\x1b[2J\x07", "[b]x[/b]"):
        shown = title(prompt, width, "a model 日本 with a long name", ascii_only=ascii_only)
        assert shown.isprintable()
        # Where a row is cut as a whole, the mark becomes ~ on its way to the terminal.
        assert shown.replace("…", "~").isascii() or not ascii_only


def test_tabs_that_do_not_fit_keep_their_digits_and_the_chosen_its_name() -> None:
    row = tab_bar(PANES, "1", 40, COLOURFUL)
    assert plain_text(row).rstrip() == " 1 Pipeline  2 Attention"
    assert row[0].style == COLOURFUL.chosen
    assert row[1].style != COLOURFUL.chosen
    assert plain_text(tab_bar(PANES, "2", 20, COLOURFUL)).rstrip() == " 1  2 Attention"


def test_the_number_that_is_read_is_never_cut_and_the_status_takes_what_is_left() -> None:
    reading = [Segment(" query 18 reads key 16  "), Segment("0.5780084")]
    assert plain_text(reading_bar(reading, "recorded run", 50, COLOURFUL)) == (
        " query 18 reads key 16  0.5780084    recorded run "
    )
    assert plain_text(reading_bar(reading, "recorded run", 40, COLOURFUL)).rstrip() == (
        " query 18 reads key 16  0.5780084"
    )
    assert plain_text(reading_bar(reading, "", 22, COLOURFUL)) == " query 18 re…0.5780084"


HINTS = (("↑↓", "stage"), ("Tab", "cells"), ("[ ]", "head"), ("?", "help"), ("q", "quit"))


def test_the_footer_lists_whole_hints_only() -> None:
    assert plain_text(footer(HINTS, 60, COLOURFUL)).rstrip() == (
        " ↑↓ stage  Tab cells  [ ] head  ? help  q quit"
    )
    assert plain_text(footer(HINTS, 44, COLOURFUL)).rstrip() == (
        " ↑↓ stage  Tab cells  [ ] head  ? help"
    )
    assert plain_text(footer(HINTS, 44, COLOURFUL, keep=2)).rstrip() == (
        " ↑↓ stage  Tab cells  ? help  q quit"
    )
    assert plain_text(footer(HINTS, 60, ASCII)).startswith(" ^v stage  Tab cells ")


@pytest.mark.parametrize("width", [44, 60, 80, 120, 300])
def test_help_and_quit_are_in_every_footer(width: int) -> None:
    for where in ("stages", "cells"):
        row = footer(hints(where), width, COLOURFUL, keep=KEPT)
        assert width_of(row) == width
        assert plain_text(row).rstrip().endswith("? help  q quit")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0"),
        (1.0, "1"),
        (0.1, "0.100"),
        (0.09999999, "0.100"),
        (9.996, "10.0"),
        (-0.00123456, "-1.2e-3"),
        (0.00123456, "0.00123"),
        (12345.6, "12346"),
        (999_999.0, "999999"),
        (-1e6, "-1.0e6"),
        (-1.25e-12, "-1e-12"),
        (-3.4e38, "-3.4e38"),
        (float("nan"), "nan"),
        (float("-inf"), "-inf"),
        (None, "-"),
    ],
)
def test_a_short_number_fits_seven_cells(value: float | None, shown: str) -> None:
    assert short(value) == shown
    assert cell_len(shown) <= 7
