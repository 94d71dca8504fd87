"""Traces for tests: a tiny run, one with a single broken cell, one with a hole."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from conftest import tiny_gpt
from torch import Tensor

from tui_gpt.config import GPTConfig
from tui_gpt.errors import MissingStage
from tui_gpt.model.gpt import GPT, Tap, untapped
from tui_gpt.records.stages import ActivationName, Stage, stage_table
from tui_gpt.records.tensors import StageTensor
from tui_gpt.records.tokens import Token
from tui_gpt.records.trace import Candidate, ModelFacts, Run, Trace
from tui_gpt.trace.record import LiveTrace

IDS = (3, 1, 4, 1, 5, 9, 2, 6)


def a_token(token_id: int) -> Token:
    return Token(token_id, bytes([0x61 + token_id % 26]))


def a_run(config: GPTConfig, ids: tuple[int, ...] = IDS) -> Run:
    tokens = tuple(a_token(token_id) for token_id in ids)
    facts = ModelFacts("tiny", config, 0, "folder")
    return Run(facts, "tiny prompt", tokens, (), stage_table(config, len(ids)))


def live(config: GPTConfig, ids: tuple[int, ...] = IDS, model: GPT | None = None) -> LiveTrace:
    return LiveTrace(a_run(config, ids), model or tiny_gpt(config), a_token)


class Broken:
    """A trace with one cell of one stage changed."""

    def __init__(
        self, trace: Trace, stage_id: str, index: tuple[int, ...], by: float = 1e-3
    ) -> None:
        self.run = trace.run
        self._trace = trace
        self._stage_id = stage_id
        self._index = index
        self._by = by

    def tensor(self, stage_id: str, rows: tuple[int, int] | None = None) -> StageTensor:
        found = self._trace.tensor(stage_id, rows)
        row = self._index[0] - found.first
        if stage_id != self._stage_id or not 0 <= row < found.values.shape[0]:
            return found
        values = found.values.copy(order="K")
        cell = (row, *self._index[1:])
        # A masked score is −∞, and plus something it still would be.
        start = values[cell] if np.isfinite(values[cell]) else 0
        values[cell] = start + np.asarray(self._by, values.dtype)
        return StageTensor(found.stage, values, found.first)

    def prediction(self) -> tuple[Candidate, ...]:
        return self._trace.prediction()


class Without:
    """A trace in which one stage could not be recorded."""

    def __init__(self, trace: Trace, stage_id: str) -> None:
        self.run = trace.run
        self.reason = f"{stage_id} was not recorded: a test says so"
        self._trace = trace
        self._stage_id = stage_id

    def tensor(self, stage_id: str, rows: tuple[int, int] | None = None) -> StageTensor:
        if stage_id == self._stage_id:
            raise MissingStage(self.reason)
        return self._trace.tensor(stage_id, rows)

    def prediction(self) -> tuple[Candidate, ...]:
        return self._trace.prediction()


def unhook(patch: pytest.MonkeyPatch, model: GPT, stage: Stage) -> None:
    """Make a model's pass offer every activation but one to the tap."""

    def deaf(tap: Tap) -> Tap:
        def pass_by(name: ActivationName, layer: int | None, x: Tensor) -> Tensor:
            return x if (name, layer) == (stage.name, stage.layer) else tap(name, layer, x)

        return pass_by

    for part in ("embed", "unembed", "final_norm"):
        patch.setattr(model, part, _with_tap(getattr(model, part), deaf))
    for block in model.h:
        patch.setattr(block, "forward", _with_tap(block.forward, deaf))


def _with_tap(
    method: Callable[..., Tensor], changed: Callable[[Tap], Tap]
) -> Callable[..., Tensor]:
    def called(x: Tensor, tap: Tap = untapped, *rest: object) -> Tensor:
        return method(x, tap if tap is untapped else changed(tap), *rest)

    return called
