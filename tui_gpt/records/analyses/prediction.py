"""The best candidates of one row of logits, ties resolved to the lowest id."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tui_gpt.records.tokens import Token
from tui_gpt.records.trace import N_CANDIDATES, Candidate


def best_candidates(
    logits: NDArray[np.float32],
    probs: NDArray[np.float32],
    token: Callable[[int], Token],
    count: int = N_CANDIDATES,
) -> tuple[Candidate, ...]:
    """Rank vocabulary entries by logit.

    Args:
        logits: (V,) of one position.
        probs: (V,) of the same position.
        token: Gives the token of an id.
        count: How many; fewer where the vocabulary is smaller.

    Returns:
        Best first. A logit that is NaN or +∞ proposes nothing, so it is left out.
    """
    return tuple(
        Candidate(token(i), float(logits[i]), float(probs[i]))
        for i in best_ids(logits, count)
        if logits[i] < np.inf
    )


def best_ids(logits: NDArray[np.float32], count: int) -> list[int]:
    """Give the ids with the highest logits, best first, equal ones by rising id, NaN last.

    Args:
        logits: (V,).
        count: How many; fewer where the vocabulary is smaller.
    """
    falling = -logits
    ids = np.arange(logits.size)
    if count < logits.size:
        # Only what reaches the last place is sorted; all that share it are, or an id is lost.
        last = np.partition(falling, count - 1)[count - 1]
        if not np.isnan(last):
            ids = np.flatnonzero(falling <= last)
    best: list[int] = ids[np.argsort(falling[ids], kind="stable")][:count].tolist()
    return best
