"""The logit lens: the model's own last steps, applied to the stream at every depth.

A position's rows are computed together, except the last one: it is the model's own answer and
is computed in the same company of rows as the logits are, so that it equals them exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tui_gpt.analysis.output import ranking
from tui_gpt.errors import MissingStage
from tui_gpt.model.gpt import GPT
from tui_gpt.records.analyses.lens import Lens, LensPoint
from tui_gpt.records.analyses.stream import stream_stages
from tui_gpt.records.tokens import Token
from tui_gpt.records.trace import N_CANDIDATES, Trace
from tui_gpt.trace.record import ROWS_TOGETHER, Recorder

_SLICE_CELLS = 4_000_000
"""Logits at a time: 16 MB in float32."""

_Answer: TypeAlias = tuple[NDArray[np.float32], NDArray[np.float32] | None]
"""Logits and probabilities of one row, each (V,)."""


def lens(
    trace: Trace,
    model: GPT,
    token: Callable[[int], Token],
    position: int,
    *,
    count: int = N_CANDIDATES,
    check_cancelled: Callable[[], None] = lambda: None,
) -> Lens:
    """Read the stream of one position through the output head, at every depth.

    Args:
        trace: Live or recorded, of this model.
        model: Whose final LayerNorm and head are used.
        token: Gives the token of an id.
        position: Counted from 0.
        count: Candidates of each depth; fewer where the vocabulary is smaller.
        check_cancelled: Called at each depth; what it raises ends the work.
    """
    (only,) = lenses(trace, model, token, (position,), count=count, check_cancelled=check_cancelled)
    return only


def lenses(
    trace: Trace,
    model: GPT,
    token: Callable[[int], Token],
    positions: tuple[int, ...],
    *,
    count: int = N_CANDIDATES,
    check_cancelled: Callable[[], None] = lambda: None,
) -> tuple[Lens, ...]:
    """Read several positions, each as `lens` does, going through the blocks once."""
    stages = [stage for stage, _ in stream_stages(trace.run.stages, model.config)]
    chosen = list(positions)
    rows: dict[int, NDArray[np.float32]] = {}  # by depth: (positions asked for, C)
    holes: dict[int, str] = {}
    last: NDArray[np.float32] | None = None  # (T, C)
    for depth, stage in enumerate(stages):
        check_cancelled()
        try:
            values = trace.tensor(stage.id).values.astype(np.float32, copy=False)
        except MissingStage as hole:
            holes[depth] = str(hole)
            continue
        if depth < len(stages) - 1:
            rows[depth] = values[chosen]
        else:
            last = values
    read: list[Lens] = []
    for place, position in enumerate(positions):
        check_cancelled()
        found = dict(_above(model, {depth: kept[place] for depth, kept in rows.items()}))
        if last is not None:
            first, end = company(position, len(last))
            logits, probs = answers(model, last[first:end])
            found[len(stages) - 1] = _row(logits, probs, position - first)
        points = (
            LensPoint(stage, ranking(*found[depth], token, count))
            if depth in found
            else LensPoint(stage, None, holes[depth])
            for depth, stage in enumerate(stages)
        )
        read.append(Lens(position, tuple(points)))
    return tuple(read)


def answers(model: GPT, rows: NDArray[np.float32]) -> tuple[Tensor, Tensor | None]:
    """Apply the final LayerNorm, the head and softmax to rows of the stream.

    Args:
        model: Whose they are.
        rows: (n, C).

    Returns:
        Logits and probabilities, each (n, V); None where the pass does not offer the latter.
    """
    recorder = Recorder(lambda name: name == "probs")
    with torch.inference_mode():
        logits = model.unembed(torch.tensor(rows)[None], recorder)
    probs = recorder.seen.get(("probs", None))
    return logits[0], None if probs is None else probs[0]


def company(position: int, n_positions: int) -> tuple[int, int]:
    """Give the positions whose logits are computed together with one: (first, end)."""
    first = position - position % ROWS_TOGETHER
    return first, min(first + ROWS_TOGETHER, n_positions)


def _above(model: GPT, rows: dict[int, NDArray[np.float32]]) -> Iterator[tuple[int, _Answer]]:
    """Answer at the depths above the last, for one position: rows by depth, each (C,)."""
    depths = list(rows)
    step = max(1, _SLICE_CELLS // model.config.vocab_size)
    for start in range(0, len(depths), step):
        group = depths[start : start + step]
        logits, probs = answers(model, np.stack([rows[depth] for depth in group]))
        for place, depth in enumerate(group):
            yield depth, _row(logits, probs, place)


def _row(logits: Tensor, probs: Tensor | None, place: int) -> _Answer:
    return logits[place].numpy(), None if probs is None else probs[place].numpy()
