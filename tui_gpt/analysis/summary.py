"""The statistics of every stage of a trace, block by block, keeping nothing.

Logits and probabilities are summed up by slices of positions, so that no more than a slice
of them is in memory.
"""

from __future__ import annotations

from collections.abc import Iterator

from tui_gpt.errors import MissingStage
from tui_gpt.records.stages import Stage
from tui_gpt.records.tensors import Statistics, merged, statistics
from tui_gpt.records.trace import Trace

_SLICE_CELLS = 4_000_000
"""Cells of logits at a time: 16 MB in float32."""


def summaries(trace: Trace) -> Iterator[tuple[Stage, Statistics | None]]:
    """Give each stage with its statistics, in order; None where it could not be recorded."""
    for stage in trace.run.stages:
        try:
            yield stage, summary(trace, stage)
        except MissingStage:
            yield stage, None


def summary(trace: Trace, stage: Stage) -> Statistics:
    """Compute the statistics of one whole stage.

    Raises:
        MissingStage: It could not be recorded.
    """
    if stage.name not in ("logits", "probs"):
        return statistics(trace.tensor(stage.id))
    n_positions, vocab_size = stage.shape
    step = max(1, _SLICE_CELLS // vocab_size)
    parts: list[Statistics] = []
    counts: list[int] = []
    for first in range(0, n_positions, step):
        tensor = trace.tensor(stage.id, (first, min(first + step, n_positions)))
        parts.append(statistics(tensor))
        counts.append(tensor.values.size)
    return merged(parts, counts)
