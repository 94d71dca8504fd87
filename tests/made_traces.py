"""Traces with made-up values or holes in some stages, for what no healthy model shows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tui_gpt.config import GPTConfig
from tui_gpt.errors import MissingStage
from tui_gpt.records.recording import Recording
from tui_gpt.records.stages import find_stage, stage_table
from tui_gpt.records.tensors import StageTensor
from tui_gpt.records.tokens import Token
from tui_gpt.records.trace import Candidate, ModelFacts, Run

RECORDINGS = Path(__file__).parent.parent / "assets" / "recordings"

REASON = "the pass did not offer it \x1b[31m[b]to the tap"
"""A reason as hostile as any text from outside."""


def recording(name: str = "shakespeare") -> Recording:
    """Open a recording that ships: 19 tokens, two blocks of 4 heads and 256 units."""
    return Recording(RECORDINGS / f"{name}.safetensors")


def a_run(config: GPTConfig, tokens: tuple[Token, ...]) -> Run:
    """Describe a run of a model that is only made up."""
    facts = ModelFacts("made", config, 0, "folder")
    return Run(facts, "made", tokens, (), stage_table(config, len(tokens)))


class MadeTrace:
    """Stages by their ids: arrays are values, words are the reason why there are none."""

    def __init__(self, run: Run, stages: Mapping[str, NDArray[np.float32] | str]) -> None:
        self.run = run
        self._stages = stages

    def tensor(self, stage_id: str, rows: tuple[int, int] | None = None) -> StageTensor:
        found = self._stages[stage_id]
        if isinstance(found, str):
            raise MissingStage(found)
        return StageTensor(find_stage(self.run.stages, stage_id), found)

    def prediction(self) -> tuple[Candidate, ...]:
        return ()
