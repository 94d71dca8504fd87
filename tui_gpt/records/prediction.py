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
    """
    # A stable sort of the negated logits keeps equal ones in the order of their ids.
    order = np.argsort(-logits, kind="stable")[:count]
    return tuple(
        Candidate(token(int(i)), float(logits[i]), float(probs[i])) for i in order.tolist()
    )
