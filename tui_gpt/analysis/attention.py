"""What the heads of one block read, from the recorded scores and pattern alone.

The entropy of a row is −Σ p ln p in nats: 0 where a query reads a single key, ln n where it
reads all n keys it sees alike. Nothing is recomputed that was recorded.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tui_gpt.records.analyses.attention import Attention, pooled_by_largest
from tui_gpt.records.stage_values import stage_values
from tui_gpt.records.stages import stage_id
from tui_gpt.records.trace import Trace

OVERVIEW = 64
"""Bins along each side of a head's small picture, at most."""


def attention(trace: Trace, layer: int) -> Attention:
    """Read one block's attention; what could not be recorded keeps its reason.

    Args:
        trace: Live or recorded.
        layer: The block, counted from 0.

    Raises:
        UnknownStage: The model has no such block.
    """
    pattern = stage_values(trace, stage_id("pattern", layer))
    scores = stage_values(trace, stage_id("attn_scores", layer))
    n_head, n_positions, _ = pattern.stage.shape
    entropy = overview = None
    if pattern.tensor is not None:
        weights = pattern.tensor.values.astype(np.float32, copy=False)
        entropy = np.stack([entropy_of(head) for head in weights])
        overview = pooled_by_largest(weights, OVERVIEW, OVERVIEW)
    blocked = np.zeros((n_head, n_positions), dtype=np.bool_)
    score_ranges = np.full((n_head, 2), np.nan)
    if scores.tensor is not None:
        of_all = scores.tensor.values.astype(np.float32, copy=False)
        seen = np.tri(n_positions, dtype=np.bool_)
        for head, of_head in enumerate(of_all):
            blocked[head] = (np.isneginf(of_head) | ~seen).all(axis=-1)
            there = of_head[seen & np.isfinite(of_head)]
            if there.size:
                score_ranges[head] = there.min(), there.max()
    return Attention(
        layer=layer,
        pattern=pattern,
        scores=scores,
        entropy=entropy,
        mean_entropy=None if entropy is None else entropy.mean(axis=-1),
        ceiling=np.log(np.arange(1, n_positions + 1, dtype=np.float64)),
        blocked=blocked,
        overview=overview,
        score_ranges=score_ranges,
    )


def entropy_of(weights: NDArray[np.float32]) -> NDArray[np.float64]:
    """Compute −Σ p ln p along the last axis in float64; 0 · ln 0 counts 0, NaN stays NaN.

    Args:
        weights: (…, Tk), each row summing to 1.

    Returns:
        (…,) in nats.
    """
    p = weights.astype(np.float64)
    # A row that is not numbers has no entropy, whatever its other cells hold.
    p[~np.isfinite(p)] = np.nan
    with np.errstate(invalid="ignore", divide="ignore"):
        terms = np.where(p == 0, 0.0, p * np.log(p))
    total: NDArray[np.float64] = np.abs(terms.sum(axis=-1))  # no row is at −0
    return total
