"""The budget as rows: exact widths everywhere, and the three names on one screen."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tui_gpt.config import PRESETS, GPTConfig
from tui_gpt.records.budget.counts import budget
from tui_gpt.records.budget.memory import shape_rows
from tui_gpt.views.palette import palette
from tui_gpt.views.panes.budget.compare import compare_rows
from tui_gpt.views.panes.budget.memory import shapes_rows
from tui_gpt.views.panes.budget.pane import SECTIONS, Section, Sheet, budget_pane, budget_reading
from tui_gpt.views.panes.budget.parts import names_rows, parts_rows
from tui_gpt.views.profile import Colour, Glyphs, TerminalProfile
from tui_gpt.views.rows import Row, plain_text, width_of
from tui_gpt.views.units import binary, both, brief, count_text, decimal, two_units

GPT2 = PRESETS["gpt2"]
COLOURLESS = palette(TerminalProfile("none"))
MOST = 2**31 - 1
HUGE = GPTConfig(
    n_layer=10_000, n_head=1, n_embd=MOST, n_inner=MOST, block_size=MOST, vocab_size=MOST
)


def sheet(config: GPTConfig = GPT2, section: Section = "parts", **fields: object) -> Sheet:
    shown = Sheet(
        name="gpt2",
        config=config,
        batch=1,
        context=min(config.block_size, 1024),
        fields=[("from", "gpt2"), ("n_layer", f"{config.n_layer:,}"), ("n_embd", "768")],
        chosen=1,
        section=section,
    )
    return replace(shown, **fields)  # type: ignore[arg-type]  # fields of a Sheet


def text(rows: list[Row]) -> str:
    return "\n".join(plain_text(row).rstrip() for row in rows)


def test_three_names_stand_on_one_screen_with_their_reasons() -> None:
    shown = text(budget_pane(sheet(), width=80, height=20, palette=COLOURLESS))
    assert "│ 117M  the GPT-2 paper's name; no count gives it" in shown
    assert "│▸124M  124,439,808  tied: the head is the token table" in shown
    assert "│ 163M  163,037,184  untied, and in a state dict" in shown
    assert "│ 12 × one block                85,054,464  68.3 %" in shown
    untied = text(names_rows(budget(PRESETS["gpt2-chapter"]), 55, COLOURLESS))
    assert "▸163M  163,037,184" in untied


def test_the_parts_table_reads_word_for_word() -> None:
    rows = [plain_text(row).rstrip() for row in parts_rows(budget(GPT2), 55, COLOURLESS)]
    assert rows == [
        " part            shape         parameters   share",
        " token embedding V·C           38,597,376  31.0 % █████",
        " positions       block_size·C     786,432   0.6 % ▌",
        " 12 blocks, each",
        "   norms         2·(C + C)          3,072  <0.1 % ▌",
        "   q k v         3·(C·C + C)    1,771,776  17.1 % ███",
        "   attention out C·C + C          590,592   5.7 % █",
        "   FFN expand    F·C + F        2,362,368  22.8 % ███▌",
        "   FFN contract  C·F + C        2,360,064  22.8 % ███▌",
        "   one block                    7,087,872",
        " 12 × one block                85,054,464  68.3 %",
        " final norm      C + C              1,536  <0.1 % ▌",
        " head            the token table        0",
        " total                        124,439,808 100.0 %",
    ]
    wide = text(parts_rows(budget(GPT2), 100, COLOURLESS))
    assert "3 × (768 × 768 + 768)" in wide
    assert "50,257 × 768" in wide


@pytest.mark.parametrize("colour", ["truecolor", "256", "16", "none"])
@pytest.mark.parametrize("glyphs", ["unicode", "ascii"])
@pytest.mark.parametrize("config", [GPT2, HUGE, PRESETS["transformer-2017"]])
def test_the_pane_fills_every_size_exactly(
    colour: Colour, glyphs: Glyphs, config: GPTConfig
) -> None:
    styles = palette(TerminalProfile(colour, glyphs))
    for section in SECTIONS:
        for held in (None, ("gpt2-xl", PRESETS["gpt2-xl"])):
            for width, height in ((80, 20), (200, 56), (44, 8), (72, 12), (139, 50), (140, 44)):
                shown = sheet(config, section, held=held, refused="n_embd 6 does not divide")
                rows = budget_pane(shown, width=width, height=height, palette=styles)
                assert len(rows) == height
                assert [width_of(row) for row in rows] == [width] * height
                assert glyphs == "unicode" or text(rows).replace("…", "").isascii()


@pytest.mark.parametrize("name", list(PRESETS))
def test_no_number_of_a_named_shape_is_cut_at_80_columns(name: str) -> None:
    config = PRESETS[name]
    for section in SECTIONS:
        for tied in (True, False):
            held = ("gpt2", GPT2) if section == "compare" else None
            shown = sheet(replace(config, tied=tied), section, held=held, batch=8, context=512)
            rows = budget_pane(shown, width=80, height=20, palette=COLOURLESS)
            assert "…" not in text(rows)
            assert "e9" not in text(rows)


def test_a_wide_screen_shows_everything_at_once() -> None:
    shown = text(budget_pane(sheet(), width=200, height=56, palette=COLOURLESS))
    for wanted in ("Three sizes", "12·L·C²", "KV cache", "attn_scores, pattern", "1600/25 = 64"):
        assert wanted in shown
    held = sheet(held=("gpt2-xl", PRESETS["gpt2-xl"]))
    compared = text(budget_pane(held, width=200, height=56, palette=COLOURLESS))
    assert "Side by side" in compared
    assert "−1,433,171,392" in compared


def test_the_reading_ends_in_the_total() -> None:
    row = budget_reading(sheet(), COLOURLESS)
    assert plain_text(row) == " gpt2 · float32 497.8 MB = 474.7 MiB · parameters 124,439,808"
    assert row[-1].text == "124,439,808"


def test_outside_text_only_draws() -> None:
    wild = sheet(name="\x1b[2J[/]", fields=[("from", "\x1b]0;x\x07[b]")], chosen=0)
    wild = replace(wild, section="compare", held=("\x1b[2J[/]", GPT2))
    for width, height in ((80, 20), (200, 56), (50, 10)):
        shown = text(budget_pane(wild, width=width, height=height, palette=COLOURLESS))
        assert "\x1b" not in shown
        assert "\x07" not in shown
    assert "\x1b" not in plain_text(budget_reading(wild, COLOURLESS))


def test_the_row_that_dwarfs_the_others_is_marked_and_named() -> None:
    shown = text(shapes_rows(GPT2, shape_rows(GPT2, batch=8, context=1024), 55, COLOURLESS))
    assert "▸logits, probs  (8, 1024, 50257)    411,705,344 1.65 GB" in shown
    assert "logits: 1,646,821,376 bytes = 1.65 GB = 1.53 GiB, 4.1" in shown
    assert shown.count("▸") == 1
    alone = text(shapes_rows(GPT2, shape_rows(GPT2, batch=2, context=4), 80, COLOURLESS))
    assert "(4, 768) broadcast" in alone
    assert "one (4, 768) is broadcast over all 2 rows" in alone


def test_equal_shapes_differ_nowhere() -> None:
    found = budget(GPT2)
    rows = compare_rows(found, found, ("a", "b"), 55, COLOURLESS)
    assert [plain_text(row).rstrip()[-1] for row in rows[2:14]] == ["="] * 12


@pytest.mark.parametrize(
    ("n_bytes", "words"),
    [
        (497_759_232, "497.8 MB = 474.7 MiB"),  # case C22
        (248_879_616, "248.9 MB = 237.4 MiB"),
        (6_230_444_800, "6.23 GB = 5.80 GiB"),
        (999, "999 B"),
        (1000, "1.00 kB = 0.98 KiB"),
        (999_960, "1.00 MB = 0.95 MiB"),
    ],
)
def test_c22_units_are_spelled_right(n_bytes: int, words: str) -> None:
    assert both(n_bytes) == words


def test_both_units_come_from_one_number() -> None:
    assert two_units(652_038_144) == (
        "652,038,144 bytes / 1000^2 = 652.04 MB; / 1024^2 = 621.83 MiB"
    )
    assert (decimal(10**19), binary(512)) == ("10.0 EB", "512 B")
    assert [brief(n) for n in (205_852_672, 50_331_648, 1_646_821_376)] == [
        "206 MB", "50.3 MB", "1.65 GB",
    ]  # fmt: skip


def test_a_count_without_room_is_rounded() -> None:
    assert count_text(1_557_611_200, 13) == "1,557,611,200"
    assert count_text(1_557_611_200, 11) == "1.558e9"
    assert count_text(-5, 4, signed=True) == "-5"
    assert count_text(10**30, 12, signed=True) == "+1.000e30"
