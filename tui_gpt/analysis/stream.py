"""How the residual stream grows, from the recorded values alone.

In a pre-norm model the sub-layers add to the stream: it is `resid_pre` of block 0, then
`resid_mid` and `resid_post` of every block. In a post-norm model the stream itself is
normalised after each addition, so it is what `ln_1` and `ln_2` leave, and a sub-layer's share
is measured against the normalised stream it read. Block by block, keeping only the numbers.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tui_gpt.errors import MissingStage
from tui_gpt.records.analyses.stream import Stream, StreamPoint, Written, stream_stages
from tui_gpt.records.stages import Stage
from tui_gpt.records.trace import Trace


def stream(trace: Trace, *, check_cancelled: Callable[[], None] = lambda: None) -> Stream:
    """Measure the stream at every depth.

    Args:
        trace: Live or recorded.
        check_cancelled: Called at each point; what it raises ends the work.
    """
    config = trace.run.model.config
    points: list[StreamPoint] = []
    for stage, writer in stream_stages(trace.run.stages, config):
        check_cancelled()
        norm, cosine, missing = _measured(trace, stage)
        written = None if writer is None else _written(trace, writer, points[-1])
        points.append(StreamPoint(stage, written, norm, cosine, missing))
    return Stream(config, len(trace.run.tokens), tuple(points))


def mean_cosine(vectors: NDArray[np.float64]) -> float | None:
    """Average the cosine similarity over all pairs of different rows.

    Args:
        vectors: (T, C). Rows of length 0 have no direction and are left out.

    Returns:
        (|Σu|² − n) / (n(n − 1)) for the n unit vectors u; None for fewer than two of them.
    """
    lengths = np.linalg.norm(vectors, axis=-1)
    kept = lengths != 0  # NaN is kept, and makes the result NaN
    n = int(kept.sum())
    if n < 2:
        return None
    total = (vectors[kept] / lengths[kept, None]).sum(axis=0)
    return float((total @ total - n) / (n * (n - 1)))


def _measured(trace: Trace, stage: Stage) -> tuple[NDArray[np.float64] | None, float | None, str]:
    """Give the lengths, the cosine, and why they are missing."""
    try:
        values = trace.tensor(stage.id).values.astype(np.float64)
    except MissingStage as hole:
        return None, None, str(hole)
    with np.errstate(invalid="ignore"):  # infinite values have no direction: NaN says so
        return np.linalg.norm(values, axis=-1), mean_cosine(values), ""


def _written(trace: Trace, writer: Stage, before: StreamPoint) -> Written:
    """Compare what a sub-layer wrote with the stream before it."""
    length, _, missing = _measured(trace, writer)
    if length is None or before.norm is None:
        return Written(writer, None, missing or before.missing)
    with np.errstate(invalid="ignore", divide="ignore"):  # a zero stream: see Written.share
        return Written(writer, length / before.norm)
