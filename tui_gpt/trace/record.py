"""Recording a forward pass on demand: the stream is kept, the rest is run again when wanted.

A trace keeps the residual stream at the block borders, so memory grows with L·T·C and not
with L·H·T². Opening a stage runs its block once more from its border with a tap listening.
Logits and probabilities are computed for the rows that are asked for, and a few around them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from tui_gpt.errors import MissingStage
from tui_gpt.model.gpt import GPT
from tui_gpt.records.analyses.prediction import best_candidates
from tui_gpt.records.stages import ActivationName, Stage, find_stage
from tui_gpt.records.stages import stage_id as stage_id_of
from tui_gpt.records.tensors import StageTensor
from tui_gpt.records.tokens import Token
from tui_gpt.records.trace import Candidate, Run

BLOCKS_KEPT = 2
"""Blocks whose activations stay in memory: the one looked at and the one before."""

ROWS_TOGETHER = 64
"""Positions whose logits are computed at once, counted from 0.

The last bits of a matrix product depend on how many rows go into it, so a cell reads the
same in every pane and command only if it is always computed in the same company.
"""


_OUTPUT: frozenset[ActivationName] = frozenset({"logits", "probs"})
"""Computed for the rows that are looked at."""


class Recorder:
    """A tap that keeps what it is asked for and changes nothing."""

    def __init__(self, wanted: Callable[[ActivationName], bool] = lambda name: True) -> None:
        self._wanted = wanted
        self.seen: dict[tuple[ActivationName, int | None], Tensor] = {}

    def __call__(self, name: ActivationName, layer: int | None, x: Tensor) -> Tensor:
        """Keep the activation if it is wanted, and hand it on."""
        if self._wanted(name):
            self.seen[name, layer] = x
        return x


class LiveTrace:
    """The numbers of one run, computed by the model when they are asked for."""

    def __init__(
        self,
        run: Run,
        model: GPT,
        token: Callable[[int], Token],
        *,
        check_cancelled: Callable[[], None] = lambda: None,
    ) -> None:
        """Run the model once over the tokens, keeping the stream at the block borders.

        Args:
            run: The prompt and its stage table.
            model: In evaluation mode.
            token: Gives the token of an id, for the prediction.
            check_cancelled: Called at each activation of the first pass; what it raises ends it.
        """
        self.run = run
        self._model = model
        self._token = token
        self._blocks: OrderedDict[int, dict[ActivationName, Tensor]] = OrderedDict()
        self._last_group: tuple[int, dict[ActivationName, Tensor]] | None = None
        self._ids = torch.tensor([[token.id for token in run.tokens]])  # (1, T)

        def is_border(name: ActivationName) -> bool:
            check_cancelled()
            return name == "resid_pre"

        recorder = Recorder(is_border)
        with torch.inference_mode():
            self._last = model.stream(self._ids, recorder)  # (1, T, C)
        # What each block reads, (1, T, C); a block whose input was not offered has none.
        self._borders = {layer: x for (_, layer), x in recorder.seen.items()}

    def tensor(self, stage_id: str, rows: tuple[int, int] | None = None) -> StageTensor:
        """Give the values of one stage; see `Trace.tensor`."""
        stage = find_stage(self.run.stages, stage_id)
        first, end = 0, len(self.run.tokens)
        if stage.name in _OUTPUT:
            first, end = rows or (first, end)
            values = self._output_rows(stage, first, end)
        else:
            values = self._activation(stage)
        return StageTensor(stage, values[0].numpy(), first)

    def prediction(self) -> tuple[Candidate, ...]:
        """Rank what may follow the last token; see `Trace.prediction`."""
        last = len(self.run.tokens) - 1
        try:
            logits = self.tensor("logits", (last, last + 1)).values[0]
            probs = self.tensor("probs", (last, last + 1)).values[0]
        except MissingStage:
            return ()
        return best_candidates(
            logits.astype(np.float32, copy=False), probs.astype(np.float32, copy=False), self._token
        )

    def _activation(self, stage: Stage) -> Tensor:
        """Compute the part of the pass that holds a stage: the activation, batch axis first."""
        if stage.layer is not None:
            seen = self._block(stage.layer)
        else:
            recorder = Recorder()
            with torch.inference_mode():
                if stage.name == "ln_final":
                    self._model.final_norm(self._last, recorder)
                else:
                    self._model.embed(self._ids, recorder)
            seen = {name: x for (name, _), x in recorder.seen.items()}
        return _offered(stage.id, seen.get(stage.name))

    def _output_rows(self, stage: Stage, first: int, end: int) -> Tensor:
        """Compute logits or probabilities of some positions: (1, end - first, V)."""
        start = first - first % ROWS_TOGETHER
        parts = [
            _offered(stage.id, self._group(group).get(stage.name))
            for group in range(start, max(end, start + 1), ROWS_TOGETHER)
        ]
        return torch.cat(parts, dim=1)[:, first - start : end - start]

    def _group(self, start: int) -> dict[ActivationName, Tensor]:
        """Compute logits and probabilities of one group of rows, or take the last one's."""
        if self._last_group is None or self._last_group[0] != start:
            recorder = Recorder()
            with torch.inference_mode():
                self._model.unembed(self._last[:, start : start + ROWS_TOGETHER], recorder)
            seen = {name: x for (name, _), x in recorder.seen.items() if name in _OUTPUT}
            self._last_group = (start, seen)
        return self._last_group[1]

    def _block(self, layer: int) -> dict[ActivationName, Tensor]:
        """Run one block again from its border, or take it from the last ones kept."""
        if layer not in self._blocks:
            border = _offered(stage_id_of("resid_pre", layer), self._borders.get(layer))
            recorder = Recorder()
            with torch.inference_mode():
                self._model.h[layer](border, recorder)
            self._blocks[layer] = {name: x for (name, _), x in recorder.seen.items()}
        self._blocks.move_to_end(layer)
        while len(self._blocks) > BLOCKS_KEPT:
            self._blocks.popitem(last=False)
        return self._blocks[layer]


def _offered(stage_id: str, x: Tensor | None) -> Tensor:
    """Give what a tap saw; what it never saw is missing, and no other number takes its place."""
    if x is None:
        raise MissingStage(f"{stage_id} was not recorded: the pass did not offer it to the tap")
    return x
