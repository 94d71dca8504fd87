"""The answer of one position over the full vocabulary, from recorded logits and probabilities.

Nothing is recomputed that the model computed: probabilities are the recorded ones. A row with
a NaN has no probabilities that are numbers, and none are made up for it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tui_gpt.analysis.summary import slices
from tui_gpt.errors import MissingStage
from tui_gpt.records.analyses.output import NotFinite, Output, Ranked, Ranking
from tui_gpt.records.analyses.prediction import best_ids
from tui_gpt.records.tokens import Token
from tui_gpt.records.trace import Trace

N_RANKED = 50
"""Candidates of an output, as many as a tall terminal shows."""

_N_FLAGGED = 10
"""Ids that are named; a broken weight may flag the whole vocabulary."""


def output(
    trace: Trace, position: int, token: Callable[[int], Token], count: int = N_RANKED
) -> Output:
    """Rank what may follow one position.

    Args:
        trace: Live or recorded.
        position: Counted from 0.
        token: Gives the token of an id.
        count: How many candidates; fewer where the vocabulary is smaller.
    """
    run = trace.run
    missing: list[str] = []
    rows: dict[str, NDArray[np.float32] | None] = {}
    for name in ("logits", "probs"):
        try:
            values = trace.tensor(name, (position, position + 1)).values[0]
            rows[name] = values.astype(np.float32, copy=False)
        except MissingStage as hole:
            rows[name] = None
            missing.append(str(hole))
    logits, probs = rows["logits"], rows["probs"]
    broken = any(row is not None and not np.isfinite(row).all() for row in (logits, probs))
    came = None
    if logits is not None and position + 1 < len(run.tokens):
        came = _placed(logits, probs, run.tokens[position + 1].id, token)
    return Output(
        position=position,
        n_positions=len(run.tokens),
        token=run.tokens[position],
        vocab_size=run.model.config.vocab_size,
        ranking=None if logits is None else ranking(logits, probs, token, count),
        came=came,
        missing=tuple(missing),
        not_finite=first_not_finite(trace) if broken else None,
    )


def ranking(
    logits: NDArray[np.float32],
    probs: NDArray[np.float32] | None,
    token: Callable[[int], Token],
    count: int,
) -> Ranking:
    """Put one row of logits in order.

    Args:
        logits: (V,).
        probs: (V,), or None where they could not be recorded.
        token: Gives the token of an id.
        count: How many to keep.
    """
    unusable = _unusable(logits)
    flagged = np.flatnonzero(unusable)
    usable = logits.size - flagged.size
    kept = np.where(unusable, np.float32(np.nan), logits)  # NaN goes behind every number
    ids = best_ids(kept, min(count, usable)) if usable else []
    best = (
        Ranked(token(i), float(logits[i]), _prob(probs, i), rank)
        for rank, i in enumerate(ids, start=1)
    )
    return Ranking(
        best=tuple(best),
        entropy=None if probs is None else entropy(probs),
        flagged=tuple(flagged[:_N_FLAGGED].tolist()),
        n_flagged=int(flagged.size),
    )


def entropy(probs: NDArray[np.float32]) -> float | None:
    """Compute −Σ p ln p in nats; 0 · ln 0 counts as 0. None where one is no number."""
    p = probs.astype(np.float64)
    if not np.isfinite(p).all():
        return None
    p = p[p > 0]
    return max(0.0, float(-(p * np.log(p)).sum()))  # never −0


def first_not_finite(trace: Trace) -> NotFinite | None:
    """Walk the stages in order up to the first NaN or infinity; masked scores are none.

    This computes every block up to that stage. Missing stages are passed over.
    """
    for stage in trace.run.stages:
        cells = 0
        index: tuple[int, ...] = ()
        try:
            for tensor in slices(trace, stage):
                broken = ~np.isfinite(tensor.values)
                if tensor.masked is not None:
                    broken &= ~tensor.masked
                if broken.any() and not cells:
                    place = np.unravel_index(int(broken.argmax()), broken.shape)
                    index = (int(place[0]) + tensor.first, *(int(i) for i in place[1:]))
                cells += int(broken.sum())
        except MissingStage:
            continue
        if cells:
            return NotFinite(stage, cells, index)
    return None


def _placed(
    logits: NDArray[np.float32],
    probs: NDArray[np.float32] | None,
    token_id: int,
    token: Callable[[int], Token],
) -> Ranked:
    """Find the place of one token among all that can be ranked."""
    logit = logits[token_id]
    unusable = _unusable(logits)
    rank = None
    if not unusable[token_id]:
        before = ~unusable & (logits > logit)
        before[:token_id] |= (logits == logit)[:token_id]
        rank = 1 + int(before.sum())
    return Ranked(token(token_id), float(logit), _prob(probs, token_id), rank)


def _unusable(logits: NDArray[np.float32]) -> NDArray[np.bool_]:
    marks: NDArray[np.bool_] = np.isnan(logits) | np.isposinf(logits)
    return marks


def _prob(probs: NDArray[np.float32] | None, token_id: int) -> float | None:
    return None if probs is None else float(probs[token_id])
