"""Which hidden units fire: order, ties, how many are off, and the activations themselves."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from conftest import TINY, TINY_2017
from made_traces import REASON, MadeTrace, a_run, recording
from numpy.typing import NDArray
from torch.nn import functional

from tui_gpt.analysis.explain.elementwise import activated
from tui_gpt.analysis.feed_forward import BEND, curve, feed_forward
from tui_gpt.config import Activation
from tui_gpt.records.analyses.feed_forward import Curve, FeedForward
from tui_gpt.records.tokens import Token

CONFIG = replace(TINY, n_inner=4)
TOKENS = tuple(Token(i, bytes([0x61 + i])) for i in range(3))

PRE = np.array([[-1, 2, 0, 2], [3, -1, -2, 1], [-4, -1, -3, 5]], np.float32)
POST = np.maximum(PRE, 0)


def made(
    pre: NDArray[np.float32] | str = PRE, post: NDArray[np.float32] | str = POST
) -> FeedForward:
    stages = {"blocks.0.mlp_pre": pre, "blocks.0.mlp_post": post}
    return feed_forward(MadeTrace(a_run(CONFIG, TOKENS), stages), 0)


def test_units_are_sorted_by_firing_and_equal_ones_by_number() -> None:
    record = made()
    assert record.units(0).tolist() == [1, 3, 0, 2]
    assert record.units(1).tolist() == [0, 3, 1, 2]
    assert record.units(2).tolist() == [3, 0, 1, 2]


def test_tokens_are_sorted_by_how_strongly_they_fire_a_unit() -> None:
    record = made()
    assert record.tokens(3).tolist() == [2, 0, 1]
    assert record.tokens(2).tolist() == [0, 1, 2]


def test_a_unit_is_off_where_nothing_above_zero_comes_out() -> None:
    record = made()
    assert record.off_share is not None
    np.testing.assert_allclose(record.off_share, [2 / 4, 2 / 4, 3 / 4])
    assert record.off_overall == pytest.approx(7 / 12)
    assert record.n_silent == 1  # unit 2


@pytest.mark.parametrize("name", ["shakespeare", "shakespeare-2017"])
def test_off_by_what_comes_out_is_off_by_what_goes_in(name: str) -> None:
    trace = recording(name)
    for layer in (0, 1):
        record = feed_forward(trace, layer)
        assert record.pre.tensor is not None
        assert record.off_share is not None
        np.testing.assert_array_equal(
            record.off_share, (record.pre.tensor.values <= 0).mean(axis=-1)
        )


def test_a_recorded_unit_lies_on_its_curve() -> None:
    for name in ("shakespeare", "shakespeare-2017"):
        trace = recording(name)
        record = feed_forward(trace, 1)
        assert record.pre.tensor is not None
        assert record.post.tensor is not None
        ours = [
            activated(trace.run.model.config.activation, x)
            for x in record.pre.tensor.values[18].tolist()
        ]
        # one activation in float32
        np.testing.assert_allclose(record.post.tensor.values[18], ours, rtol=0, atol=1e-6)


def test_the_tanh_form_of_gelu_has_its_published_values() -> None:
    published = {
        -3: -0.0036, -2: -0.0454, -1: -0.1588, -0.5: -0.1543, -0.1: -0.0460,
        0: 0, 0.5: 0.3457, 1: 0.8412, 2: 1.9546, 3: 2.9964,
    }  # fmt: skip
    for x, y in published.items():  # figure W5
        assert round(activated("gelu_tanh", x), 4) == y
        assert activated("relu", x) == max(0, x)


@pytest.mark.parametrize("activation", ["gelu", "gelu_tanh", "relu"])
def test_each_activation_is_torchs(activation: Activation) -> None:
    x = torch.linspace(-8, 8, 101, dtype=torch.float64)
    torchs = {
        "gelu": functional.gelu(x),
        "gelu_tanh": functional.gelu(x, approximate="tanh"),
        "relu": functional.relu(x),
    }[activation]
    ours = [activated(activation, value) for value in x.tolist()]
    np.testing.assert_allclose(ours, torchs.numpy(), rtol=0, atol=1e-12)  # float64


@pytest.mark.parametrize("activation", ["gelu", "gelu_tanh", "relu"])
def test_a_curve_has_zero_and_the_values_it_must_cover(activation: Activation) -> None:
    found = curve(activation, -30, 2)
    assert (found.x[0], found.x[-1]) == (-30, BEND)
    assert (np.diff(found.x) > 0).all()
    assert 0 in found.x
    assert found.y[found.x == 0] == 0
    # Straight beyond the bend: a line to a far end misses nothing that could be seen.
    for x in (-15.0, 15.0):
        assert activated(activation, x) == pytest.approx(max(0, x), abs=1e-8)
    assert activated(activation, -BEND) == pytest.approx(0, abs=1e-8)
    wide = curve(activation, -1e6, 1e30)
    assert np.isfinite(wide.y).all()


def test_a_curve_has_one_y_for_each_x() -> None:
    with pytest.raises(ValueError, match=r"not \(2,\) for \(3,\)"):
        Curve("relu", np.zeros(3), np.zeros(2))


def test_a_nan_is_neither_on_nor_off_and_comes_last() -> None:
    post = POST.copy()
    post[1, 0] = np.nan
    record = made(post=post)
    assert record.off_share is not None
    assert record.off_overall is not None
    assert np.isnan(record.off_share).tolist() == [False, True, False]
    assert math.isnan(record.off_overall)
    assert record.n_silent is None
    assert record.units(1).tolist() == [3, 1, 2, 0]
    assert record.tokens(0).tolist() == [0, 2, 1]
    assert record.post_range == (0, 5)


def test_an_outlier_or_an_infinity_is_no_bound() -> None:
    pre = PRE.copy()
    pre[0, 0] = -np.inf
    pre[0, 1] = np.nan
    record = made(pre)
    assert record.pre_range == (-4, 5)
    assert np.isfinite(record.curve.x).all()


def test_what_was_not_recorded_keeps_its_reason() -> None:
    record = made(post=REASON)
    assert record.post.missing == REASON
    assert record.off_share is None
    assert record.off_overall is None
    assert record.n_silent is None
    assert record.units(0).size == record.tokens(0).size == 0
    record = made(pre=REASON)
    assert record.pre.missing == REASON
    assert record.units(0).tolist() == [1, 3, 0, 2]
    assert record.pre_range is None


def test_the_activation_is_the_models() -> None:
    assert made().curve.activation == TINY.activation
    assert feed_forward(recording("shakespeare-2017"), 0).curve.activation == TINY_2017.activation
