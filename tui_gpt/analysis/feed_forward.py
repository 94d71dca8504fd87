"""Which hidden units of one block fire, from the recorded activations alone.

The activation is the only formula here, and only for its curve:
gelu x·Φ(x); gelu_tanh ½x(1 + tanh(√(2/π)(x + 0.044715x³))); relu max(0, x).
A unit is off where `mlp_post` ≤ 0; see `records.feed_forward`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from tui_gpt.analysis.explain.elementwise import activated
from tui_gpt.config import Activation
from tui_gpt.records.analyses.feed_forward import Curve, FeedForward
from tui_gpt.records.stage_values import StageValues, stage_values
from tui_gpt.records.stages import stage_id
from tui_gpt.records.trace import Trace

BEND = 6.0
"""Beyond this magnitude all three activations are straight: the distance is below 1e-8."""

_STEPS = 240
"""Between −BEND and BEND; even, so that 0 is a point."""


def feed_forward(trace: Trace, layer: int) -> FeedForward:
    """Read one block's hidden units; what could not be recorded keeps its reason.

    Args:
        trace: Live or recorded.
        layer: The block, counted from 0.

    Raises:
        UnknownStage: The model has no such block.
    """
    pre = stage_values(trace, stage_id("mlp_pre", layer))
    post = stage_values(trace, stage_id("mlp_post", layer))
    off_share: NDArray[np.float64] | None = None
    off_overall: float | None = None
    n_silent: int | None = None
    if post.tensor is not None:
        values = post.tensor.values
        is_off = values <= 0
        unknown = np.isnan(values)
        off_share = np.where(unknown.any(axis=-1), np.nan, is_off.mean(axis=-1))
        off_overall = math.nan if unknown.any() else float(is_off.mean())
        n_silent = None if unknown.any() else int(is_off.all(axis=0).sum())
    pre_range = _range(pre)
    low, high = pre_range or (0.0, 0.0)
    return FeedForward(
        layer=layer,
        pre=pre,
        post=post,
        off_share=off_share,
        off_overall=off_overall,
        n_silent=n_silent,
        curve=curve(trace.run.model.config.activation, low, high),
        pre_range=pre_range,
        post_range=_range(post),
    )


def curve(activation: Activation, low: float, high: float) -> Curve:
    """Compute points of an activation that cover at least −BEND … BEND.

    Args:
        activation: Which one.
        low: The smallest input that must be covered.
        high: The largest.
    """
    x = np.linspace(-BEND, BEND, _STEPS + 1)
    x = np.concatenate([[low] if low < -BEND else [], x, [high] if high > BEND else []])
    return Curve(activation, x, np.array([activated(activation, value) for value in x.tolist()]))


def _range(source: StageValues) -> tuple[float, float] | None:
    """Find the least and the largest finite value; None where there is none."""
    if source.tensor is None:
        return None
    values = source.tensor.values
    finite = values[np.isfinite(values)]
    return (float(finite.min()), float(finite.max())) if finite.size else None
