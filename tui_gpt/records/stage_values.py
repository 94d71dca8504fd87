"""A stage's values, or the reason why there are none: records of several stages hold these."""

from __future__ import annotations

from dataclasses import dataclass

from tui_gpt.errors import MissingStage
from tui_gpt.records.stages import Stage, find_stage
from tui_gpt.records.tensors import StageTensor
from tui_gpt.records.trace import Trace


@dataclass(frozen=True, slots=True)
class StageValues:
    """One stage as a trace has it."""

    stage: Stage
    tensor: StageTensor | None
    """None where the stage could not be recorded."""
    missing: str = ""
    """Why it could not."""


def stage_values(trace: Trace, stage_id: str) -> StageValues:
    """Read a stage; a hole becomes its reason.

    Raises:
        UnknownStage: The model has no such stage.
    """
    stage = find_stage(trace.run.stages, stage_id)
    try:
        return StageValues(stage, trace.tensor(stage_id))
    except MissingStage as hole:
        return StageValues(stage, None, str(hole))
