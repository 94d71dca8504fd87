"""The stage list draws the order of the steps, and what each does to the residual stream."""

from __future__ import annotations

from dataclasses import replace

from conftest import TINY, TINY_2017

from tui_gpt.config import GPTConfig
from tui_gpt.records.stages import stage_table
from tui_gpt.views.palette import palette
from tui_gpt.views.panes.pipeline.stage_list import first_line, list_layout, list_lines, list_rows
from tui_gpt.views.profile import TerminalProfile
from tui_gpt.views.rows import plain_text, width_of

PLAIN = TerminalProfile(colour="none")


def drawn(
    config: GPTConfig, *, width: int = 80, chosen: int = 0, profile: TerminalProfile = PLAIN
) -> list[str]:
    """Draw the whole list for a prompt of five tokens; every row must have one width."""
    lines = list_lines(stage_table(config, 5), config)
    layout = list_layout(lines, width)
    rows = list_rows(
        lines,
        layout,
        first=0,
        height=len(lines),
        index=chosen,
        active=True,
        palette=palette(profile),
    )
    assert {width_of(row) for row in rows} == {layout.width + 1}
    return [plain_text(row) for row in rows]


def test_in_gpt2s_order_each_half_branches_off_at_its_layer_norm() -> None:
    assert drawn(TINY, chosen=9)[:21] == [
        "     tokens            (5)    │",
        " │   embed          (5, 8)  88│",
        " │ ╷ pos_embed      (5, 8) 128│",
        " │ │ block 1 of 2             │",
        " +─╯ resid_pre      (5, 8)    │",
        " ├─╮ ln_1           (5, 8)  16│",
        " │ │ q           (2, 5, 4)  72│",
        " │ │ k           (2, 5, 4)  72│",
        " │ │ v           (2, 5, 4)  72│",
        " │ │ attn_scores (2, 5, 5)    │",
        "▸│ │ pattern     (2, 5, 5)    │",
        " │ │ z           (2, 5, 4)    │",
        " │ │ attn_out       (5, 8)  72│",
        " +─╯ resid_mid      (5, 8)    │",
        " ├─╮ ln_2           (5, 8)  16│",
        " │ │ mlp_pre       (5, 32) 288│",
        " │ │ mlp_post      (5, 32)    │",
        " │ │ mlp_out        (5, 8) 264│",
        " +─╯ resid_post     (5, 8)    │",
        " │   block 2 of 2             │",
        " │   resid_pre      (5, 8)    │",
    ]
    assert drawn(TINY)[-3:] == [
        " │   ln_final       (5, 8)  16│",
        " │   logits        (5, 11)  88│",
        " ╵   probs         (5, 11)    │",
    ]


def test_in_the_order_of_2017_each_half_branches_off_the_stream_itself() -> None:
    assert drawn(TINY_2017)[4:20] == [
        " +─╯ resid_pre      (5, 8)    │",
        " ├─╮ q           (2, 5, 4)  72│",
        " │ │ k           (2, 5, 4)  72│",
        " │ │ v           (2, 5, 4)  72│",
        " │ │ attn_scores (2, 5, 5)    │",
        " │ │ pattern     (2, 5, 5)    │",
        " │ │ z           (2, 5, 4)    │",
        " │ │ attn_out       (5, 8)  72│",
        " +─╯ resid_mid      (5, 8)    │",
        " │   ln_1           (5, 8)  16│",
        " ├─╮ mlp_pre       (5, 32) 288│",
        " │ │ mlp_post      (5, 32)    │",
        " │ │ mlp_out        (5, 8) 264│",
        " +─╯ resid_post     (5, 8)    │",
        " │   ln_2           (5, 8)  16│",
        " │   block 2 of 2             │",
    ]


def test_the_gutter_is_drawn_in_ascii_too() -> None:
    rows = drawn(TINY, chosen=5, profile=TerminalProfile(colour="none", glyphs="ascii"))
    assert rows[2:7] == [
        " | , pos_embed      (5, 8) 128|",
        " | | block 1 of 2             |",
        " +-/ resid_pre      (5, 8)    |",
        " |-\\ ln_1           (5, 8)  16|",
        ">| | q           (2, 5, 4)  72|",
    ]
    assert "".join(rows).isascii()


def test_a_tied_head_says_so_instead_of_a_count() -> None:
    assert drawn(replace(TINY, tied=True))[-2] == " │   logits        (5, 11) tied│"


def test_only_the_chosen_row_is_marked_and_it_shows_who_has_the_keys() -> None:
    lines = list_lines(stage_table(TINY, 5), TINY)
    colours = palette(TerminalProfile())
    for active, style in ((True, colours.chosen), (False, colours.chosen_elsewhere)):
        rows = list_rows(
            lines,
            list_layout(lines, 80),
            first=0,
            height=len(lines),
            index=1,
            active=active,
            palette=colours,
        )
        assert [plain_text(row)[0] for row in rows].count("▸") == 1
        assert {segment.style for segment in rows[1][:-1]} == {style}


def test_shapes_and_counts_are_left_out_where_the_screen_is_narrow() -> None:
    wide, middle, narrow = (drawn(TINY, width=width)[1] for width in (76, 56, 55))
    assert wide.split() == ["│", "embed", "(5,", "8)", "88│"]
    assert middle.split() == ["│", "embed", "(5,", "8)│"]
    assert narrow.split() == ["│", "embed", "│"]


def test_the_window_keeps_two_lines_around_the_chosen_stage() -> None:
    lines = list_lines(stage_table(TINY, 5), TINY)
    last = len(stage_table(TINY, 5)) - 1
    assert first_line(0, lines, 0, 10) == 0
    assert first_line(5, lines, 0, 10) == 0
    assert first_line(0, lines, last, 10) == len(lines) - 10
    # Stage 6 is line 7, below one heading.
    assert first_line(0, lines, 6, 10) == 0
    assert first_line(0, lines, 7, 10) == 1
    assert first_line(9, lines, 7, 10) == 6
