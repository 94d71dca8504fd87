"""Pane 7 as text: what it says at each step, that it fits everywhere, and what its keys do."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import pytest
from conftest import TINY, tiny_gpt
from traces import a_run, a_token, live

from tui_gpt.analysis.generation import Stepper
from tui_gpt.app.panes.generate import (
    Companion,
    CompanionOf,
    GeneratePane,
    StepOf,
    generation_place_of,
    with_candidate,
)
from tui_gpt.app.place.generation import OPTIONS, RUN_STEPS, SPEEDS, GenerationPlace, beside_models
from tui_gpt.app.place.moves import MOVES
from tui_gpt.app.place.place import Place
from tui_gpt.errors import MissingStage, NothingToChoose
from tui_gpt.records.analyses.generation import CacheCheck, GenerationStep, Sampling, Walk
from tui_gpt.records.tokens import Token
from tui_gpt.views.palette import palette
from tui_gpt.views.panes.generate.candidate_rows import candidate_rows, head_row
from tui_gpt.views.panes.generate.growing_text import GrowingText, text_rows
from tui_gpt.views.panes.generate.pane import Sheet, generate_pane, generate_reading
from tui_gpt.views.panes.generate.step_facts import Side
from tui_gpt.views.profile import Colour, Glyphs, TerminalProfile
from tui_gpt.views.rows import plain_text, width_of

RUN = a_run(TINY, (3, 1, 4, 1, 5))
COLOURLESS = palette(TerminalProfile("none"))
ASCII = palette(TerminalProfile("none", "ascii"))

WARM = Sampling(temperature=0.7, top_k=4)


def a_stepper() -> Stepper:
    return Stepper(tiny_gpt(), a_token)


def walked(count: int, *, sampling: Sampling | None = None) -> Walk:
    """Take steps from the prompt, and stand at the last."""
    walk, stepper = Walk(RUN.tokens), a_stepper()
    for number in range(count):
        ids = [token.id for token in walk.read]
        step = stepper.step(ids, number, sampling=sampling or Sampling())
        walk = walk.taken(walk.current, step).forward()
    return walk.back()


def a_sheet(walk: Walk, **changes: object) -> Sheet:
    """What the pane shows of a walk."""
    sheet = Sheet(
        main=Side("tiny", TINY, walk),
        other=None,
        beside="",
        no_other="",
        chosen=None,
        options=GenerationPlace(walk).values(),
        option=None,
        running=False,
    )
    return replace(sheet, **changes)  # type: ignore[arg-type]  # a field each


def lines(sheet: Sheet, width: int = 80, height: int = 20, *, ascii: bool = False) -> list[str]:
    rows = generate_pane(sheet, width=width, height=height, palette=ASCII if ascii else COLOURLESS)
    assert len(rows) == height
    assert [width_of(row) for row in rows] == [width] * height
    return [plain_text(row).rstrip() for row in rows]


def said(sheet: Sheet, width: int = 80, height: int = 20) -> str:
    """Give the whole pane as one sentence, for words that wrap."""
    return " ".join(" ".join(lines(sheet, width, height)).split())


# What it says ------------------------------------------------------------------------------


def test_a_step_says_who_it_chose_and_what_it_read() -> None:
    walk = walked(3)
    assert walk.shown is not None
    found = lines(a_sheet(walk))
    name = chr(0x61 + walk.shown.token.id)
    assert found[0] == f" Step 2: “{name}” greedy"
    assert found[1] == " reads 0…6: 7 of 16 positions"
    assert found[2] == " " + "".join(
        chr(0x61 + token.id) for token in (*walk.read, walk.shown.token)
    )
    assert found[-1] == (
        " temperature 0  top-k –  top-p –  seed 123  speed 5/s  cache on  beside –"
    )


def test_candidates_are_bars_with_both_markers_on_their_rows() -> None:
    step = walked(1).shown
    assert step is not None
    rows = [
        plain_text(row).rstrip()
        for row in candidate_rows(
            step, None, chosen=None, has_keys=True, width=80, height=4, palette=COLOURLESS
        )
    ]
    best = step.ranking.best
    assert rows[0].startswith(f"▸ {chr(0x61 + best[0].token.id)} ")
    assert rows[0].endswith("◂logit ◂softmax")
    assert all("◂" not in row for row in rows[1:])
    for row, one in zip(rows, best, strict=False):
        assert f"{one.logit:.4f}" in row
        assert f"{one.prob:.4f}" in row


def test_the_two_markers_stand_apart_where_the_two_differ() -> None:
    step = walked(1).shown
    assert step is not None
    apart = replace(step, argmax_probs=step.ranking.best[2].token.id)
    rows = [
        plain_text(row)
        for row in candidate_rows(
            apart, None, chosen=None, has_keys=True, width=80, height=4, palette=COLOURLESS
        )
    ]
    assert "◂logit" in rows[0]
    assert "◂softmax" not in rows[0]
    assert "◂softmax" in rows[2]


def test_what_if_bars_stand_beside_the_greedy_ones_and_cut_tokens_have_none() -> None:
    walk = walked(1)
    step = walk.shown
    assert step is not None
    reshaped = a_stepper().what_if([token.id for token in RUN.tokens], 0, WARM)
    head = plain_text(head_row(reshaped, 100, COLOURLESS))
    assert "prob from 0 to 1" in head
    assert "what-if reshaped" in head
    rows = [
        plain_text(row)
        for row in candidate_rows(
            step, reshaped, chosen=None, has_keys=True, width=100, height=6, palette=COLOURLESS
        )
    ]
    for i, row in enumerate(rows):
        assert (f"{reshaped.probs[i]:.4f}" in row) == (i < 4)
    assert sum(reshaped.probs) == pytest.approx(1)
    assert reshaped.n_kept == 4


def test_a_drawn_token_is_marked_as_not_greedy() -> None:
    walk = walked(4, sampling=Sampling(temperature=2, seed=5))
    sheet = a_sheet(walk)
    assert "drawn, not greedy" in lines(sheet)[0]
    assert "◂drawn" in said(sheet)


def test_a_persons_choice_is_shown_as_one() -> None:
    walk = walked(3)
    assert walk.shown is not None
    sheet = a_sheet(walk.choose(walk.shown.ranking.best[3]))
    assert "your choice, not the model's" in lines(sheet)[0]
    assert lines(sheet)[0].endswith("branch 2 of 2, from step 2")
    assert "◂yours" in said(sheet)
    trunk = replace(sheet, main=replace(sheet.main, walk=sheet.main.walk.next_branch()))
    assert lines(trunk)[0].endswith("trunk, 1 of 2 ways")


def test_what_fell_out_of_the_window_is_counted_and_stands_before_a_line() -> None:
    walk = walked(15)
    found = lines(a_sheet(walk))
    assert found[1] == " reads 3…18: 16 of 16 positions, 3 fell out of the window"
    assert found[2].index("▏") == 4  # after a blank and three tokens
    assert "▏" not in lines(a_sheet(walked(3)))[2]


def test_a_loop_is_explained_in_place() -> None:
    ids = [1, 2] * 12
    walk = walked(12)
    steps = tuple(
        replace(step, chosen=replace(step.chosen, token=a_token(ids[step.step])))
        for step in walk.branch.steps
    )
    looped = replace(walk, branches=(replace(walk.branch, steps=steps),))
    assert "a loop: the last 2 tokens came 6 times in a row" in said(a_sheet(looped), 100, 30)


def test_cost_with_and_without_the_cache_is_shown_with_how_far_they_agree() -> None:
    walk = walked(3)
    check = CacheCheck(3, 0.0004, 1, 0.0019, 7, 2.4e-6, True)
    main = Side("tiny", TINY, walk, check=check)
    found = said(a_sheet(walk, main=main), 200, 30)
    assert "1 position, 6 kept" in found
    assert "fastest of 3: 0.4 ms with cache, 1.9 ms without (7 positions)" in found
    assert "logits within 2e-06, same token" in found
    alone = replace(main, check=replace(check, same_choice=False))
    assert "ANOTHER TOKEN" in said(a_sheet(walk, main=alone), 120, 30)
    full = replace(main, check=replace(check, cached_positions=7))
    assert "without cache 1.9 ms: the same full pass" in said(a_sheet(walk, main=full), 120, 30)


def test_a_tie_says_that_the_lowest_id_wins() -> None:
    model = tiny_gpt()
    model.lm_head.weight.zero_()
    step = Stepper(model, a_token).step([1], 0)
    walk = Walk(RUN.tokens).taken(0, step)
    assert "margin 0, a tie: the lowest id wins" in said(a_sheet(walk), 120)


def test_a_step_on_its_way_has_no_digits_of_its_own() -> None:
    sheet = a_sheet(Walk(RUN.tokens))
    assert " computing, once torch and the weights are there…" in lines(sheet)
    assert generate_reading(sheet, COLOURLESS) == []
    lost = replace(sheet, main=replace(sheet.main, reason="the model is not here"))
    assert " missing: the model is not here" in lines(lost)


def test_the_step_before_stays_in_sight_while_the_next_is_on_its_way() -> None:
    walk = walked(3)
    main = Side("tiny", TINY, walk, on_its_way=True)
    assert lines(a_sheet(walk, main=main))[0].endswith("step 3 is on its way…")
    assert lines(a_sheet(walk, main=main, running=True))[0].endswith("running")


def test_a_recording_without_its_model_cannot_write_on_and_says_so() -> None:
    question = StepOf("", (1,), 0, Sampling(), True)
    with pytest.raises(MissingStage, match="cannot write on"):
        question.answer(live(TINY), None, lambda: None)


def test_two_models_stand_side_by_side() -> None:
    walk = walked(2)
    other = Side("untrained:tiny", TINY, walk)
    sheet = a_sheet(walk, other=other, beside="untrained:tiny")
    for width in (80, 200):
        left = (width - 1) // 2
        rows = lines(sheet, width)
        assert all(row[left] == "│" for row in rows[:18])
        assert rows[0].startswith(" tiny · Step 1")
        assert " untrained:tiny · Step 1" in rows[0]
    waiting = a_sheet(walk, beside="shakespeare", no_other="never saw “é”")
    assert "missing: never saw “é”" in said(waiting)


def test_the_reading_has_every_digit_and_the_rank() -> None:
    walk = walked(1)
    assert walk.shown is not None
    read = plain_text(generate_reading(a_sheet(walk, chosen=2), COLOURLESS))
    one = walk.shown.ranking.best[2]
    assert read.startswith(f" rank 3 “{chr(0x61 + one.token.id)}” logit ")
    assert float(read.split()[4]) == pytest.approx(one.logit, rel=1e-7)


def everywhere() -> Iterator[tuple[Colour, Glyphs, int, int]]:
    colours: tuple[Colour, ...] = ("truecolor", "256", "16", "none")
    for colour in colours:
        yield colour, "unicode", 80, 20
        yield colour, "ascii", 80, 20
    for width, height in ((44, 8), (60, 12), (79, 19), (120, 36), (200, 56), (300, 90)):
        yield "none", "ascii", width, height


@pytest.mark.parametrize(("colour", "glyphs", "width", "height"), everywhere())
def test_it_fits_on_every_rung_and_at_every_size(
    colour: Colour, glyphs: Glyphs, width: int, height: int
) -> None:
    shades = palette(TerminalProfile(colour, glyphs))
    long = walked(40)
    reshaped = a_stepper().what_if([token.id for token in long.read], 40, WARM)
    check = CacheCheck(3, 0.0004, 1, 0.0019, 7, 0.0, True)
    side = Side("tiny", TINY, long, reshaped, check)
    for sheet in (
        a_sheet(Walk(RUN.tokens)),
        a_sheet(walked(1)),
        a_sheet(long, main=side, option=3, running=True),
        a_sheet(long, main=side, other=side, beside="another"),
    ):
        rows = generate_pane(sheet, width=width, height=height, palette=shades)
        assert len(rows) == height
        assert {width_of(row) for row in rows} == {width}
        if glyphs == "ascii":
            assert all(plain_text(row).isascii() for row in rows)


# The text ----------------------------------------------------------------------------------


def written(tokens: tuple[Token, ...], first_read: int = 0, width: int = 40) -> list[str]:
    text = GrowingText(tokens, 1, first_read, True)
    return [plain_text(row) for row in text_rows(text, width, 3, COLOURLESS)]


def test_pieces_of_a_character_become_whole_with_their_partner() -> None:
    """B07."""
    thumb = (Token(0, b"ok "), Token(41840, b"\xf0\x9f\x91"), Token(235, b"\x8d"))
    assert written(thumb[:2]) == [r"ok \xf0\x9f\x91"]
    assert written(thumb) == ["ok 👍"]


def test_an_id_without_a_meaning_and_control_characters_are_drawn() -> None:
    """A17."""
    assert written((Token(0, b"a"), Token(50300, b""))) == ["a<id 50300>"]
    assert written((Token(0, b"\x1b[2J"), Token(1, b"\n"))) == [r"␛[2J\n"]
    assert written((Token(0, b"[b]x[/b]"), Token(1, b"[/"))) == ["[b]x[/b][/"]


def test_a_long_text_shows_its_end_and_that_it_is_cut() -> None:
    tokens = tuple(Token(i, bytes([0x61 + i % 26])) for i in range(500))
    rows = written(tokens, width=20)
    assert len(rows) == 3
    assert rows[0][0] == "…"
    assert "".join(rows)[1:] == "".join(chr(0x61 + i % 26) for i in range(441, 500))


def test_a_blank_that_is_new_can_be_seen() -> None:
    assert written((Token(0, b"a"), Token(1, b" "))) == ["a␣"]
    assert written((Token(0, b"a"), Token(1, b" "), Token(2, b"b"))) == ["a b"]


# What its keys do --------------------------------------------------------------------------


def a_place(**changes: object) -> Place:
    return replace(Place(RUN, 0, pane="7"), **changes)  # type: ignore[arg-type]  # a field each


def asked(place: Place, model: Stepper) -> Place:
    """Answer what the pane would ask for the step that is shown."""
    generation = generation_place_of(place)
    ids = tuple(token.id for token in generation.walk.read)
    question = StepOf("", ids, generation.walk.at, generation.sampling, generation.cache)
    step = model.step(ids, generation.walk.at, sampling=generation.sampling)
    return question.arrived(place, step)


def test_right_goes_on_left_goes_back_and_nothing_is_computed_again() -> None:
    pane, model, place = GeneratePane(), a_stepper(), a_place()
    for _ in range(6):
        place = asked(place, model)
        place = pane.move(place, 0, 1)
    place = pane.move(place, 0, -1)
    steps = generation_place_of(place).walk.branch.steps
    for _ in range(100):
        place = pane.move(pane.move(place, 0, -1), 0, -1)
        place = pane.move(pane.move(place, 0, 1), 0, 1)
    again = generation_place_of(place).walk.branch.steps
    assert all(a is b for a, b in zip(again, steps, strict=True))
    assert generation_place_of(place).walk.at == 5
    start = pane.move(place, 0, -pane.columns(place))
    assert generation_place_of(start).walk.at == 0


def test_a_step_on_its_way_is_waited_for() -> None:
    pane, place = GeneratePane(), a_place(generation=GenerationPlace(Walk(RUN.tokens)))
    assert pane.move(place, 0, 1) == place


def test_an_answer_for_another_text_is_dropped() -> None:
    place, model = asked(a_place(), a_stepper()), a_stepper()
    stray = StepOf("", (9, 9, 9), 3, Sampling(), True)
    assert stray.arrived(place, model.step([9, 9, 9], 3)) == place
    fresh = a_place(generation=generation_place_of(place).again(RUN.tokens))
    late = StepOf("", (*(token.id for token in RUN.tokens), 1), 1, Sampling(), True)
    assert late.arrived(fresh, model.step(late.ids, 1)) == fresh


def test_enter_takes_the_chosen_candidate_and_makes_a_branch() -> None:
    pane = GeneratePane()
    place = asked(a_place(), a_stepper())
    assert with_candidate(place) is place
    chosen = pane.move(place, 2, 0)
    assert generation_place_of(chosen).choice == 2
    branched = with_candidate(chosen)
    walk = generation_place_of(branched).walk
    assert (walk.current, len(walk.branches)) == (1, 2)
    assert walk.shown is not None
    assert walk.shown.token == walk.branches[0].steps[0].ranking.best[2].token
    back = MOVES["branch"](branched, pane)
    assert generation_place_of(back).walk.current == 0


def test_reset_starts_again_with_the_same_options() -> None:
    pane = GeneratePane()
    place = pane.move(asked(a_place(), a_stepper()), 0, 1)
    generation = replace(generation_place_of(place), sampling=WARM, running=True)
    fresh = generation_place_of(MOVES["reset"](replace(place, generation=generation), pane))
    assert (fresh.walk, fresh.sampling, fresh.running) == (Walk(RUN.tokens), WARM, False)


def test_a_run_stops_at_once_when_the_pane_changes_a_step_back_is_taken_or_none_can_be() -> None:
    pane, place = GeneratePane(), asked(a_place(), a_stepper())
    running = MOVES["run"](place, pane)
    assert generation_place_of(running).can_go_on
    assert not generation_place_of(MOVES["run"](running, pane)).running
    assert not generation_place_of(running.at_pane("1")).running
    assert not generation_place_of(pane.move(running, 0, -1)).running
    question = StepOf("", (1,), 1, Sampling(), True)
    assert not generation_place_of(question.arrived(running, NothingToChoose(1, "why"))).running
    ahead = pane.move(running, 0, 1)
    assert not generation_place_of(ahead).can_go_on  # its step is on its way


def test_a_run_that_nobody_stops_pauses() -> None:
    walk = replace(walked(2), at=0)
    assert replace(GenerationPlace(walk), running=True).onward().running
    step = walk.branch.steps[0]
    steps = tuple(replace(step, step=i) for i in range(RUN_STEPS + 1))
    long = replace(walk, branches=(replace(walk.branch, steps=steps),), at=RUN_STEPS - 1)
    paused = replace(GenerationPlace(long), running=True).onward()
    assert (paused.walk.at, paused.running) == (RUN_STEPS, False)


def test_letters_of_this_pane_do_nothing_elsewhere() -> None:
    place = a_place(pane="1")
    for move in ("run", "branch", "reset"):
        assert MOVES[move](place, GeneratePane()) == place


@pytest.mark.parametrize("option", range(len(OPTIONS)))
def test_every_option_changes_and_stops_at_its_ends(option: int) -> None:
    generation = replace(GenerationPlace(Walk(RUN.tokens)), option=option)
    up = [generation]
    for _ in range(30):
        up.append(up[-1].changed(1, lambda: ("other", "third")))
    values = [one.values()[option][1] for one in up]
    assert len(set(values)) > 1
    if OPTIONS[option] not in ("seed", "cache"):
        assert values[-1] == values[-2]
        down = up[-1]
        for _ in range(30):
            down = down.changed(-1, lambda: ("other", "third"))
        first = {"speed": "1/s"}.get(OPTIONS[option], generation.values()[option][1])
        assert down.values()[option][1] == first
    assert all(a.values()[:option] == b.values()[:option] for a, b in pairwise(up))


def test_tab_gives_the_arrows_to_the_options_and_back() -> None:
    pane, place = GeneratePane(), a_place()
    assert pane.where(place) == "generate"
    options = MOVES["switch_zone"](place, pane)
    assert pane.where(options) == "options"
    moved = pane.move(options, 0, 1)
    assert generation_place_of(moved).option == 1
    assert generation_place_of(pane.move(moved, -1, 0)).sampling.top_k == 1
    assert pane.where(MOVES["switch_zone"](moved, pane)) == "generate"


def test_full_speed_is_what_a_screen_can_be_read_at() -> None:
    assert replace(GenerationPlace(Walk(RUN.tokens)), speed=len(SPEEDS) - 1).wait == pytest.approx(
        0.05
    )


def test_a_second_model_goes_in_the_same_rhythm() -> None:
    pane, model = GeneratePane(), a_stepper()
    place = a_place()
    for _ in range(3):
        place = pane.move(asked(place, model), 0, 1)
    generation = replace(generation_place_of(place), beside="second")
    place = replace(place, generation=generation)
    companion = Companion(RUN.model, RUN.tokens)
    place = CompanionOf("second", "prompt").arrived(place, companion)
    assert [walk.at for walk in both(place)] == [0, 0]
    assert pane.move(place, 0, 1) == place  # the second has not taken its step yet
    ids = tuple(token.id for token in RUN.tokens)
    place = StepOf("second", ids, 0, Sampling(), True).arrived(place, model.step(ids, 0))
    place = pane.move(place, 0, 1)
    assert [walk.at for walk in both(place)] == [1, 1]
    assert [walk.at for walk in both(pane.move(place, 0, -1))] == [0, 0]


def both(place: Place) -> list[Walk]:
    generation = generation_place_of(place)
    assert generation.other is not None
    return [generation.walk, generation.other]


def test_what_can_stand_beside_a_model_is_the_others_and_its_untrained_twin() -> None:
    assert beside_models("shakespeare") == ("shakespeare-2017", "untrained:shakespeare")
    assert beside_models("untrained:gpt2") == ("shakespeare", "shakespeare-2017")


def test_another_prompt_starts_another_text_with_the_same_options() -> None:
    place = asked(a_place(), a_stepper())
    place = replace(place, generation=replace(generation_place_of(place), sampling=WARM))
    other = a_run(TINY, (7, 7))
    fresh = generation_place_of(place.on(other))
    assert fresh.walk == Walk(other.tokens)
    assert fresh.sampling == WARM


def test_entropy_is_charted_without_the_steps_that_have_none() -> None:
    walk = walked(6)
    steps: tuple[GenerationStep, ...] = walk.branch.steps
    hole = replace(steps[2], ranking=replace(steps[2].ranking, entropy=None))
    broken = (*steps[:2], hole, *steps[3:])
    holed = replace(walk, branches=(replace(walk.branch, steps=broken),))
    found = lines(a_sheet(holed), 120, 30)
    title = next(line for line in found if "entropy, 0 to ln 11" in line)
    assert f"= {math.log(11):.2f}, by step" in title
    at_hole = replace(holed, at=2)
    assert "entropy not known" in said(a_sheet(at_hole), 120, 30)
