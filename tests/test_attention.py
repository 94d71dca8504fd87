"""What heads read: entropies, sorted rows, and the reasons where there is nothing to read."""

from __future__ import annotations

import math

import numpy as np
import pytest
from conftest import TINY, TINY_2017, tiny_gpt
from made_traces import REASON, MadeTrace, a_run, recording
from numpy.typing import NDArray

from tui_gpt.analysis.attention import OVERVIEW, attention, entropy_of
from tui_gpt.config import GPTConfig
from tui_gpt.errors import UnknownStage
from tui_gpt.records.analyses.attention import Attention, bins, pooled_by_largest
from tui_gpt.records.stages import stage_id
from tui_gpt.records.tokens import Token
from tui_gpt.records.trace import Trace
from tui_gpt.trace.record import LiveTrace

FLOAT32 = 1e-5
"""Sums of a few float32 numbers below about 10, added in another order: case C26."""

TOKENS = tuple(Token(i, bytes([0x61 + i])) for i in range(4))

UNIFORM = np.tril(np.ones((4, 4), np.float32)) / np.arange(1, 5, dtype=np.float32)[:, None]
ONE_HOT = np.eye(4, dtype=np.float32)


def made(
    pattern: NDArray[np.float32] | str, scores: NDArray[np.float32] | str | None = None
) -> Attention:
    """Read the attention of a made-up block with two heads and four tokens."""
    if scores is None:
        scores = np.where(np.tri(4, dtype=bool), 0.5, -np.inf).astype(np.float32)
        scores = np.stack([scores, scores])
    stages = {"blocks.0.pattern": pattern, "blocks.0.attn_scores": scores}
    return attention(MadeTrace(a_run(TINY, TOKENS), stages), 0)


def live(config: GPTConfig, n_positions: int) -> LiveTrace:
    tokens = tuple(Token(i % 11, bytes([0x61 + i % 11])) for i in range(n_positions))
    return LiveTrace(a_run(config, tokens), tiny_gpt(config), tokens.__getitem__)


def traces() -> list[Trace]:
    return [
        recording("shakespeare"),
        recording("shakespeare-2017"),
        live(TINY, 9),
        live(TINY_2017, 9),
    ]


@pytest.mark.parametrize("n", [1, 2, 19, 1024])
def test_reading_n_keys_alike_is_ln_n_nats(n: int) -> None:
    row = np.full(n, 1 / n, np.float32)
    assert entropy_of(row) == pytest.approx(math.log(n), abs=1e-6)  # float32 weights


def test_reading_one_key_is_no_entropy_and_not_minus_zero() -> None:
    entropy = entropy_of(ONE_HOT)
    assert (entropy == 0).all()
    assert not np.signbit(entropy).any()


def test_the_ceiling_is_reached_by_the_uniform_row_and_by_no_other() -> None:
    record = made(np.stack([UNIFORM, ONE_HOT]))
    assert record.entropy is not None
    assert record.mean_entropy is not None
    np.testing.assert_allclose(record.ceiling, np.log([1, 2, 3, 4]))
    np.testing.assert_allclose(record.entropy[0], record.ceiling, atol=1e-6)  # float32 weights
    assert (record.entropy[1] == 0).all()
    np.testing.assert_allclose(record.mean_entropy, [record.ceiling.mean(), 0], atol=1e-6)


@pytest.mark.parametrize("name", ["shakespeare", "shakespeare-2017"])
def test_no_recorded_row_is_more_spread_out_than_its_keys_allow(name: str) -> None:
    trace = recording(name)
    for layer in range(trace.run.model.config.n_layer):
        record = attention(trace, layer)
        assert record.entropy is not None
        assert (record.entropy >= 0).all()
        assert (record.entropy <= record.ceiling + 1e-6).all()  # float32 weights


def test_the_pattern_times_the_values_is_the_head_output_in_every_layer() -> None:
    for trace in traces():  # case C26
        for layer in range(trace.run.model.config.n_layer):
            pattern = attention(trace, layer).pattern.tensor
            assert pattern is not None
            v, z = (trace.tensor(stage_id(name, layer)).values for name in ("v", "z"))
            np.testing.assert_allclose(pattern.values @ v, z, rtol=0, atol=FLOAT32)


def test_a_row_is_sorted_by_weight_and_equal_keys_by_position() -> None:
    weights = np.zeros((2, 4, 4), np.float32)
    weights[:, 0, 0] = 1
    weights[:, 1, :2] = (0.5, 0.5)
    weights[:, 2, :3] = (0.25, 0.5, 0.25)
    weights[:, 3] = (0.2, 0.3, 0.2, 0.3)
    record = made(weights)
    assert record.row(1, 1).keys == (0, 1)
    assert record.row(1, 2).keys == (1, 0, 2)
    row = record.row(0, 3)
    assert row.keys == (1, 3, 0, 2)
    assert row.weights == tuple(weights[0, 3, list(row.keys)].tolist())
    assert row.scores == (0.5, 0.5, 0.5, 0.5)
    assert row.ceiling == math.log(4)
    assert not row.problem


