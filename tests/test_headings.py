"""What is said about a stage keeps its sense on every terminal."""

from __future__ import annotations

from dataclasses import replace

import pytest
from conftest import TINY, TINY_2017

from tui_gpt.config import GPTConfig
from tui_gpt.records.stages import stage_table
from tui_gpt.views.palette import palette
from tui_gpt.views.profile import TerminalProfile
from tui_gpt.views.rows import plain_text, width_of
from tui_gpt.views.stage_text import heading, title_row

ASCII = palette(TerminalProfile("none", "ascii"))


@pytest.mark.parametrize("config", [TINY, TINY_2017, replace(TINY, activation="gelu")])
def test_in_ascii_a_product_is_a_star_and_never_a_minus(config: GPTConfig) -> None:
    for stage in stage_table(config, 4):
        rows = heading(stage, config, head=0, width=200, palette=ASCII)
        said = " ".join(plain_text(row) for row in rows)
        assert said.isascii()
        assert said.count("*") == f"{stage.operation}{stage.formula}".count("·")
        assert plain_text(title_row("", stage, [], 120, ASCII)).count("*") == stage.formula.count(
            "·"
        )


def test_a_title_without_room_leaves_the_formula_out_and_keeps_its_width() -> None:
    stage = next(stage for stage in stage_table(TINY, 4) if stage.name == "pattern")
    for width in (12, 30, 60):
        row = title_row(" attention pattern", stage, [], width, ASCII)
        assert width_of(row) == width
        assert ("softmax" in plain_text(row)) == (width == 60)
