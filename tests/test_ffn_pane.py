"""Pane 3 as text: exact sizes on every terminal, exact words, and no digit where nothing is."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from made_traces import REASON, MadeTrace, a_run, recording
from numpy.typing import NDArray

import tui_gpt
from tui_gpt.analysis.explain.elementwise import activated
from tui_gpt.analysis.feed_forward import curve, feed_forward
from tui_gpt.config import Activation, GPTConfig
from tui_gpt.records.analyses.feed_forward import FeedForward
from tui_gpt.records.tokens import Token
from tui_gpt.records.trace import Run
from tui_gpt.views.chart import curve_rows
from tui_gpt.views.palette import palette
from tui_gpt.views.panes.feed_forward.pane import FeedForwardPanel, ffn_pane
from tui_gpt.views.profile import Colour, Glyphs, TerminalProfile
from tui_gpt.views.rows import plain_text, width_of

RUNGS: tuple[tuple[Colour, Glyphs], ...] = (
    ("truecolor", "unicode"),
    ("256", "unicode"),
    ("16", "unicode"),
    ("none", "unicode"),
    ("truecolor", "ascii"),
    ("none", "ascii"),
)

SIZES = ((80, 20), (200, 56), (44, 8), (64, 18), (63, 17), (100, 9), (120, 40))


def pane(
    record: FeedForward,
    run: Run,
    *,
    rung: tuple[Colour, Glyphs] = ("truecolor", "unicode"),
    size: tuple[int, int] = (80, 20),
    position: int = 18,
    unit: int = 255,
    dense: bool = False,
    top: int = 0,
    left: int = 0,
) -> FeedForwardPanel:
    return ffn_pane(
        record,
        run.model.config,
        run.tokens,
        position=position,
        unit=unit,
        dense=dense,
        top=top,
        left=left,
        width=size[0],
        height=size[1],
        palette=palette(TerminalProfile(*rung)),
    )


def lines(panel: FeedForwardPanel) -> list[str]:
    return [plain_text(row).rstrip() for row in panel.rows]


def units_of(shown: list[str]) -> list[str]:
    """Take the list of units, which is at the left of the lower half of 80 cells."""
    start = next(i for i, line in enumerate(shown) if line.startswith(" unit")) - 1
    return [line[:28].rstrip() for line in shown[start:-2]]


def tokens_of(shown: list[str]) -> list[str]:
    """Take the list of tokens, which is at its right."""
    start = next(i for i, line in enumerate(shown) if line.startswith(" unit")) - 1
    return [line[56:] for line in shown[start:-2]]


def recorded(layer: int = 0, name: str = "shakespeare") -> tuple[FeedForward, Run]:
    trace = recording(name)
    return feed_forward(trace, layer), trace.run


def made(
    pre: NDArray[np.float32],
    post: NDArray[np.float32] | None = None,
    *,
    activation: Activation = "relu",
    hole: str = "",
) -> tuple[FeedForward, Run]:
    """Make up a block from its pre-activations."""
    n_positions, n_units = pre.shape
    config = GPTConfig(
        n_layer=2, n_head=1, n_embd=2, n_inner=n_units, block_size=4096, vocab_size=11,
        activation=activation,
    )  # fmt: skip
    texts = (b"\x1b[2J", b"[b]", b" ")
    tokens = tuple(Token(i, texts[i % 3]) for i in range(n_positions))
    if post is None:
        with np.errstate(invalid="ignore"):
            post = np.vectorize(lambda x: activated(activation, x), otypes=[np.float32])(pre)
    found: dict[str, NDArray[np.float32] | str] = {
        "blocks.0.mlp_pre": pre,
        "blocks.0.mlp_post": post,
    }
    if hole:
        found[hole] = REASON
    run = a_run(config, tokens)
    return feed_forward(MadeTrace(run, found), 0), run


def drawn(n_positions: int, n_units: int) -> NDArray[np.float32]:
    return np.random.default_rng(7).normal(size=(n_positions, n_units)).astype(np.float32)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("rung", RUNGS)
def test_every_row_has_the_width_that_was_asked_for(
    rung: tuple[Colour, Glyphs], size: tuple[int, int]
) -> None:
    odd = drawn(3, 8)
    odd[1] = (np.nan, np.inf, -np.inf, 0, 1e6, 1e-6, -1e6, 3)
    blocks = [recorded(1), recorded(0, "shakespeare-2017"), made(drawn(40, 3072)), made(odd)]
    blocks += [made(drawn(1, 1)), made(np.zeros((4, 4), np.float32), activation="gelu")]
    blocks += [made(drawn(5, 8), hole=f"blocks.0.mlp_{name}") for name in ("pre", "post")]
    for record, run in blocks:
        places = {
            (0, 0),
            (record.n_positions - 1, record.n_units - 1),
            (record.n_positions // 2, 0),
        }
        for position, unit in places:
            for dense in (False, True):
                panel = pane(
                    record, run, rung=rung, size=size, position=position, unit=unit, dense=dense
                )
                assert len(panel.rows) == size[1]
                assert {width_of(row) for row in panel.rows} == {size[0]}
                text = "\n".join(lines(panel))
                assert rung[1] == "unicode" or text.isascii()
                assert not [c for c in text if unicodedata.category(c) == "Cc" and c != "\n"]


def test_the_units_that_fire_are_listed_most_first() -> None:
    record, run = recorded()
    shown = lines(pane(record, run))
    assert shown[0].endswith("L0 unit 255 · 0…255")
    assert units_of(shown) == [
        " “e” (18) fires 19 units",
        " unit     pre    post",
        "▸ 255    1.66    1.58 █████",
        "  193    1.66    1.58 █████",
        "  123    1.30    1.17 ███▌",
        "   16    1.20    1.06 ███▌",
        "  230   0.851   0.683 ██",
        "   79   0.828   0.659 ██",
    ]
    assert tokens_of(shown) == [
        " fires at 4 of 19 tokens",
        " token       post",
        "▸“e” (18)    1.58 █████",
        " “e” (4)     1.48 ████▌",
        " “␣” (16)  0.0268 ▌",
        " “t” (12)  0.0159 ▌",
        "",
        "",
    ]
    assert shown[-2:] == [
        " unit 255 at “e” (18): mlp_pre 1.66 → mlp_post 1.58, rank 1 of 256",
        " off (mlp_post ≤ 0): 93 % at “e” (18), 90 % over all tokens",
    ]


def test_the_chosen_unit_is_in_the_list_wherever_it_ranks() -> None:
    record, run = recorded()
    shown = lines(pane(record, run, unit=37))
    assert units_of(shown)[-2:] == ["    …", "▸  37   -1.64 -0.0834"]
    assert tokens_of(shown)[:4] == [
        " unit 37: 0 of 19 tokens",
        " token       post",
        " …",
        "▸“e” (18) -0.0834",
    ]
    assert shown[-2].endswith("rank 129 of 256")


def test_with_room_the_share_that_is_off_is_explained() -> None:
    record, run = recorded()
    assert lines(pane(record, run, size=(200, 56)))[-1] == (
        " off (mlp_post ≤ 0): 93 % at “e” (18), 90 % over all tokens, 80 units at every one; "
        "a GELU that is off still lets up to −0.17 through"
    )
    record, run = recorded(0, "shakespeare-2017")
    assert "GELU" not in "".join(lines(pane(record, run, size=(200, 56))))
    assert " ReLU(" in "".join(lines(pane(record, run)))


def test_the_smallest_screen_has_the_lists_and_the_numbers() -> None:
    record, run = recorded()
    assert lines(pane(record, run, size=(44, 8), unit=37)) == [
        " feed-forward            L0 unit 37 · 0…255",
        " “e” (18): 19 units    │ at 0 of 19 tokens",
        "  255    1.66    1.58 ▌│ …",
        "  193    1.66    1.58 ▌│▸“e” (18) -0.0834",
        "    …                  │",
        "▸  37   -1.64 -0.0834  │",
        " unit 37 at “e” (18): -1.64 → -0.0834",
        " off: 93 % at “e” (18), 90 % over all tokens",
    ]


def test_the_same_in_ascii() -> None:
    record, run = recorded(0, "shakespeare-2017")
    shown = lines(pane(record, run, rung=("none", "ascii"), position=17, unit=200))
    assert shown[0].startswith(" Block 1 of 2 - feed-forward  max(0, x) ")
    assert shown[1].startswith(" mlp_pre  -3.58 ")
    assert shown[-8].startswith("  143   0.426   0.426 #####")
    assert shown[-3].startswith("> 200   -1.32       0 ")
    assert shown[-2:] == [
        ' unit 200 at "b" (17): mlp_pre -1.32 -> mlp_post 0, rank 202 of 256',
        ' off (mlp_post <= 0): 98 % at "b" (17), 96 % over all tokens',
    ]


def test_the_heatmaps_follow_token_and_unit_together() -> None:
    record, run = made(drawn(50, 3072))
    for position, unit in ((0, 0), (49, 3071), (17, 1500), (18, 33)):
        for dense in (False, True):
            for top, left in ((0, 0), (13, 1499), (43, 3000)):
                panel = pane(
                    record, run, position=position, unit=unit, dense=dense, top=top, left=left
                )
                assert panel.top <= position < panel.top + panel.page
                assert 0 <= panel.left <= unit
                assert not (dense and panel.top % 2)


def test_a_missing_input_leaves_its_reason_and_no_digit() -> None:
    record, run = made(drawn(4, 6), hole="blocks.0.mlp_pre")
    shown = lines(pane(record, run, position=1, unit=2))
    left = "\n".join(line.partition("│")[0] for line in shown[1:6])
    assert "missing: the pass did not offer it" in left
    assert "␛[31m[b]to the tap" in left
    assert not re.search(r"\d\.\d", left.partition("fires")[0])
    assert "mlp_pre missing → mlp_post" in shown[-2]
    assert not any("●" in line for line in shown)
    assert all(re.search(r" +\d +- ", row) for row in units_of(shown)[2:3])


def test_a_missing_output_leaves_its_reason_and_no_digit() -> None:
    record, run = made(drawn(4, 6), hole="blocks.0.mlp_post")
    for size in SIZES:
        shown = lines(pane(record, run, position=1, unit=2, size=size))
        assert "missing: the pass" in "\n".join(shown)
        assert shown[-1].endswith("not known, mlp_post is missing")
        assert "missing" in shown[-2]
        assert "rank" not in shown[-2]
        assert not any("●" in line for line in shown)
    shown = lines(pane(record, run, position=1, unit=2))
    right = "\n".join(line.partition("│")[2] for line in shown[1:6])
    assert not re.search(r"\d\.\d", right)


def test_a_nan_is_named_and_never_counted() -> None:
    pre = drawn(3, 5)
    pre[1, 2] = np.nan
    record, run = made(pre, np.maximum(pre, 0))
    shown = lines(pane(record, run, position=1, unit=2))
    assert shown[-2].endswith("mlp_pre nan → mlp_post nan, rank 5 of 5")
    assert shown[-1] == " off (mlp_post ≤ 0): not known, a value of mlp_post is NaN"
    assert not any("●" in line for line in shown)


def test_tokens_are_drawn_and_never_obeyed() -> None:
    record, run = made(np.ones((3, 4), np.float32))  # cases B12 and B14
    text = "\n".join(lines(pane(record, run, position=0, unit=0)))
    assert "“␛[2J” (0)" in text
    assert "“[b]” (1)" in text
    assert "\x1b" not in text


def test_units_that_all_fire_alike_have_bars_of_one_length() -> None:
    record, run = made(np.ones((3, 4), np.float32))  # case C24
    shown = lines(pane(record, run, position=0, unit=0))
    assert [row[21:] for row in units_of(shown)[2:6]] == [" █████"] * 4
    assert shown[1].split("│")[0].rstrip() == " mlp_pre  1 █ 1"
    record, run = made(np.zeros((3, 4), np.float32))
    shown = lines(pane(record, run, position=0, unit=0))
    assert units_of(shown)[0] == " “␛[2J” (0) fires 0 units"
    assert shown[-1].startswith(" off (mlp_post ≤ 0): 100 % at")


@pytest.mark.parametrize("activation", ["gelu", "gelu_tanh", "relu"])
@pytest.mark.parametrize("rung", RUNGS)
@pytest.mark.parametrize("size", [(2, 2), (9, 3), (26, 7), (60, 20)])
def test_a_curve_fills_its_space_and_its_point_lies_on_it(
    activation: Activation, rung: tuple[Colour, Glyphs], size: tuple[int, int]
) -> None:
    shown = palette(TerminalProfile(*rung))
    mark = "O" if rung[1] == "ascii" else "●"
    found = curve(activation, -9, 9)
    for window in ((-4.0, 4.0), (-9.0, 4.0), (-4.0, 9.0)):
        without = curve_rows(
            found, window=window, point=None, width=size[0], height=size[1], palette=shown
        )
        assert [width_of(row) for row in without] == [size[0]] * size[1]
        plain = [plain_text(row) for row in without]
        assert mark not in "".join(plain)
        for x in (-4.0, -0.75, 0.0, 1.3, 4.0):
            point = (x, activated(activation, x))
            rows = curve_rows(
                found, window=window, point=point, width=size[0], height=size[1], palette=shown
            )
            (place,) = [
                (i, row.index(mark)) for i, row in enumerate(map(plain_text, rows)) if mark in row
            ]
            # The cell it covers is one that the curve had drawn, or one beside it.
            row = plain[place[0]][max(0, place[1] - 1) : place[1] + 2]
            assert set(row) - set(" │─|-.0123456789")


def test_a_chart_shows_what_can_be_checked_by_eye() -> None:
    rows = curve_rows(
        curve("relu", 0, 0),
        window=(-4, 4),
        point=(-2, 0),
        width=25,
        height=8,
        palette=palette(TerminalProfile("none", "ascii")),
    )
    assert [plain_text(row) for row in rows] == [
        "            | 4        **",
        "            |        *** ",
        "            |      ***   ",
        "            |    **      ",
        "            | ***        ",
        "            ***          ",
        "******O******------------",
        "-4          0           4",
    ]


def test_plotext_is_known_to_one_file() -> None:
    package = Path(tui_gpt.__file__).parent
    users = [file.name for file in package.rglob("*.py") if "import plotext" in file.read_text()]
    assert users == ["chart.py"]
