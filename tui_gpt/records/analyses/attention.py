"""Where the heads of one block read: weights, scores, and how spread out each row is.

Axes: H head, T position, Tq query, Tk key. A query sees itself and what came before it, so
the row of query q has q + 1 keys, and its entropy is at most ln(q + 1) nats.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tui_gpt.records.stage_values import StageValues


@dataclass(frozen=True, slots=True)
class AttentionRow:
    """What one query of one head reads, most first."""

    head: int
    query: int
    keys: tuple[int, ...]
    """Positions by falling weight, equal ones by rising position; empty with a problem.

    Those the query sees; one in the future is among them only if it has a weight.
    """
    weights: tuple[float, ...]
    """Of the same keys."""
    scores: tuple[float, ...] | None
    """Of the same keys, before softmax; None where the scores could not be recorded."""
    entropy: float | None
    """In nats; None with a problem."""
    ceiling: float
    """ln(query + 1): the entropy of a row that reads all it sees alike."""
    problem: str = ""
    """Why the row says nothing: missing, blocked, or not numbers."""


@dataclass(frozen=True, slots=True, eq=False)
class Attention:
    """The attention of one block."""

    layer: int
    pattern: StageValues
    """(H, Tq, Tk), rows summing to 1."""
    scores: StageValues
    """(H, Tq, Tk), before softmax; the future is masked."""
    entropy: NDArray[np.float64] | None
    """(H, T) in nats: −Σ p ln p of each row. NaN where a row is not numbers; None: no pattern."""
    mean_entropy: NDArray[np.float64] | None
    """(H,) over the queries; NaN where one of them is."""
    ceiling: NDArray[np.float64]
    """(T,) in nats: ln of the number of keys each query sees."""
    blocked: NDArray[np.bool_]
    """(H, T): True where every key that the query sees is masked, so that softmax has no value."""
    overview: NDArray[np.float32] | None
    """(H, n, n), n at most 64: the pattern, the largest weight of each bin. NaN wins."""
    score_ranges: NDArray[np.float64]
    """(H, 2): the least and the largest finite score that is not masked; NaN where none is."""

    @property
    def n_head(self) -> int:
        """H."""
        return self.pattern.stage.shape[0]

    @property
    def n_positions(self) -> int:
        """T."""
        return self.pattern.stage.shape[1]

    @property
    def largest_score(self) -> float:
        """The largest finite magnitude among the scores that are not masked; 0 where none is."""
        return float(np.abs(np.nan_to_num(self.score_ranges)).max(initial=0.0))

    def row(self, head: int, query: int) -> AttentionRow:
        """Sort what one query reads."""
        ceiling = float(self.ceiling[query])
        tensor = self.pattern.tensor
        if tensor is None or self.entropy is None:
            return _without(head, query, ceiling, f"missing: {self.pattern.missing}")
        if self.blocked[head, query]:
            return _without(head, query, ceiling, "blocked: every key it could see is masked")
        weights = tensor.values[head, query].astype(np.float64)
        if not np.isfinite(weights).all():
            return _without(head, query, ceiling, "its weights are not numbers (NaN or infinite)")
        seen = np.arange(weights.size) <= query
        keys = np.flatnonzero(seen | (weights != 0))
        order = keys[np.argsort(-weights[keys], kind="stable")]
        scores = None
        if self.scores.tensor is not None:
            scores = tuple(self.scores.tensor.values[head, query, order].tolist())
        return AttentionRow(
            head,
            query,
            tuple(order.tolist()),
            tuple(weights[order].tolist()),
            scores,
            float(self.entropy[head, query]),
            ceiling,
        )


def bins(total: int, wanted: int) -> NDArray[np.int64]:
    """Cut positions into bins of almost equal length: the first position of each.

    Args:
        total: How many positions there are.
        wanted: How many bins; never more than there are positions.
    """
    n = min(total, wanted)
    return np.arange(n, dtype=np.int64) * total // n


def pooled_by_largest(values: NDArray[np.float32], rows: int, columns: int) -> NDArray[np.float32]:
    """Shrink the last two axes, keeping the largest value of each bin; NaN wins.

    Args:
        values: (…, rows, columns).
        rows: Wanted at most.
        columns: Wanted at most.
    """
    down = np.maximum.reduceat(values, bins(values.shape[-2], rows), axis=-2)
    across: NDArray[np.float32] = np.maximum.reduceat(
        down, bins(values.shape[-1], columns), axis=-1
    )
    return across


def _without(head: int, query: int, ceiling: float, problem: str) -> AttentionRow:
    return AttentionRow(head, query, (), (), None, None, ceiling, problem)
