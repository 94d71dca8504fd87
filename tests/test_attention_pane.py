"""Pane 2 as text: exact sizes on every terminal, exact words, and no digit where nothing is."""

from __future__ import annotations

import re
import unicodedata

import numpy as np
import pytest
from made_traces import REASON, MadeTrace, a_run, recording
from rich.cells import cell_len

from tui_gpt.analysis.attention import attention
from tui_gpt.config import GPTConfig
from tui_gpt.records.analyses.attention import Attention
from tui_gpt.records.tokens import Token
from tui_gpt.records.trace import Run
from tui_gpt.views.palette import palette
from tui_gpt.views.panes.attention.pane import AttentionPanel, attention_pane
from tui_gpt.views.panes.attention.small_heads import tiling
from tui_gpt.views.profile import Colour, Glyphs, TerminalProfile
from tui_gpt.views.rows import plain_text, width_of
from tui_gpt.views.sentence import at_position, gauge, percent

RUNGS: tuple[tuple[Colour, Glyphs], ...] = (
    ("truecolor", "unicode"),
    ("256", "unicode"),
    ("16", "unicode"),
    ("none", "unicode"),
    ("truecolor", "ascii"),
    ("none", "ascii"),
)

SIZES = ((80, 20), (200, 56), (44, 8), (64, 14), (63, 13), (100, 9), (120, 40))


def pane(
    record: Attention,
    run: Run,
    *,
    rung: tuple[Colour, Glyphs] = ("truecolor", "unicode"),
    size: tuple[int, int] = (80, 20),
    head: int = 1,
    cell: tuple[int, int] = (18, 16),
    scores: bool = False,
    dense: bool = False,
    top: int = 0,
) -> AttentionPanel:
    return attention_pane(
        record,
        run.model.config,
        run.tokens,
        head=head,
        cell=cell,
        show_scores=scores,
        dense=dense,
        top=top,
        left=0,
        width=size[0],
        height=size[1],
        palette=palette(TerminalProfile(*rung)),
    )


def lines(panel: AttentionPanel) -> list[str]:
    return [plain_text(row) for row in panel.rows]


def recorded(layer: int = 0, name: str = "shakespeare") -> tuple[Attention, Run]:
    trace = recording(name)
    return attention(trace, layer), trace.run


def made(
    n_head: int, n_positions: int, *, hole: str = "", hostile: bool = False
) -> tuple[Attention, Run]:
    """Make up a block: any number of heads, all rows uniform but those of the last head."""
    config = GPTConfig(
        n_layer=12, n_head=n_head, n_embd=n_head, n_inner=4, block_size=4096, vocab_size=11
    )
    texts = (b"\x1b[2J", b"[b]", b"\xf0\x9f", b" a very long token indeed") if hostile else (b"x",)
    tokens = tuple(Token(i, texts[i % len(texts)]) for i in range(n_positions))
    seen = np.tri(n_positions, dtype=np.float32)
    pattern = np.stack([seen / seen.sum(-1, keepdims=True)] * n_head)
    pattern[-1] = np.eye(n_positions)
    scores = np.where(seen > 0, pattern, -np.inf).astype(np.float32)
    run = a_run(config, tokens)
    found: dict[str, np.ndarray | str] = {
        "blocks.0.pattern": pattern,
        "blocks.0.attn_scores": scores,
    }
    if hole:
        found[hole] = REASON
    return attention(MadeTrace(run, found), 0), run


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("rung", RUNGS)
def test_every_row_has_the_width_that_was_asked_for(
    rung: tuple[Colour, Glyphs], size: tuple[int, int]
) -> None:
    blocks = [recorded(1), recorded(0, "shakespeare-2017"), made(12, 64), made(25, 3), made(1, 1)]
    blocks += [made(3, 6, hostile=True), made(2, 5, hole="blocks.0.pattern")]
    blocks += [made(2, 5, hole="blocks.0.attn_scores")]
    for record, run in blocks:
        last = (record.n_positions - 1, 0)
        for scores, dense in ((False, False), (True, True)):
            panel = pane(
                record, run, rung=rung, size=size, head=0, cell=last, scores=scores, dense=dense
            )
            assert len(panel.rows) == size[1]
            assert {width_of(row) for row in panel.rows} == {size[0]}
            text = "\n".join(lines(panel))
            assert rung[1] == "unicode" or text.isascii()
            assert not [c for c in text if unicodedata.category(c) == "Cc" and c != "\n"]


