"""Adding up the tensors that are really in a model's weight files: by name, without numbers."""

from __future__ import annotations

from math import prod

from tui_gpt.checkpoints.find import ModelSource, plan_of
from tui_gpt.records.budget.counts import StateDictCount


def count_state_dict(source: ModelSource) -> StateDictCount | None:
    """Read what a model's files hold and add it up; None where there is no file.

    Raises:
        DamagedModel: A file is incomplete or contradicts the config.
    """
    if source.files is None:
        return None
    plan = plan_of(source)
    others = [
        (skipped.entry.key, prod(skipped.entry.shape), skipped.kind) for skipped in plan.skipped
    ]
    return StateDictCount(
        n_tensors=len(plan.placements) + len(plan.skipped),
        n_parameters=sum(prod(placement.entry.shape) for placement in plan.placements),
        twice=tuple((key, count) for key, count, kind in others if kind == "tied"),
        buffers=tuple((key, count) for key, count, kind in others if kind != "tied"),
    )
