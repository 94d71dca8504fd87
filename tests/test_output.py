"""One position's answer over the whole vocabulary, in order, and never out of a NaN."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from conftest import TINY, tiny_gpt
from numpy.typing import NDArray
from traces import IDS, Broken, Without, a_token, live

from tui_gpt.analysis.output import entropy, first_not_finite, output, ranking
from tui_gpt.config import GPTConfig
from tui_gpt.records.analyses.output import Ranking
from tui_gpt.records.analyses.prediction import best_ids
from tui_gpt.records.stages import find_stage


def row(*logits: float) -> NDArray[np.float32]:
    return np.array(logits, np.float32)


def softmax(logits: NDArray[np.float32]) -> NDArray[np.float32]:
    powers = np.exp(logits - logits.max())
    result: NDArray[np.float32] = powers / powers.sum()
    return result


def ranked(logits: NDArray[np.float32], count: int = 10) -> Ranking:
    return ranking(logits, softmax(logits), a_token, count)


def test_the_best_of_the_last_position_are_the_prediction(either_norm: GPTConfig) -> None:
    trace = live(either_norm)
    found = output(trace, 7, a_token, 10)
    assert found.ranking is not None
    assert [(one.token, one.logit, one.prob) for one in found.ranking.best] == [
        (one.token, one.logit, one.prob) for one in trace.prediction()
    ]
    assert [one.rank for one in found.ranking.best] == list(range(1, 11))
    assert (found.came, found.missing, found.not_finite) == (None, (), None)


def test_entropy_margin_and_the_token_that_came_are_those_of_the_recorded_row(
    either_norm: GPTConfig,
) -> None:
    trace = live(either_norm)
    for position in range(7):
        found = output(trace, position, a_token)
        logits, probs = (trace.tensor(name).values[position] for name in ("logits", "probs"))
        p = probs.astype(np.float64)
        assert found.ranking is not None
        assert found.ranking.entropy == pytest.approx(-(p * np.log(p)).sum(), abs=1e-12)
        falling = np.sort(logits.astype(np.float64))[::-1]
        assert found.ranking.margin == pytest.approx(falling[0] - falling[1], abs=1e-12)
        assert found.came is not None
        came = IDS[position + 1]
        assert found.came.token.id == came
        assert found.came.prob == probs[came]
        assert found.came.rank == 1 + int((logits > logits[came]).sum())
        assert found.ceiling == math.log(11)


def test_a_ruled_out_token_has_probability_0_and_comes_last() -> None:
    found = ranked(row(1, -math.inf, -math.inf))  # case C01
    assert [(one.token.id, one.prob) for one in found.best] == [(0, 1.0), (1, 0.0), (2, 0.0)]
    assert found.entropy == 0
    assert found.margin is None  # the gap to what is ruled out is no number
    assert found.n_flagged == 0


def test_one_nan_is_flagged_and_never_the_best() -> None:
    logits = row(1, math.nan, 9)  # case C03: argmax says 1
    found = ranking(logits, row(*[math.nan] * 3), a_token, 10)
    assert [one.token.id for one in found.best] == [2, 0]
    assert [one.rank for one in found.best] == [1, 2]
    assert (found.flagged, found.n_flagged, found.entropy) == ((1,), 1, None)
    assert all(math.isnan(one.prob or 0) for one in found.best)  # as the model computed them
    assert found.margin == 8
    assert [one.token.id for one in ranking(row(1, math.inf, 9), None, a_token, 10).best] == [2, 0]


def test_a_row_of_nan_predicts_nothing() -> None:
    found = ranking(row(*[math.nan] * 50), row(*[math.nan] * 50), a_token, 10)
    assert found.best == ()
    assert (found.margin, found.entropy, found.n_flagged) == (None, None, 50)
    assert found.flagged == tuple(range(10))


def test_the_first_stage_with_a_nan_is_named(either_norm: GPTConfig) -> None:
    assert first_not_finite(live(either_norm)) is None  # masked scores are none
    config = replace(either_norm, norm="pre")
    model = tiny_gpt(config)  # case C03
    assert model.ln_f is not None
    model.ln_f.weight[0] = math.nan
    trace = live(config, model=model)
    found = output(trace, 3, a_token)
    assert found.not_finite is not None
    assert (found.not_finite.stage.id, found.not_finite.cells) == ("ln_final", 8)
    assert found.not_finite.index == (0, 0)
    assert found.ranking is not None
    assert found.ranking.best == ()
    assert found.came is not None
    assert found.came.rank is None


def test_a_nan_in_an_unused_token_row_flags_that_logit_alone() -> None:
    model = tiny_gpt(TINY)  # case C03
    model.lm_head.weight[7, 2] = math.nan
    found = output(live(TINY, model=model), 3, a_token)
    assert found.ranking is not None
    assert found.ranking.flagged == (7,)
    assert len(found.ranking.best) == 10
    assert found.not_finite is not None
    assert (found.not_finite.stage.id, found.not_finite.index) == ("logits", (0, 7))
    assert found.not_finite.cells == 8
    assert found.came is not None
    assert found.came.rank is not None


def test_the_search_goes_on_past_a_hole_and_into_the_scores() -> None:
    trace = Broken(live(TINY), "blocks.1.attn_scores", (1, 5, 2), math.inf)
    found = first_not_finite(Without(trace, "blocks.0.q"))
    assert found is not None
    assert (found.stage.id, found.cells, found.index) == ("blocks.1.attn_scores", 1, (1, 5, 2))


@pytest.mark.parametrize("vocab_size", [8, 50_257])
def test_of_equal_logits_the_lowest_id_is_first_in_every_list(vocab_size: int) -> None:
    model = tiny_gpt(replace(TINY, vocab_size=vocab_size))  # case C14
    model.lm_head.weight.zero_()
    trace = live(model.config, (1, 2, 3), model)
    found = output(trace, 1, a_token)
    assert found.ranking is not None
    assert [one.token.id for one in found.ranking.best][:5] == [0, 1, 2, 3, 4]
    assert int(trace.tensor("logits").values[1].argmax()) == found.ranking.best[0].token.id
    assert trace.prediction()[0].token.id == 0
    assert found.ranking.entropy == pytest.approx(found.ceiling)
    assert found.ranking.margin == 0
    assert found.came is not None
    assert found.came.rank == 4  # id 3, behind 0, 1 and 2


def test_a_list_is_never_longer_than_the_vocabulary() -> None:
    found = ranked(row(1, 5, 3, 2, 4))  # case C15
    assert [one.token.id for one in found.best] == [1, 4, 2, 3, 0]


def test_the_highest_logits_are_found_without_sorting_all_of_them() -> None:
    draw = np.random.default_rng(5)
    for size in (1, 2, 11, 1000):
        logits = draw.integers(-3, 4, size).astype(np.float32)  # many ties
        logits[draw.random(size) < 0.1] = math.nan
        whole = np.argsort(-logits, kind="stable").tolist()
        for count in (1, 2, 10, 999, 5000):
            assert best_ids(logits, count) == whole[:count]


def test_certainty_has_no_entropy() -> None:
    certain = entropy(row(0, 1, 0))
    assert certain == 0
    assert math.copysign(1, certain) == 1
    assert entropy(row(0.5, 0.5)) == pytest.approx(math.log(2))
    assert entropy(row(math.nan, 0.5)) is None


def test_a_hole_has_its_reason_and_no_number(either_norm: GPTConfig) -> None:
    trace = live(either_norm)
    whole = output(trace, 3, a_token)
    for stage in trace.run.stages:
        holed = Without(trace, stage.id)
        found = output(holed, 3, a_token)
        if stage.name not in ("logits", "probs"):
            assert found == whole
            continue
        assert found.missing == (holed.reason,)
        if stage.name == "logits":
            assert (found.ranking, found.came) == (None, None)
            continue
        assert found.ranking is not None
        assert found.ranking.entropy is None
        assert {one.prob for one in found.ranking.best} == {None}
        assert found.came is not None
        assert found.came.prob is None


def test_captured_weights_times_values_are_the_captured_head_output(either_norm: GPTConfig) -> None:
    trace = live(either_norm)  # case C26, one cell by hand
    pattern, v, z = (trace.tensor(f"blocks.1.{name}").values for name in ("pattern", "v", "z"))
    by_hand = sum(float(pattern[1, 6, key]) * float(v[1, key, 2]) for key in range(7))
    assert z[1, 6, 2] == pytest.approx(by_hand, abs=1e-5)
    assert find_stage(trace.run.stages, "blocks.1.z").shape == z.shape