def test_what_a_query_reads_is_said_in_percent() -> None:
    record, run = recorded(1)
    assert [line.rstrip() for line in lines(pane(record, run))[-3:]] == [
        " “e” (18) reads “b” (17) 89 %, “e” (18) 3.9 %, “n” (10) 3.3 %, “t” (14) 0.9 %,",
        " “o” (15) 0.9 %, “␣” (16) 0.7 %, 13 others 1.2 %",
        " entropy 0.538 of at most ln 19 = 2.94 nats",
    ]
    wide = [line.rstrip() for line in lines(pane(record, run, size=(200, 56)))]
    assert wide[-2:] == [
        " “e” (18) reads “b” (17) 89 %, “e” (18) 3.9 %, “n” (10) 3.3 %, “t” (14) 0.9 %, "
        "“o” (15) 0.9 %, “␣” (16) 0.7 %, 13 others 1.2 %",
        " entropy 0.538 of at most ln 19 = 2.94 nats, where all 19 keys it sees are read alike",
    ]
    assert [line.rstrip() for line in lines(pane(record, run, size=(44, 8)))[-2:]] == [
        " “e” (18) reads “b” (17) 89 %",
        " entropy 0.538 of at most ln 19 = 2.94 nats",
    ]


def test_the_same_in_ascii() -> None:
    record, run = recorded(1)
    shown = lines(pane(record, run, rung=("none", "ascii")))
    assert shown[0].startswith(" Block 2 of 2 - attention pattern ")
    assert shown[0].endswith(" L1H1 - head 2 of 4 ")
    assert shown[1].startswith(" mean entropy <= 2.07 nats|")
    assert shown[2].startswith(" L1H0 0.74   >L1H1 1.04   |")
    assert shown[-4].startswith(" 19x19 -> 6x12 by largest |0 .,:;+*%#@ 1  each row adds up to 1")
    assert shown[-2].rstrip() == ' "o" (15) 0.9 %, "_" (16) 0.7 %, 13 others 1.2 %'


def test_with_room_the_row_is_listed_with_its_scores() -> None:
    record, run = recorded(1)
    text = lines(pane(record, run, size=(200, 56)))
    listed = [line.partition("│")[2].rstrip() for line in text]
    start = next(i for i, line in enumerate(listed) if "weight" in line)
    assert listed[start] == " “e” (18) reads    weight     score"
    assert re.fullmatch(r" “b” \(17\) +0\.891 +1\.06 +█{42}▌?█?", listed[start + 1])
    assert listed[start + 2] == " “e” (18)          0.0387     -2.08  ██"
    assert len([line for line in listed[start + 1 : -3] if line.startswith(" “")]) == 19


def test_scores_have_their_own_extremes_and_a_blank_future() -> None:
    record, run = recorded()
    shown = lines(pane(record, run, scores=True))
    assert "attention scores  q · kᵀ / √16" in shown[0]
    scores = recording().tensor("blocks.0.attn_scores").present().reshape(4, -1)[1]
    assert f"-{abs(scores.min()):.1f}" in shown[-4]
    assert f"{scores.max():.2f}  blank: the future" in shown[-4]
    # The sentence tells what is read, whichever of the two is drawn.
    assert shown[-3:] == lines(pane(record, run))[-3:]


