"""Steps of generation: what decides a token, kept keys and values, the window, branches, loops."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import TINY, tiny_gpt

from tui_gpt.analysis.generation import Stepper, reshape
from tui_gpt.config import GPTConfig
from tui_gpt.errors import NothingToChoose, UsageError
from tui_gpt.model.generate import Reader
from tui_gpt.model.gpt import GPT
from tui_gpt.records.analyses.generation import (
    GREEDY,
    GenerationStep,
    Sampling,
    Walk,
    find_loop,
)
from tui_gpt.records.tokens import Token, joined_text
from tui_gpt.session import Session
from tui_gpt.tokenization.gpt2 import GPT2Tokenizer
from tui_gpt.views.text import label

PROMPT = [3, 1, 4, 1, 5]


def bare(token_id: int) -> Token:
    """A token without a vocabulary."""
    return Token(token_id, b"")


def stepper(config: GPTConfig = TINY, top: int = 10) -> Stepper:
    return Stepper(tiny_gpt(config), bare, top=top)


def taken(count: int, *, cache: bool = True, sampling: Sampling = GREEDY) -> list[GenerationStep]:
    return list(islice(stepper().steps(PROMPT, sampling=sampling, cache=cache), count))


@torch.no_grad()
def plainly(model: GPT, ids: list[int], count: int) -> list[int]:
    """Take the highest logit of a full pass over the last T tokens, again and again."""
    ids = list(ids)
    for _ in range(count):
        window = ids[-model.config.block_size :]
        ids.append(int(model(torch.tensor([window]))[0, -1].argmax()))
    return ids[-count:]


# Keys and values that are kept -------------------------------------------------------------


def test_five_at_once_three_then_two_and_five_singly_agree(either_norm: GPTConfig) -> None:
    """C09."""
    model = tiny_gpt(either_norm)
    whole = Reader(model).read(PROMPT, cache=False).logits
    for cuts in ((3, 5), (1, 2, 3, 4, 5)):
        reader = Reader(model)
        for end in cuts:
            reading = reader.read(PROMPT[:end], cache=True)
        assert reading.computed == cuts[-1] - cuts[-2]
        np.testing.assert_allclose(
            reading.logits, whole, rtol=0, atol=1e-4
        )  # sums in another order
        assert reading.logits.argmax() == whole.argmax()


def test_kept_and_full_agree_for_two_hundred_steps_across_the_edge() -> None:
    session = Session.open("shakespeare")
    ids = [token.id for token in session.prepare("ROMEO:").tokens]
    stepper = session.stepper()
    session.load()
    for number in range(200):
        check = stepper.check_cache(ids)
        assert check.same_choice
        assert check.difference <= 1e-4, number
        assert check.full_positions == min(len(ids), 64)
        assert check.cached_positions == (1 if 1 < len(ids) <= 64 else 64)
        ids.append(stepper.step(ids, number).token.id)
    assert len(ids) == 206


def test_after_the_window_slides_each_step_is_a_fresh_pass_over_the_last_tokens() -> None:
    with_cache, without = taken(40), taken(40, cache=False)
    assert [step.token.id for step in with_cache] == plainly(tiny_gpt(), PROMPT, 40)
    assert [step.token.id for step in without] == [step.token.id for step in with_cache]
    for step in with_cache:
        length = len(PROMPT) + step.step
        assert step.window == (max(0, length - 16), min(length, 16))
        assert step.cropped == (length > 16)
        assert step.cached == (step.step > 0 and length <= 16)
        assert step.computed == (1 if step.cached else step.window[1])
    assert not any(step.cached for step in without)


def test_fourteen_tokens_in_a_context_of_sixteen_and_five_steps() -> None:
    """C17: two fill it up, the others slide."""
    ids = [i % 11 for i in range(14)]
    steps = list(islice(stepper().steps(ids), 5))
    assert [step.window for step in steps] == [(0, 14), (0, 15), (0, 16), (1, 16), (2, 16)]


def test_a_prompt_longer_than_the_context_is_read_from_its_end() -> None:
    ids = [i * 7 % 11 for i in range(40)]
    step = next(stepper().steps(ids))
    assert step.window == (24, 16)
    assert step.token.id == plainly(tiny_gpt(), ids, 1)[0]


def test_a_text_that_begins_alike_is_read_from_where_it_differs() -> None:
    reader = Reader(tiny_gpt())
    reader.read([1, 2, 3, 4], cache=True)
    other = reader.read([1, 2, 9, 4, 5], cache=True)
    assert (other.kept, other.computed) == (2, 3)
    np.testing.assert_allclose(
        other.logits, Reader(tiny_gpt()).read([1, 2, 9, 4, 5], cache=False).logits, atol=1e-4
    )


def test_a_pass_that_is_ended_leaves_nothing_half_kept() -> None:
    reader = Reader(tiny_gpt())
    reader.read([1, 2, 3], cache=True)
    calls = 0

    def check_cancelled() -> None:
        nonlocal calls
        calls += 1
        if calls > 12:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reader.read([1, 2, 3, 4], cache=True, check_cancelled=check_cancelled)
    again = reader.read([1, 2, 3, 4], cache=True)
    assert again.kept == 3
    expected = Reader(tiny_gpt()).read([1, 2, 3, 4], cache=False).logits
    np.testing.assert_allclose(again.logits, expected, atol=1e-4)


# What decides ------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["shakespeare", "shakespeare-2017"])
def test_the_argmax_of_logits_and_of_the_softmax_is_the_same_index(model: str) -> None:
    """R3."""
    session = Session.open(model)
    session.load()
    ids = [token.id for token in session.prepare("KING:").tokens]
    for step in islice(session.stepper().steps(ids), 100):
        assert step.argmax_logits == step.argmax_probs == step.token.id


def test_a_step_says_what_a_plain_softmax_says() -> None:
    model = tiny_gpt()
    step = next(stepper().steps(PROMPT))
    logits = model(torch.tensor([PROMPT]))[0, -1]
    probs = torch.softmax(logits.double(), dim=-1)
    order = logits.argsort(descending=True, stable=True).tolist()
    assert [one.token.id for one in step.ranking.best] == order[:10]
    assert step.chosen.prob == pytest.approx(float(probs[order[0]]), abs=1e-6)
    assert step.ranking.margin == pytest.approx(float(logits[order[0]] - logits[order[1]]))
    assert step.ranking.entropy == pytest.approx(float(-(probs * probs.log()).sum()), abs=1e-5)


@pytest.mark.parametrize("vocab_size", [8, 50257])
def test_equal_logits_give_the_lowest_id_everywhere(vocab_size: int) -> None:
    """C14: pick, both markers and the first row of the list name one token."""
    model = tiny_gpt(replace(TINY, vocab_size=vocab_size))
    model.lm_head.weight.zero_()
    step = next(Stepper(model, bare, top=5).steps([1, 2]))
    assert step.token.id == step.argmax_logits == step.argmax_probs == 0
    assert [one.token.id for one in step.ranking.best] == [0, 1, 2, 3, 4]
    assert step.ranking.margin == 0
    assert step.ranking.entropy == pytest.approx(math.log(vocab_size), rel=1e-5)


def test_there_are_no_more_candidates_than_tokens() -> None:
    """C15."""
    model = tiny_gpt(replace(TINY, vocab_size=5))
    assert len(next(Stepper(model, bare, top=10).steps([1])).ranking.best) == 5


def test_a_row_of_nothing_but_nan_ends_the_run_and_says_at_which_step() -> None:
    model = tiny_gpt()
    model.get_parameter("ln_f.weight")[0] = math.nan
    with pytest.raises(NothingToChoose, match="step 0 has no next token"):
        next(Stepper(model, bare).steps(PROMPT))


def test_one_broken_row_of_the_head_is_never_chosen_and_is_not_drawn_around() -> None:
    model = tiny_gpt()
    model.lm_head.weight[7] = math.nan
    step = next(Stepper(model, bare).steps(PROMPT))
    assert step.token.id != 7
    assert (step.argmax_probs, step.chosen.prob is None or math.isnan(step.chosen.prob)) == (
        None,
        True,
    )
    assert step.ranking.flagged == (7,)
    with pytest.raises(NothingToChoose, match="id 7 is NaN"):
        next(Stepper(model, bare).steps(PROMPT, sampling=Sampling(temperature=1)))


def always(token_ids: list[int], vocab_size: int) -> GPT:
    """A model whose steps pick these ids, one after the other, whatever it reads."""
    size = len(token_ids)
    config = replace(
        TINY, n_embd=16, n_layer=1, vocab_size=vocab_size, block_size=32, activation="relu"
    )
    model = tiny_gpt(config)
    for parameter in model.parameters():
        parameter.zero_()
    for position in range(size):
        model.get_parameter("wpe.weight")[position, position] = 1
        model.lm_head.weight[token_ids[position], position] += 1
    model.get_parameter("ln_f.weight").fill_(1)
    return model


def test_an_end_of_text_token_is_drawn_by_its_name_and_ends_nothing() -> None:
    """C13: the rule is to go on."""
    tokenizer = GPT2Tokenizer()
    model = always([464, 50256, 262], 50257)
    steps = list(islice(Stepper(model, tokenizer.token).steps([7]), 3))
    assert [step.token.id for step in steps] == [464, 50256, 262]
    assert label(steps[1].token) == "<|endoftext|>"


def test_a_padded_id_is_shown_as_one_and_crashes_no_decoder() -> None:
    """A17: the head has 50,304 rows and row 50,300 always wins."""
    model = always([50300] * 4, 50304)
    tokenizer = GPT2Tokenizer()

    def token(token_id: int) -> Token:
        return tokenizer.token(token_id) if token_id < 50257 else Token(token_id, b"")

    steps = list(islice(Stepper(model, token).steps([464]), 4))
    assert [step.token.id for step in steps] == [50300] * 4
    assert label(steps[0].token) == "<id 50300>"
    assert joined_text([token(464), steps[0].token]) == "The"


def test_pieces_of_a_character_are_bytes_alone_and_a_character_together() -> None:
    """B07."""
    tokenizer = GPT2Tokenizer()
    for text, ids in (("👍", [41840, 235]), ("∩", [24861, 102])):
        assert tokenizer.encode(text) == ids
        steps = list(islice(Stepper(always(ids, 50257), tokenizer.token).steps([7]), 2))
        assert [step.token.id for step in steps] == ids
        assert [step.token.text for step in steps] == [None, None]
        assert joined_text(step.token for step in steps) == text
    assert label(tokenizer.token(41840)) == r"\xf0\x9f\x91"


# Drawing -----------------------------------------------------------------------------------


def test_temperature_nothing_is_greedy_whatever_else_is_asked() -> None:
    odd = Sampling(temperature=0, top_k=3, top_p=0.1, seed=9)
    drawn = taken(20, sampling=odd)
    assert drawn == [
        replace(step, seconds=other.seconds) for step, other in zip(taken(20), drawn, strict=True)
    ]
    assert {step.chosen_by for step in drawn} == {"greedy"}


def test_the_same_seed_draws_the_same_text_and_another_draws_another() -> None:
    def drawn(seed: int) -> list[int]:
        return [step.token.id for step in taken(30, sampling=Sampling(temperature=2, seed=seed))]

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)
    assert all(step.chosen_by == "sampled" for step in taken(5, sampling=Sampling(temperature=1)))


def test_a_cold_draw_is_greedy_and_a_hot_one_is_even() -> None:
    logits = np.array([1, 3, 2, 0], np.float32)
    ids, probs = reshape(logits, Sampling(temperature=1e-6))
    assert ids[0] == 1
    assert probs.tolist() == [1, 0, 0, 0]
    _, probs = reshape(logits, Sampling(temperature=1e6))
    np.testing.assert_allclose(probs, 0.25, atol=1e-5)


def test_temperature_one_is_the_softmax() -> None:
    logits = np.array([1, 3, 2, 0], np.float32)
    ids, probs = reshape(logits, Sampling(temperature=1))
    expected = np.exp(logits[ids].astype(np.float64))
    np.testing.assert_allclose(probs, expected / expected.sum(), rtol=1e-12)


def test_top_k_keeps_the_best_and_of_equal_ones_the_lowest() -> None:
    logits = np.array([5, 7, 7, 7, 1], np.float32)
    ids, probs = reshape(logits, Sampling(temperature=1, top_k=2))
    assert ids == [1, 2]
    np.testing.assert_allclose(probs, [0.5, 0.5])
    ids, _ = reshape(logits, Sampling(temperature=1, top_k=99))
    assert sorted(ids) == [0, 1, 2, 3, 4]


def test_top_p_keeps_the_fewest_that_reach_it() -> None:
    logits = np.log(np.array([0.5, 0.3, 0.15, 0.05])).astype(np.float32)
    for share, kept in ((0.4, 1), (0.6, 2), (0.9, 3), (0.99, 4), (1.0, 4)):
        ids, probs = reshape(logits, Sampling(temperature=1, top_p=share))
        assert len(ids) == kept
        assert probs.sum() == pytest.approx(1)


def test_draws_come_as_often_as_their_probabilities_say() -> None:
    stepper_ = stepper()
    sampling = [Sampling(temperature=1, seed=seed) for seed in range(400)]
    counts = Counter(stepper_.what_if(PROMPT, 0, one).drawn.token.id for one in sampling)
    plain = stepper_.step(PROMPT, 0)
    likely = plain.chosen
    assert likely.prob is not None
    share = counts[likely.token.id] / 400
    spread = math.sqrt(likely.prob * (1 - likely.prob) / 400)
    assert abs(share - likely.prob) < 4 * spread


@pytest.mark.parametrize(
    "numbers",
    [
        {"temperature": -1.0},
        {"temperature": math.nan},
        {"temperature": math.inf},
        {"temperature": 1.0, "top_k": 0},
        {"temperature": 1.0, "top_p": 0.0},
        {"temperature": 1.0, "top_p": 1.5},
    ],
)
def test_numbers_that_make_no_sense_are_refused(numbers: dict[str, float]) -> None:
    with pytest.raises(UsageError):
        Sampling(**numbers)  # type: ignore[arg-type]  # that is what is tested


# Loops -------------------------------------------------------------------------------------


def test_greedy_text_ends_at_its_limit_and_its_loop_is_named() -> None:
    """C12: sixty steps, and nothing is penalised to hide that they repeat."""
    session = Session.open("shakespeare")
    session.load()
    ids = [token.id for token in session.prepare("To be").tokens]
    steps = list(islice(session.stepper().steps(ids), 60))
    assert len(steps) == 60
    assert [step.token.id for step in steps] == plainly(session._loaded(), ids, 60)


def test_a_loop_goes_round_three_times_and_is_as_short_as_it_can_be() -> None:
    assert find_loop([1, 2, 3, 4, 5, 6, 7, 8, 9], 16) is None
    assert find_loop([0, 0], 16) is None
    assert find_loop([5, 5, 5], 16) is None  # three equal characters are no loop yet
    loop = find_loop([9, 1, 2, 1, 2, 1, 2, 1, 2], 16)
    assert loop is not None
    assert (loop.period, loop.rounds, loop.for_ever) == (2, 4, False)
    loop = find_loop([7] * 8, 16)
    assert loop is not None
    assert (loop.period, loop.rounds) == (1, 8)


def test_a_loop_is_for_ever_once_the_window_holds_what_it_held_a_round_ago() -> None:
    ids = [9, *([1, 2, 3] * 7)]
    for length in range(10, len(ids) + 1):
        loop = find_loop(ids[:length], 16)
        assert loop is not None
        assert loop.for_ever == (length - 1 - 3 >= 16)


# A walk back and forth ---------------------------------------------------------------------


def walked(count: int) -> tuple[Walk, Stepper]:
    walk = Walk(tuple(bare(i) for i in PROMPT))
    takes = stepper()
    for _ in range(count):
        walk = onward(walk, takes)
        walk = walk.forward()
    return walk.back(), takes


def onward(walk: Walk, takes: Stepper) -> Walk:
    """Compute the step that is shown, where it is not there."""
    if walk.shown is not None:
        return walk
    step = takes.step([token.id for token in walk.read], walk.at)
    return walk.taken(walk.current, step)


def test_back_and_forth_a_hundred_times_leaves_the_same_records() -> None:
    walk, takes = walked(6)
    before = walk.branches
    for _ in range(100):
        walk = walk.back().back().forward()
        walk = onward(walk, takes).forward().back()
    assert walk.branches[0].steps[:6] == before[0].steps
    assert all(a is b for a, b in zip(walk.branches[0].steps, before[0].steps, strict=False))


def test_a_branch_is_the_persons_choice_and_leaves_the_trunk_as_it_was() -> None:
    walk, takes = walked(6)
    trunk = walk.branches[0]
    at = walk.back().back()
    assert at.shown is not None
    other = at.shown.ranking.best[3]
    branched = at.choose(other)
    assert branched.branches[0] is trunk
    assert branched.shown is not None
    assert branched.shown.token == other.token
    assert branched.shown.chosen_by == "person"
    assert branched.shown.argmax_logits == at.shown.argmax_logits
    for _ in range(5):
        branched = onward(branched.forward(), takes)
    assert branched.branches[0] is trunk
    assert branched.branch.split == at.at
    ids = [token.id for token in branched.read]
    assert branched.branch.steps[-1].token.id == plainly(tiny_gpt(), ids, 1)[0]
    assert branched.next_branch().branch is trunk


def test_choosing_the_winner_or_the_same_again_makes_no_branch() -> None:
    walk, _ = walked(3)
    assert walk.shown is not None
    assert walk.choose(walk.shown.ranking.best[0]) is walk
    once = walk.choose(walk.shown.ranking.best[1])
    back = once.next_branch()
    again = back.choose(walk.shown.ranking.best[1])
    assert (len(again.branches), again.current) == (2, 1)
    assert once.choose(walk.shown.ranking.best[0]).current == 0  # and back on the trunk


def test_a_step_that_does_not_follow_is_dropped() -> None:
    walk, takes = walked(3)
    late = takes.step(PROMPT, 7)
    assert walk.taken(0, late) is walk


def test_nothing_is_before_the_first_step_and_nothing_after_one_on_its_way() -> None:
    walk = Walk((bare(1),))
    assert walk.shown is None
    assert walk.forward() is walk
    assert walk.back() == walk


def test_the_bundled_model_folder_is_not_needed_to_read_a_record(tmp_path: Path) -> None:
    import subprocess
    import sys

    probe = "import sys, tui_gpt.records.analyses.generation; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", probe], cwd=tmp_path).returncode == 0
