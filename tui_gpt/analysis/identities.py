"""The standing identities: every stage again from the recorded stages it reads.

The model's own pass is run with a tap that hands on what was recorded instead of what was just
computed. So each stage is computed from recorded values alone, and one that was broken shows
at itself and at the stages that read it, and nowhere else. A change that an operation swallows
(a hidden unit that ReLU keeps off, the only key of the first query) shows at itself alone.

Block by block, logits and probabilities some rows at a time, keeping only the errors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from tui_gpt.analysis.lens import answers, company
from tui_gpt.analysis.rounding import room
from tui_gpt.errors import MissingStage
from tui_gpt.model.gpt import GPT
from tui_gpt.records.analyses.identities import Identities, Identity
from tui_gpt.records.block_plan import block_plan
from tui_gpt.records.stages import ActivationName, Stage, stage_id
from tui_gpt.records.tensors import unseen
from tui_gpt.records.trace import Trace
from tui_gpt.trace.record import ROWS_TOGETHER

SUM_TOLERANCE = 1e-5
"""For rows of float32 softmax that must sum to 1: 50,257 entries miss it by 7e-7, measured."""

_SUMS_TO_1 = {
    "pattern": "has rows that sum to 1",
    "probs": "has rows that sum to 1 over the whole vocabulary",
}
_LENS = "is the last row of the logit lens"
_MASKED = "has the future masked"
_NO_FUTURE = "has nothing above the diagonal"

_ROUNDED_SUM = "a float32 softmax divides by a rounded sum"
_EXACT = "nothing is rounded"
_SAME = "the same to the last bit"
_SMALLEST = 2.0**-126


def identities(
    trace: Trace, model: GPT, *, check_cancelled: Callable[[], None] = lambda: None
) -> Identities:
    """Check every identity of a trace.

    Args:
        trace: Live or recorded, of this model.
        model: In evaluation mode.
        check_cancelled: Called at each stage; what it raises ends the work.
    """
    check = _Check(trace, model, check_cancelled)
    with torch.inference_mode():
        check.run()
    return Identities(tuple(check.results()))


@dataclass(frozen=True, slots=True)
class _Cell:
    """The cell that speaks for an identity, in a part of its stage."""

    error: float
    tolerance: float
    index: tuple[int, ...]
    reason: str

    @property
    def rank(self) -> tuple[bool, float]:
        """Order cells: one beyond its tolerance speaks first, then the largest error."""
        if self.error <= self.tolerance:
            return False, self.error
        return True, self.error / max(self.tolerance, _SMALLEST)


class _Check:
    """The tap, and what it has found so far."""

    def __init__(self, trace: Trace, model: GPT, check_cancelled: Callable[[], None]) -> None:
        self._trace = trace
        self._model = model
        self._config = model.config
        self._weights = model.state_dict()
        self._go_on = check_cancelled
        self._stages = {stage.id: stage for stage in trace.run.stages}
        output = block_plan(model.config).output
        self._last = stage_id(output, model.config.n_layer - 1)
        """The stream that the last block leaves."""
        self._here: dict[str, Tensor] = {}
        """Recorded values of the part of the pass that is run now, by stage."""
        self._rows: tuple[int, int] | None = None
        """The positions that are run now, where it is not all of them."""
        self._offered: set[str] = set()
        self._holes: dict[str, str] = {}
        """Why a stage was not recorded."""
        self._unusable: dict[str, str] = {}
        """Why a recorded stage cannot be handed on."""
        self._cells: dict[tuple[str, str], _Cell] = {}
        """By stage and claim; the claim of the operation is empty."""

    def run(self) -> None:
        """Go through the pass once, part by part."""
        ids = torch.tensor([[token.id for token in self._trace.run.tokens]])
        x = self._model.embed(ids, self)  # (1, T, C)
        for block in self._model.h:
            self._here = {}
            x = block(x, self)
            # x is what was recorded: the last thing a block does is to offer its output.
        n_positions = ids.shape[1]
        for first in range(0, n_positions, ROWS_TOGETHER):
            self._rows = company(first, n_positions)
            rows = x[:, slice(*self._rows)]
            self._here = {self._last: rows[0]}
            self._model.unembed(rows, self)
            needed = (self._last, *self._stages["logits"].reads, "logits")
            if not any(self._lacks(source) for source in needed):
                self._check_lens(rows[0])

    def __call__(self, name: ActivationName, layer: int | None, x: Tensor) -> Tensor:
        """Compare what was computed with what was recorded, and hand on the latter."""
        self._go_on()
        stage = self._stages[stage_id(name, layer)]
        self._offered.add(stage.id)
        recorded = self._recorded(stage)
        if recorded is None:
            self._here[stage.id] = x[0]  # something to go on with; what reads it is not checked
            return x
        self._check(stage, x[0], recorded)
        if name == "tokens" and not 0 <= recorded.min() <= recorded.max() < self._config.vocab_size:
            self._unusable[stage.id] = "tokens holds an id that the model does not have"
            return x
        self._here[stage.id] = recorded
        return recorded[None]

    def results(self) -> Iterator[Identity]:
        """Put what was found into stage order."""
        for stage in self._trace.run.stages:
            yield self._result(stage, "")
            if stage.name == "attn_scores":
                yield self._result(stage, _MASKED)
            if stage.name in _SUMS_TO_1:
                yield self._result(stage, _SUMS_TO_1[stage.name])
            if stage.name == "pattern":
                yield self._result(stage, _NO_FUTURE)
            if stage.name == "logits":
                yield self._result(stage, _LENS)

    def _recorded(self, stage: Stage) -> Tensor | None:
        """Read a stage, or the rows of it that are run now; a hole keeps its reason."""
        rows = self._rows if stage.name in ("logits", "probs") else None
        try:
            values = self._trace.tensor(stage.id, rows).values
        except MissingStage as hole:
            self._holes[stage.id] = str(hole)
            return None
        if self._rows is not None and rows is None:
            values = values[slice(*self._rows)]
        # Strides are kept, since kernels sum in another order where they differ.
        return torch.from_numpy(values if values.flags.writeable else values.copy(order="K"))

    def _check(self, stage: Stage, computed: Tensor, recorded: Tensor) -> None:
        """Compare a stage with its operation, and see to what it must be by itself."""
        future = None
        if stage.name in ("attn_scores", "pattern"):
            future = torch.from_numpy(unseen(stage))  # (Tq, Tk)
        if not any(self._lacks(source) for source in stage.reads):
            reads = [self._here[source] for source in stage.reads if source in self._here]
            masked = future if stage.name == "attn_scores" else None
            self._compare(stage, "", computed, recorded, reads, masked)
        if stage.name in _SUMS_TO_1:
            error = (recorded.sum(dim=-1, dtype=torch.float64) - 1).abs()
            allowed = torch.tensor(SUM_TOLERANCE, dtype=torch.float64)
            self._found(stage, _SUMS_TO_1[stage.name], error, allowed, _ROUNDED_SUM)
        if future is not None:
            empty = torch.zeros(()) if stage.name == "pattern" else torch.tensor(-math.inf)
            error = _distance(recorded, empty).masked_fill(~future, 0)
            claim = _NO_FUTURE if stage.name == "pattern" else _MASKED
            self._found(stage, claim, error, torch.zeros(()), _EXACT)

    def _check_lens(self, rows: Tensor) -> None:
        """Compare the lens's last row with the recorded logits of the same positions."""
        stage = self._stages["logits"]
        logits, _ = answers(self._model, rows.numpy())
        reads = [self._here[stage.reads[0]]]
        self._compare(stage, _LENS, logits, self._here[stage.id], reads)

    def _compare(
        self,
        stage: Stage,
        claim: str,
        computed: Tensor,
        recorded: Tensor,
        reads: list[Tensor],
        masked: Tensor | None = None,
    ) -> None:
        """Judge differences; what rounding may do is worked out only where there are any."""
        error, allowed, reason = torch.zeros(recorded.shape), torch.zeros(()), _SAME
        if not torch.equal(computed, recorded):
            error = _distance(computed, recorded)
            if masked is not None:
                error = error.masked_fill(masked, 0)
            allowed, reason = room(stage, computed, reads, self._weights, self._config)
        self._found(stage, claim, error, allowed, reason)

    def _found(self, stage: Stage, claim: str, error: Tensor, allowed: Tensor, reason: str) -> None:
        """Keep the cell that speaks for an identity, of this part or an earlier one."""
        cell = _speaking(error, allowed, reason)
        if self._rows is not None:
            cell = replace(cell, index=(cell.index[0] + self._rows[0], *cell.index[1:]))
        known = self._cells.get((stage.id, claim))
        if known is None or cell.rank > known.rank:
            self._cells[stage.id, claim] = cell

    def _result(self, stage: Stage, claim: str) -> Identity:
        words = claim or f"equals its operation: {stage.operation}"
        why_not = self._obstacle(stage, claim)
        if why_not:
            return Identity(stage, words, "", None, None, None, why_not)
        cell = self._cells[stage.id, claim]
        return Identity(stage, words, cell.reason, cell.error, cell.tolerance, cell.index)

    def _lacks(self, source: str) -> str:
        """Say why a stage's values are not at hand, or nothing."""
        if source in self._holes:
            return self._holes[source]
        if source not in self._offered:
            return f"{source} was not recorded: the pass did not offer it to the tap"
        return self._unusable.get(source, "")

    def _obstacle(self, stage: Stage, claim: str) -> str:
        """Say why an identity cannot be judged, or nothing."""
        if stage.id in self._holes or stage.id not in self._offered:
            return self._lacks(stage.id)
        needed = stage.reads if not claim else ()
        if claim == _LENS:
            needed = (self._last, *stage.reads)
            # The lens goes the way of these: where one is broken, it says nothing of its own.
            for part in (*stage.reads, stage.id):
                cell = self._cells.get((part, ""))
                if part != self._last and cell is not None and not cell.error <= cell.tolerance:
                    return f"{part} already differs from its operation"
        return next((reason for source in needed if (reason := self._lacks(source))), "")


def _distance(a: Tensor, b: Tensor) -> Tensor:
    """Give |a − b| by cell: 0 where both are the same infinity or both NaN, else infinite there."""
    apart = (a - b).abs().to(torch.promote_types(a.dtype, torch.float32))
    same = (a == b) | (a.isnan() & b.isnan())
    return torch.where(apart.isfinite(), apart, torch.where(same, 0.0, math.inf))


def _speaking(error: Tensor, allowed: Tensor, reason: str) -> _Cell:
    """Choose a cell: the one furthest beyond its tolerance, or that with the largest error."""
    allowed = allowed.nan_to_num(nan=0.0, posinf=0.0).expand_as(error)
    beyond = ~(error <= allowed)
    weight = error
    if beyond.any():
        weight = torch.where(beyond, error / allowed.clamp_min(_SMALLEST), 0.0)
    place = int(weight.nan_to_num(nan=math.inf).argmax())
    index = np.unravel_index(place, tuple(error.shape))
    return _Cell(
        float(error.flatten()[place]),
        float(allowed.flatten()[place]),
        tuple(int(i) for i in index),
        reason,
    )