@pytest.mark.parametrize(("n_head", "n_positions"), [(12, 64), (25, 12), (25, 300), (16, 2)])
@pytest.mark.parametrize("size", [(80, 20), (200, 56)])
def test_the_chosen_head_is_always_among_the_pictures(
    n_head: int, n_positions: int, size: tuple[int, int]
) -> None:
    record, run = made(n_head, n_positions)
    for head in range(n_head):
        shown = lines(pane(record, run, size=size, head=head, cell=(1, 0)))
        assert sum(f"▸L0H{head} " in line for line in shown) == 1
        assert shown[0].endswith(f" L0H{head} · head {head + 1} of {n_head} ")
    pages = re.search(r"H(\d+)–H(\d+) of (\d+)", "\n".join(shown))
    if pages is not None:
        first, last, total = map(int, pages.groups())
        assert [f"L0H{i} " in "".join(shown) for i in (first, last)] == [True, True]
        assert total == n_head
    else:
        assert all(f"L0H{i} " in "".join(shown[1:]) for i in range(n_head))


def test_pictures_are_as_large_as_fits_and_no_larger() -> None:
    assert tiling(4, 19, 72, 51).across == 19  # each query and key its own
    assert tiling(4, 3, 72, 51).across == 15  # five cells for each
    assert tiling(4, 1024, 72, 51).across > 19
    for n_head in (1, 2, 4, 8, 12, 16, 20, 25):
        for n_positions in (1, 2, 5, 19, 64, 1024):
            for width, height in ((33, 14), (33, 9), (72, 51)):
                found = tiling(n_head, n_positions, width, height)
                assert found.width <= width
                assert found.rows * (found.lines + 1) <= max(height, found.lines + 1)


def test_what_does_not_fit_says_how_it_was_shrunk() -> None:
    record, run = recorded()
    assert "19×19 → 12×12 by largest" in "\n".join(lines(pane(record, run)))
    assert "by largest" not in "\n".join(lines(pane(record, run, size=(200, 56))))
    glyphs = lines(pane(record, run, rung=("none", "ascii"), size=(200, 56)))
    assert " -> 10x19 by largest|" in "\n".join(glyphs)


def test_a_picture_has_the_future_blank_and_the_diagonal_of_a_head_that_reads_itself() -> None:
    record, run = made(2, 8)
    shown = lines(pane(record, run, rung=("16", "unicode"), cell=(7, 0), size=(120, 40)))
    picture = [line.partition("│")[0] for line in shown]
    start = next(i for i, line in enumerate(picture) if "▸L0H1 0.00" in line)
    # Two cells for each of eight keys, a line for each query.
    assert [line[1:17] for line in picture[start + 1 : start + 9]] == [
        "··" * i + "██" + "  " * (7 - i) for i in range(8)
    ]


def test_a_missing_pattern_leaves_its_reason_and_no_digit() -> None:
    record, run = made(2, 5, hole="blocks.0.pattern")
    for size in SIZES:
        for rung in RUNGS:
            shown = lines(pane(record, run, rung=rung, size=size, cell=(4, 0)))
            said = "\n".join(shown[1:])
            assert "missing: the pass" in said
            assert not re.search(r"%|\d\.\d|entropy|reads", said)
    shown = lines(pane(record, run, cell=(4, 0), head=0, scores=True))
    assert re.search(r"0\.200 \S+ 1  blank: the future", "\n".join(shown))


def test_missing_scores_leave_the_pattern_as_it_is() -> None:
    record, run = made(2, 5, hole="blocks.0.attn_scores")
    shown = lines(pane(record, run, cell=(4, 0), scores=True))
    right = "\n".join(line.partition("│")[2] for line in shown[1:-3])
    assert "missing: the pass" in right
    assert not re.search(r"\d\.\d", right)
    assert "20 %" in "".join(shown[-3:]) or "100 %" in "".join(shown[-3:])
    listed = "\n".join(lines(pane(record, run, cell=(4, 0), head=0, size=(120, 40))))
    assert re.search(r"“x” \(0\) +0\.200 +- ", listed)