def test_a_row_holds_the_keys_that_the_query_sees_and_a_weight_that_should_not_be() -> None:
    weights = np.stack([UNIFORM, ONE_HOT])
    assert made(weights).row(1, 2).keys == (2, 0, 1)
    weights[1, 1, 3] = 0.25  # in the future
    assert made(weights).row(1, 1).keys == (1, 3, 0)


def test_one_token_reads_itself_and_nothing_is_nan() -> None:
    for config in (TINY, TINY_2017):  # case C01
        record = attention(live(config, 1), 1)
        assert record.entropy is not None
        assert (record.entropy == 0).all()
        assert not record.blocked.any()
        row = record.row(1, 0)
        assert (row.keys, row.weights, row.entropy, row.ceiling) == ((0,), (1.0,), 0.0, 0.0)


def test_a_row_of_nan_has_no_entropy_and_no_other_row_loses_its_own() -> None:
    weights = np.stack([UNIFORM, ONE_HOT])
    weights[1, 2, :3] = (np.nan, 0.5, 0.5)
    record = made(weights)
    assert record.entropy is not None
    assert record.mean_entropy is not None
    assert np.isnan(record.entropy).tolist() == [[False] * 4, [False, False, True, False]]
    assert np.isnan(record.mean_entropy).tolist() == [False, True]
    assert record.row(1, 2).problem == "its weights are not numbers (NaN or infinite)"
    assert record.row(1, 2).keys == ()
    assert record.row(1, 2).entropy is None
    assert record.row(1, 3).entropy == 0


def test_a_row_whose_keys_are_all_masked_is_blocked() -> None:
    scores = np.full((2, 4, 4), -np.inf, np.float32)  # case C01
    scores[:, np.tri(4, dtype=bool)] = 0.5
    scores[1, 2] = -np.inf
    weights = np.stack([UNIFORM, UNIFORM])
    weights[1, 2] = np.nan
    record = made(weights, scores)
    assert np.argwhere(record.blocked).tolist() == [[1, 2]]
    assert record.row(1, 2).problem == "blocked: every key it could see is masked"


def test_what_was_not_recorded_keeps_its_reason() -> None:
    weights = np.stack([UNIFORM, ONE_HOT])
    record = made(REASON)
    assert record.pattern.tensor is None
    assert record.pattern.missing == REASON
    assert record.entropy is None
    assert record.mean_entropy is None
    assert record.overview is None
    assert record.row(0, 1).problem == f"missing: {REASON}"
    record = made(weights, REASON)
    assert record.scores.missing == REASON
    assert record.row(0, 1).scores is None
    assert record.row(0, 1).keys == (0, 1)
    with pytest.raises(UnknownStage, match=r"no stage 'blocks.2.pattern'"):
        attention(recording(), 2)


def test_the_largest_score_is_of_finite_cells_that_are_not_masked() -> None:
    scores = np.full((2, 4, 4), -np.inf, np.float32)
    scores[:, np.tri(4, dtype=bool)] = 0.5
    scores[1, 3, 0] = -7
    scores[1, 3, 1] = np.nan
    scores[0, 0, 3] = 99  # in the future
    assert made(np.stack([UNIFORM, UNIFORM]), scores).largest_score == 7


def test_shrinking_keeps_the_largest_weight_of_each_bin_and_nan() -> None:
    values = np.arange(25, dtype=np.float32).reshape(5, 5)
    assert bins(5, 2).tolist() == [0, 2]
    assert pooled_by_largest(values, 2, 2).tolist() == [[6, 9], [21, 24]]
    assert pooled_by_largest(values, 9, 1).tolist() == [[4], [9], [14], [19], [24]]
    values[0, 0] = np.nan
    assert np.isnan(pooled_by_largest(values, 2, 2)).tolist() == [[True, False], [False, False]]


def test_the_overview_of_a_long_prompt_is_small() -> None:
    config = GPTConfig(n_layer=1, n_head=2, n_embd=8, n_inner=8, block_size=300, vocab_size=11)
    record = attention(live(config, 300), 0)
    assert record.overview is not None
    assert record.overview.shape == (2, OVERVIEW, OVERVIEW)
    assert record.pattern.tensor is not None
    assert record.overview.max() == record.pattern.tensor.values.max()
