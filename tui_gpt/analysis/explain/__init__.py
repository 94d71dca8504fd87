"""Explain any cell of any stage: which operands it follows from, by which formula.

Every explanation reads the cells it needs and no others, so its cost is that of one row,
whatever the size of the tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from tui_gpt.analysis.explain.cell import Cell
from tui_gpt.analysis.explain.elementwise import (
    activation,
    gate,
    layer_norm,
    rms_norm,
    rotation,
    sinusoid,
    stream_sum,
    table_entry,
    token,
)
from tui_gpt.analysis.explain.products import linear, mixed_value, score
from tui_gpt.analysis.explain.softmax import softmax
from tui_gpt.records.analyses.explanation import Explanation, check_cell
from tui_gpt.records.block_plan import Kind
from tui_gpt.records.stages import find_stage
from tui_gpt.records.trace import Trace

__all__ = ["explain"]


def explain(
    trace: Trace,
    parameter: Callable[[str], NDArray[np.float32]],
    stage_id: str,
    index: tuple[int, ...],
) -> Explanation:
    """Say where one number comes from.

    Args:
        trace: Live or recorded.
        parameter: Gives a parameter of the model by name, in the shape of the stage table.
        stage_id: An id of the stage table.
        index: One number an axis of the stage, from 0.

    Raises:
        UnknownStage: The model has no such stage.
        UnknownCell: The stage has no such cell.
        MissingStage: The stage, or one that it reads, could not be recorded.
    """
    stage = find_stage(trace.run.stages, stage_id)
    check_cell(stage, index)
    with np.errstate(all="ignore"):  # NaN and infinities are values like any others here
        return _EXPLAINERS[stage.kind](Cell.of(trace, parameter, stage, index))


_EXPLAINERS: Mapping[Kind, Callable[[Cell], Explanation]] = {
    "ids": token,
    "lookup": table_entry,
    "sinusoid": sinusoid,
    "copy": stream_sum,
    "sum": stream_sum,
    "layer_norm": layer_norm,
    "rms_norm": rms_norm,
    "rotation": rotation,
    "linear": linear,
    "scores": score,
    "softmax": softmax,
    "mix": mixed_value,
    "activation": activation,
    "gate": gate,
}
"""By what a step does."""
