"""Pane 5 as text: what it says, what it leaves out, and that it fits."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from conftest import TINY, tiny_gpt
from rich.segment import Segment
from traces import Broken, Without, a_run, a_token, live

from tui_gpt.analysis.output import output
from tui_gpt.records.analyses.output import NotFinite, Output, Ranked, Ranking
from tui_gpt.records.stages import find_stage
from tui_gpt.records.tokens import Token
from tui_gpt.views.palette import palette
from tui_gpt.views.panes.output import first_shown, output_pane, output_reading, prob_text
from tui_gpt.views.profile import Colour, Glyphs, TerminalProfile
from tui_gpt.views.rows import Row, plain_text, width_of

RUN = a_run(TINY, (3, 1, 4))
COLOURLESS = palette(TerminalProfile("none"))
ASCII = palette(TerminalProfile("none", "ascii"))

BEST = (
    Ranked(Token(1, b" "), 5.906682968139648, 0.6584413647651672, 1),
    Ranked(Token(8, b"h"), 4.139751434326172, 0.11249900609254837, 2),
    Ranked(Token(0, b"\n"), -2.5, 0.00002, 3),
)
RECORD = Output(
    position=1,
    n_positions=3,
    token=a_token(1),
    vocab_size=11,
    ranking=Ranking(BEST, 1.2345, (), 0),
    came=replace(BEST[1], token=a_token(4)),
    missing=(),
    not_finite=None,
)


def lines(record: Output, width: int = 80, height: int = 9, **changes: object) -> list[str]:
    rows = output_pane(
        record,
        RUN.tokens,
        chosen=None,
        width=width,
        height=height,
        palette=ASCII if changes.get("ascii") else COLOURLESS,
    )
    assert len(rows) == height
    assert [width_of(row) for row in rows] == [width] * height
    return [plain_text(row).rstrip() for row in rows]


def test_the_pane_lists_tokens_with_bars_and_says_how_sure_the_model_is() -> None:
    assert lines(RECORD) == [
        " The next token after “b” (1), of 3 positions                     vocabulary 11",
        " rank  token                 id      logit     prob",
        "    1  ␣                      1     5.9067   0.6584  ██████████▌",
        "    2  h                      8     4.1398   0.1125  █▊",
        "    3  \\n                     0    -2.5000    2e-05",
        " entropy 1.23 nats of ln 11 = 2.40  · margin 1.77 to “h”, the runner-up",
        " what really came: “e” (2), rank 2, probability 0.1125",
        "",
        "",
    ]


def test_ascii_terminals_get_the_same_in_ascii() -> None:
    found = lines(RECORD, ascii=True)
    assert all(line.isascii() for line in found)
    assert found[0].startswith(' The next token after "b" (1), of 3 positions')
    assert found[2] == "    1  _                      1     5.9067   0.6584  ###########"


def test_the_token_that_came_is_marked_where_it_is_listed() -> None:
    record = replace(RECORD, came=BEST[1])
    marked = [line for line in lines(record) if line.endswith("came next")]
    assert len(marked) == 1
    assert marked[0].startswith("    2  h")


def test_after_the_last_position_nothing_came() -> None:
    found = lines(replace(RECORD, position=2, token=a_token(4), came=None))
    assert found[0].startswith(" The next token after “e” (2), the last position")
    assert found[6] == " nothing came next: the prompt ends here"


def test_a_row_of_nan_has_a_banner_and_no_first_place() -> None:
    stage = find_stage(RUN.stages, "ln_final")  # case C03
    record = replace(
        RECORD,
        ranking=Ranking((), None, tuple(range(10)), 11),
        came=Ranked(a_token(4), math.nan, math.nan, None),
        not_finite=NotFinite(stage, 3, (0, 0)),
    )
    assert lines(record) == [
        " The next token after “b” (1), of 3 positions                     vocabulary 11",
        " no prediction: all 11 logits are NaN or infinite, so no token is likelier",
        " the first stage with a number that is not finite is ln_final: 3 of 24 cells,",
        " the first at (0, 0)",
        " entropy not known: no probabilities that are numbers",
        " what really came: “e” (2), whose logit is NaN or infinite",
        "",
        "",
        "",
    ]


def test_one_nan_is_flagged_and_the_others_keep_their_places() -> None:
    unsure = tuple(replace(one, prob=math.nan) for one in BEST)
    record = replace(RECORD, ranking=Ranking(unsure, None, (7,), 1), came=unsure[1])
    found = lines(record, height=12)
    assert found[1:3] == [
        " 1 logit is NaN or infinite and not ranked: id 7; softmax over such a row gives",
        " no probabilities",
    ]
    assert found[4] == "    1  ␣                      1     5.9067      NaN"


@pytest.mark.parametrize("name", ["logits", "probs"])
def test_a_hole_is_said_to_be_one_and_has_no_digits(name: str) -> None:
    trace = Without(live(TINY, (3, 1, 4)), name)
    found = lines(output(trace, 1, a_token), height=20)
    assert found[1] == f" missing: {name} was not recorded: a test says so"
    if name == "logits":
        assert found[2] == " what really came: “e” (2), its logit is missing"
        assert not any(found[3:])
    else:
        listed = [line for line in found[3:] if line[:5].strip().isdigit()]
        assert len(listed) == 11
        assert all(line.split()[-1] == "-" for line in listed if "came" not in line)
        assert " entropy not known: no probabilities that are numbers" in found
        assert found[-2:] == ["", ""] or "its probability is missing" in " ".join(found)


def test_broken_weights_show_in_the_pane() -> None:
    model = tiny_gpt(TINY)
    model.lm_head.weight[7, 2] = math.nan
    found = lines(output(live(TINY, (3, 1, 4), model), 1, a_token), height=20)
    assert found[1].startswith(" 1 logit is NaN or infinite and not ranked: id 7;")
    assert "the first stage with a number that is not finite is logits: 3 of 33 cells" in " ".join(
        found
    )


def test_text_from_outside_only_draws() -> None:
    wild = Ranked(Token(5, b"\x1b[2J[/]"), 1.0, 0.5, 1)  # cases B12, B14
    record = replace(RECORD, ranking=Ranking((wild, BEST[1]), 1.0, (), 0))
    record = replace(record, missing=("probs \x1b]0;x\x07 [b]",))
    found = "\n".join(lines(record))
    assert "\x1b" not in found
    assert "\x07" not in found
    assert "␛[2J[/]" in found
    assert "missing: probs ␛]0;x␇ [b]" in found


def test_a_small_probability_is_not_written_as_nothing() -> None:
    assert [prob_text(p) for p in (1.0, 0.5, 0.00005, 0.00004, 0.0, None, math.nan)] == [
        "1.0000", "0.5000", "0.0001", "4e-05", "0", "-", "NaN",
    ]  # fmt: skip


def test_the_reading_has_every_digit_of_a_float32() -> None:
    assert plain_text(output_reading(RECORD, 1, COLOURLESS)) == (
        " rank 2 “h” logit 4.1397514  probability 0.112499006"
    )
    assert output_reading(RECORD, 3, COLOURLESS) == []
    assert output_reading(replace(RECORD, ranking=None), 0, COLOURLESS) == []


def test_the_chosen_candidate_is_in_sight() -> None:
    for count in (1, 5, 50):
        for room in (1, 3, 10):
            for chosen in range(count):
                first = first_shown(count, room, chosen)
                assert 0 <= first <= chosen < first + room
    many = tuple(replace(BEST[0], rank=i + 1, token=a_token(i)) for i in range(50))
    record = replace(RECORD, ranking=Ranking(many, 1.0, (), 0))
    rows = output_pane(record, RUN.tokens, chosen=49, width=80, height=10, palette=COLOURLESS)
    ranks = [plain_text(row)[:5].strip() for row in rows[2:8]]
    assert ranks[0] == "45"
    assert "50" in ranks


@pytest.mark.parametrize("colour", ["truecolor", "256", "16", "none"])
@pytest.mark.parametrize("glyphs", ["unicode", "ascii"])
def test_the_pane_fills_every_size_exactly(colour: Colour, glyphs: Glyphs) -> None:
    trace = live(TINY, (3, 1, 4))
    for record in (output(trace, 1, a_token), output(Broken(trace, "logits", (1, 2)), 2, a_token)):
        for width, height in ((80, 20), (200, 56), (44, 12), (60, 1), (30, 3)):
            rows: list[Row] = output_pane(
                record,
                RUN.tokens,
                chosen=2,
                width=width,
                height=height,
                palette=palette(TerminalProfile(colour, glyphs)),
            )
            assert len(rows) == height
            assert all(width_of(row) == width for row in rows)
            assert all(isinstance(segment, Segment) for row in rows for segment in row)
            if width >= 44:  # the explorer asks for no less
                assert glyphs == "unicode" or all(plain_text(row).isascii() for row in rows)


@pytest.mark.parametrize("width", range(44, 80))
def test_a_narrow_terminal_has_whole_numbers(width: int) -> None:
    listed = lines(RECORD, width=width, height=12)[2:5]
    assert all("…" not in line for line in listed)
    assert listed[0].split()[:5] == ["1", "␣", "1", "5.9067", "0.6584"]