def test_rows_that_are_no_numbers_say_so() -> None:
    record, run = made(2, 5)
    tensor, scores = record.pattern.tensor, record.scores.tensor
    assert tensor is not None
    assert scores is not None
    values = tensor.values.astype(np.float32)
    values[1, 2, 0] = np.nan
    stages = {"blocks.0.pattern": values, "blocks.0.attn_scores": scores.values.astype(np.float32)}
    broken = attention(MadeTrace(run, stages), 0)
    shown = lines(pane(broken, run, cell=(2, 0)))
    assert "▸L0H1 NaN" in "\n".join(shown)
    assert "L0H0 0.96" in "\n".join(shown)
    assert shown[-3].rstrip() == " “x” (2): its weights are not numbers (NaN or infinite)"
    assert not "".join(shown[-2:]).strip()
    blocked = scores.values.astype(np.float32)
    blocked[1, 2] = -np.inf
    stages["blocks.0.attn_scores"] = blocked
    values[1, 2] = np.nan
    stopped = attention(MadeTrace(run, stages), 0)  # case C01
    shown = lines(pane(stopped, run, cell=(2, 0)))
    assert shown[-3].rstrip() == " “x” (2): blocked: every key it could see is masked"
    large = "\n".join(line.partition("│")[2] for line in shown[1:-3])
    assert not re.search("nan", large, re.IGNORECASE)


def test_one_token_reads_itself() -> None:
    record, run = made(2, 1)  # cases C01 and C24
    shown = lines(pane(record, run, cell=(0, 0)))
    assert shown[-2].rstrip() == " “x” (0) reads “x” (0) 100 %"
    assert shown[-1].rstrip() == " entropy 0 of at most ln 1 = 0 nats"


def test_tokens_are_drawn_and_never_obeyed() -> None:
    record, run = made(2, 4, hostile=True)  # cases B12 and B14
    said = "".join(lines(pane(record, run, head=0, cell=(3, 0)))[-3:])
    assert "“␛[2J” (0) 25 %" in said
    assert "“[b]” (1) 25 %" in said
    assert r"“\xf0\x9f” (2) 25 %" in said
    assert "“␣a␣very␣long␣…” (3)" in said


def test_the_window_follows_the_query_also_where_two_share_a_line() -> None:
    record, run = made(2, 64)
    for query in (0, 1, 17, 30, 31, 62, 63):
        for dense in (False, True):
            for top in (0, 1, 20, 40):
                panel = pane(record, run, cell=(query, 0), dense=dense, top=top, size=(120, 14))
                assert panel.top <= query < panel.top + panel.page
                assert not (dense and panel.top % 2)


@pytest.mark.parametrize(
    ("share", "said"),
    [
        (1, "100 %"), (0.9999, ">99.9 %"), (0.9951, "99.5 %"), (0.989, "99 %"), (0.6621, "66 %"),
        (0.0996, "10 %"), (0.0301, "3.0 %"), (0.0006, "0.1 %"), (0.0001, "<0.1 %"), (0, "0 %"),
    ],
)  # fmt: skip
def test_a_share_is_never_rounded_to_all_or_nothing(share: float, said: str) -> None:
    assert percent(share) == said


@pytest.mark.parametrize(
    ("share", "glyphs", "bar"),
    [
        (0, "unicode", "    "), (1, "unicode", "████"), (0.5, "unicode", "██  "),
        (0.6, "unicode", "██▌ "), (0.001, "unicode", "▌   "), (2, "unicode", "████"),
        (-1, "unicode", "    "), (float("nan"), "unicode", "    "), (0.5, "ascii", "##  "),
        (0.001, "ascii", "#   "),
    ],
)  # fmt: skip
def test_a_bar_is_as_long_as_its_share(share: float, glyphs: Glyphs, bar: str) -> None:
    assert gauge(share, 4, palette(TerminalProfile("none", glyphs))) == bar


def test_a_token_is_named_with_its_place() -> None:
    shown = palette(TerminalProfile())
    tokens = (Token(0, b" "), Token(1, "日".encode() * 9))
    assert at_position(tokens, 0, shown) == "“␣” (0)"
    assert cell_len(at_position(tokens, 1, shown)) <= 14 + 6
    assert at_position(tokens, 0, palette(TerminalProfile("none", "ascii"))) == '"_" (0)'
