"""The statistics of every stage of a trace, block by block, keeping nothing.

Logits and probabilities are summed up by slices of positions, so that no more than a slice
of them is in memory.
"""

from __future__ import annotations

from collections.abc import Iterator

from tui_gpt.errors import MissingStage
from tui_gpt.records.stages import Stage
from tui_gpt.records.tensors import StageSummary, StageTensor, Statistics, merged, statistics
from tui_gpt.records.trace import Trace

_SLICE_CELLS = 4_000_000
"""Cells of logits at a time: 16 MB in float32."""


def summaries(trace: Trace) -> Iterator[StageSummary]:
    """Sum up each stage in order; one that could not be recorded says why."""
    for stage in trace.run.stages:
        try:
            yield StageSummary(stage, summary(trace, stage))
        except MissingStage as hole:
            yield StageSummary(stage, None, str(hole))


def summary(trace: Trace, stage: Stage) -> Statistics:
    """Compute the statistics of one whole stage.

    Raises:
        MissingStage: It could not be recorded.
    """
    parts: list[Statistics] = []
    counts: list[int] = []
    for tensor in slices(trace, stage):
        parts.append(statistics(tensor))
        counts.append(tensor.present().size)
    return parts[0] if len(parts) == 1 else merged(parts, counts)


def slices(trace: Trace, stage: Stage) -> Iterator[StageTensor]:
    """Give a stage's values in order: whole, or for logits and probs some positions at a time.

    Raises:
        MissingStage: It could not be recorded.
    """
    if stage.name not in ("logits", "probs"):
        yield trace.tensor(stage.id)
        return
    n_positions, vocab_size = stage.shape
    step = max(1, _SLICE_CELLS // vocab_size)
    for first in range(0, n_positions, step):
        yield trace.tensor(stage.id, (first, min(first + step, n_positions)))
