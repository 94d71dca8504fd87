"""Pane 4 as text: the chart by depth, the lens, the identities, and that holes have no digits."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from conftest import TINY, TINY_2017, tiny_gpt
from traces import Broken, Without, a_run, a_token, live

from tui_gpt.analysis.identities import identities
from tui_gpt.analysis.lens import lens
from tui_gpt.analysis.stream import stream
from tui_gpt.config import GPTConfig
from tui_gpt.records.analyses.identities import Identities, Identity
from tui_gpt.records.analyses.lens import Lens, LensPoint
from tui_gpt.records.analyses.output import Ranked, Ranking
from tui_gpt.records.analyses.stream import Stream, StreamPoint, Written, stream_stages
from tui_gpt.records.stages import find_stage
from tui_gpt.records.tokens import Token
from tui_gpt.records.trace import Trace
from tui_gpt.views.palette import palette
from tui_gpt.views.panes.stream.depth_chart import share_text
from tui_gpt.views.panes.stream.identity_rows import identity_list, verdict
from tui_gpt.views.panes.stream.pane import stream_pane, stream_reading
from tui_gpt.views.profile import Colour, Glyphs, TerminalProfile
from tui_gpt.views.rows import plain_text, width_of

ONE = replace(TINY, n_layer=1)
RUN = a_run(ONE, (3, 1, 4))
COLOURLESS = palette(TerminalProfile("none"))


def a_stream() -> Stream:
    """Three depths with round numbers."""
    stages = stream_stages(RUN.stages, ONE)
    norms = ([1.0, 2.0, 3.0], [1.0, 4.0, 4.0], [2.0, 8.0, 2.0])
    cosines = (0.15, None, -0.25)
    shares = (None, [0.5, 1.5, 1.0], [0.02, 0.75, 0.1])
    return Stream(
        ONE,
        3,
        tuple(
            StreamPoint(
                stage,
                None if writer is None or share is None else Written(writer, np.array(share)),
                np.array(norm),
                cosine,
            )
            for (stage, writer), norm, cosine, share in zip(
                stages, norms, cosines, shares, strict=True
            )
        ),
    )


def a_lens() -> Lens:
    rankings = [
        Ranking((Ranked(Token(9, text), 1.0, prob, 1),), nats, (), 0)
        for text, prob, nats in ((b"w", 0.298, 2.574), (b" ", 0.43834, 1.0), (b"\n", 0.9, 0.5))
    ]
    return Lens(
        1,
        tuple(
            LensPoint(stage, ranking)
            for (stage, _), ranking in zip(stream_stages(RUN.stages, ONE), rankings, strict=True)
        ),
    )


def an_identity(stage_id: str, error: float | None, tolerance: float = 1e-6) -> Identity:
    stage = find_stage(a_run(TINY).stages, stage_id)
    claim = f"equals its operation: {stage.operation}"
    if error is None:
        return Identity(stage, claim, "", None, None, None, f"{stage_id} was not recorded: why")
    return Identity(stage, claim, "float32 sums of 8 products", error, tolerance, (3, 5))


def said(found: Identities | None, why_not: str = "", width: int = 200) -> str:
    return " ".join(plain_text(row).strip() for row in verdict(found, why_not, width, COLOURLESS))


def drawn(
    trace: Trace, config: GPTConfig, position: int = 4, width: int = 80, height: int = 20
) -> list[str]:
    model = tiny_gpt(config)
    rows = stream_pane(
        stream(trace),
        lens(trace, model, a_token, position),
        identities(trace, model),
        trace.run.tokens,
        position=position,
        chosen=None,
        width=width,
        height=height,
        palette=COLOURLESS,
    )
    assert len(rows) == height
    assert all(width_of(row) == width for row in rows)
    return [plain_text(row) for row in rows]


def test_the_chart_has_a_row_a_depth() -> None:
    rows = stream_pane(
        a_stream(), a_lens(), None, RUN.tokens,
        position=1, chosen=None, width=80, height=12, palette=COLOURLESS,
    )  # fmt: skip
    assert [plain_text(row).rstrip() for row in rows] == [
        " The stream by depth at “b” (1)",
        "                  norm         cosine written          lens          prob   nats",
        " embedding           2 █▊        0.15                  w            0.298   2.57",
        " block 1 attn        4 ███▌         -   150 % ███████  ␣            0.438   1.00",
        " block 1 FFN         8 ███████  -0.25    75 % ███▌     \\n           0.900   0.50",
        "",
        " norm: length of this position's vector (full bar 8); cosine: mean over pairs",
        " of positions; written: the sub-layer's share of the stream it read (full bar",
        " 150 %); lens: the best next token if the model stopped here",
        "",
        " checking the identities",
        "",
    ]


def test_a_lens_that_is_not_there_yet_is_blank_and_one_that_never_comes_says_why() -> None:
    for why_not in ("", "the weights are not here"):
        rows = stream_pane(
            a_stream(), None, None, RUN.tokens, position=1, chosen=None, no_lens=why_not,
            no_identities=why_not, width=80, height=14, palette=COLOURLESS,
        )  # fmt: skip
        found = [plain_text(row).rstrip() for row in rows]
        assert found[4] == " block 1 FFN         8 ███████  -0.25    75 % ███▌"
        assert (" missing: the lens: the weights are not here" in found) == bool(why_not)
        assert (" identities missing: the weights are not here" in found) == bool(why_not)
        assert (" checking the identities" in found) == (not why_not)


def test_the_verdict_names_the_largest_error_or_the_first_violation() -> None:
    fine = tuple(an_identity("embed", 0.0) for _ in range(40))
    assert said(Identities(fine)) == "all 40 identities hold exactly"
    small = an_identity("blocks.1.mlp_out", 3.14e-7)
    assert said(Identities((*fine, small))) == (
        "all 41 identities hold; largest error 3.1e-07 (mlp_out of block 2)"
    )
    broken = (an_identity("blocks.0.q", 1e-3), an_identity("blocks.1.mlp_out", 2e-3))
    assert said(Identities((*fine, *broken))) == (
        "violated: “q of block 1 equals its operation: linear map, split into heads”, error "
        "1.0e-03 at (3, 5), allowed 1.0e-06: float32 sums of 8 products; 1 other is violated"
    )
    assert "; no other is violated" in said(Identities((*fine, broken[0])))
    assert "; 2 others are violated" in said(Identities((*broken, broken[0])))
    hole = an_identity("blocks.0.z", None)
    assert said(Identities((*fine, small, hole))) == (
        "41 of 42 identities hold; largest error 3.1e-07 (mlp_out of block 2); 1 cannot be "
        "checked, missing: blocks.0.z was not recorded: why"
    )
    assert "error NaN" in said(Identities((an_identity("probs", math.nan),)))
    assert "error infinite" in said(Identities((an_identity("probs", math.inf),)))


def test_a_verdict_is_a_problem_where_something_is_wrong() -> None:
    colours = palette(TerminalProfile("truecolor"))
    for found, problem in (
        (Identities((an_identity("embed", 0.0),)), False),
        (Identities((an_identity("embed", 1.0),)), True),
        (Identities((an_identity("embed", None),)), True),
    ):
        (first, *_) = verdict(found, "", 80, colours)
        assert (first[0].style == colours.problem) == problem


def test_where_not_all_identities_fit_the_telling_ones_are_listed() -> None:
    found = Identities(
        (
            *(an_identity("embed", 0.0) for _ in range(9)),
            an_identity("blocks.0.z", None),
            an_identity("blocks.1.q", 1e-8),
            an_identity("blocks.1.k", 1e-7),
            an_identity("blocks.1.v", 1e-3),
        )
    )
    rows = [plain_text(row).rstrip() for row in identity_list(found, 80, 5, COLOURLESS)]
    assert rows == [
        "    stage                  identity (largest errors first)       error / allowed",
        " NO v, block 2             = linear map, split into heads      1.0e-03 / 1.0e-06",
        "  ? z, block 1             missing: blocks.0.z was not recorded: why",
        " ok k, block 2             = linear map, split into heads      1.0e-07 / 1.0e-06",
        " ok q, block 2             = linear map, split into heads      1.0e-08 / 1.0e-06",
    ]
    assert len(identity_list(found, 80, 40, COLOURLESS)) == 14
    assert identity_list(found, 80, 1, COLOURLESS) == []


@pytest.mark.parametrize("config", [TINY, TINY_2017])
def test_a_hole_has_a_dash_its_reason_and_no_digit(config: GPTConfig) -> None:
    trace = live(config)
    for depth, (stage, _) in enumerate(stream_stages(trace.run.stages, config)):
        found = drawn(Without(trace, stage.id), config, height=40)
        row = found[2 + depth]
        name, values = row[:15], row[15:]
        measured = values[: values.index("%")] if "%" in values else values
        assert not any(char.isdigit() for char in measured.rpartition("  ")[0]), (name, row)
        assert values.rstrip().endswith("-"), row  # the lens
        assert any(line.startswith(f" missing: {stage.id} was not recorded") for line in found)


@pytest.mark.parametrize("config", [TINY, TINY_2017])
def test_what_could_not_be_compared_has_a_dash(config: GPTConfig) -> None:
    trace = Without(live(config), "blocks.0.attn_out")
    found = drawn(trace, config, height=40)
    assert "%" not in found[3]
    assert "%" in found[4]
    assert any(line.startswith(" missing: blocks.0.attn_out was not") for line in found)


def test_what_is_no_number_has_no_bar() -> None:
    trace = Broken(live(TINY), "blocks.0.resid_post", (4, 3), math.nan)  # case C25
    found = drawn(trace, TINY)
    assert found[4].startswith(" block 1 FFN       NaN  ")
    assert "no prediction" in found[4]
    assert "▉" in found[2]
    assert any(line.startswith(" violated: “resid_post of block 1") for line in found)


def test_a_stream_of_zeros_is_drawn_without_dividing_by_them() -> None:
    whole = a_stream()  # case C24
    zeros = tuple(
        replace(
            point,
            norm=np.zeros(3),
            written=None if point.written is None else replace(point.written, share=np.zeros(3)),
        )
        for point in whole.points
    )
    rows = stream_pane(
        replace(whole, points=zeros), None, None, RUN.tokens,
        position=0, chosen=None, width=80, height=12, palette=COLOURLESS,
    )  # fmt: skip
    assert plain_text(rows[3]).rstrip() == " block 1 attn        0              -     0 %"


def test_a_share_may_be_more_than_all() -> None:
    assert [share_text(share) for share in (0.0, 0.004, 0.0756, 0.5, 1.389, 120.0)] == [
        "0 %", "0.4 %", "7.6 %", "50 %", "139 %", "12000 %",
    ]  # fmt: skip
    assert [share_text(share) for share in (None, math.nan, math.inf)] == ["-", "NaN", "inf"]


def test_a_chosen_depth_is_in_sight_and_read_in_words() -> None:
    config = replace(TINY, n_layer=12)
    record = stream(live(config))
    for chosen in range(25):
        rows = stream_pane(
            record, None, None, live(config).run.tokens, position=4, chosen=chosen,
            width=80, height=20, palette=palette(TerminalProfile("truecolor")),
        )  # fmt: skip
        marked = [
            row[1].text.strip()
            for row in rows[2:]
            if len(row) > 2 and row[1].style == palette(TerminalProfile("truecolor")).chosen
        ]
        assert len(marked) == 1
    assert plain_text(rows[0]).rstrip().endswith("rows 9-25 of 25")
    assert plain_text(stream_reading(a_stream(), 1, 1, COLOURLESS)) == (
        " blocks.0.resid_mid  norm 4 · mean 3 · written 1.5"
    )
    hole = replace(a_stream().points[2], norm=None, cosine=None, missing="why")
    record = replace(a_stream(), points=(*a_stream().points[:2], hole))
    assert plain_text(stream_reading(record, 1, 2, COLOURLESS)) == " blocks.0.resid_post  missing"


def test_a_wide_terminal_shows_means_and_every_identity_beside_the_chart() -> None:
    found = drawn(live(TINY), TINY, width=200, height=56)
    assert found[1].count(" mean ") == 2
    assert sum(" ok " in line for line in found) == 44
    assert "│" in found[0]


def test_text_from_outside_only_draws() -> None:
    wild = Lens(1, tuple(
        replace(point, ranking=Ranking((Ranked(Token(1, b"\x1b[2J[/]"), 1.0, 0.5, 1),), 1.0, (), 0))
        for point in a_lens().points
    ))  # fmt: skip
    rows = stream_pane(
        a_stream(), wild, None, RUN.tokens, position=1, chosen=None,
        no_identities="\x1b]0;x\x07 [b]", width=80, height=20, palette=COLOURLESS,
    )  # fmt: skip
    found = "\n".join(plain_text(row) for row in rows)  # cases B12, B14
    assert "\x1b" not in found
    assert "\x07" not in found
    assert "␛[2J[/]" in found
    assert "identities missing: ␛]0;x␇ [b]" in found


@pytest.mark.parametrize("colour", ["truecolor", "256", "16", "none"])
@pytest.mark.parametrize("glyphs", ["unicode", "ascii"])
@pytest.mark.parametrize("config", [TINY, TINY_2017, replace(TINY, n_layer=12)])
def test_the_pane_fills_every_size_exactly(
    config: GPTConfig, colour: Colour, glyphs: Glyphs
) -> None:
    model = tiny_gpt(config)
    trace = live(config, model=model)
    record, read, found = stream(trace), lens(trace, model, a_token, 4), identities(trace, model)
    for width, height in ((80, 20), (200, 56), (140, 30), (139, 30), (60, 12), (44, 12), (30, 2)):
        rows = stream_pane(
            record,
            read,
            found,
            trace.run.tokens,
            position=4,
            chosen=2,
            width=width,
            height=height,
            palette=palette(TerminalProfile(colour, glyphs)),
        )
        assert len(rows) == height
        assert all(width_of(row) == width for row in rows)
        if width < 44:  # the explorer asks for more
            continue
        assert glyphs == "unicode" or all(plain_text(row).isascii() for row in rows)


@pytest.mark.parametrize("width", range(44, 80))
def test_a_narrow_terminal_has_fewer_columns_and_no_cut_number(width: int) -> None:
    model = tiny_gpt(TINY)
    trace = live(TINY, model=model)
    rows = stream_pane(
        stream(trace), lens(trace, model, a_token, 4), None, trace.run.tokens, position=4,
        chosen=None, width=width, height=8, palette=COLOURLESS,
    )  # fmt: skip
    assert not any("…" in plain_text(row) for row in rows)
