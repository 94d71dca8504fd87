"""Reading a text that grows by one token: only what is new goes through the blocks.

While the text fits into the context, keys and values of earlier positions are kept and a new
token costs one position. Once it does not, the window slides: every token moves to another
position, nothing kept is true any more, and each answer is a fresh pass over the last T
tokens. The forward pass is the one of `gpt.py` either way.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tui_gpt.model.gpt import GPT, KeysValues
from tui_gpt.records.stages import ActivationName


@dataclass(frozen=True, slots=True)
class Reading:
    """What the model answers after a text, and what that took."""

    logits: NDArray[np.float32]
    """(V,) after the last token."""
    probs: NDArray[np.float32]
    """(V,) their softmax, as the model computes it."""
    kept: int
    """Positions whose keys and values were at hand."""
    computed: int
    """Positions that went through the blocks."""
    seconds: float


class Reader:
    """One model that reads texts, and keeps keys and values of the last one that fitted."""

    def __init__(self, model: GPT) -> None:
        self._model = model
        self._ids: list[int] = []
        self._past: list[KeysValues] = []

    @torch.no_grad()
    def read(
        self, ids: Sequence[int], *, cache: bool, check_cancelled: Callable[[], None] = lambda: None
    ) -> Reading:
        """Answer after a text, from its last T tokens.

        Args:
            ids: The whole text, one token or more.
            cache: Use keys and values of a text read before, as far as both begin alike.
            check_cancelled: Called at each activation; what it raises ends the pass.
        """
        size = self._model.config.block_size
        started = time.perf_counter()
        kept = self._begin_alike(ids) if cache and len(ids) <= size else 0
        past = [(k[:, :, :kept], v[:, :, :kept]) for k, v in self._past] if kept else []
        last = _Last(check_cancelled)
        stream = self._model.stream(torch.tensor([ids[-size:][kept:]]), last, past)  # (1, T, C)
        self._model.unembed(stream[:, -1:], last)
        seconds = time.perf_counter() - started
        if cache and len(ids) <= size:  # only now: a pass that was ended leaves nothing behind
            self._ids, self._past = list(ids), past
        computed = min(len(ids), size) - kept
        return Reading(last.seen["logits"], last.seen["probs"], kept, computed, seconds)

    def _begin_alike(self, ids: Sequence[int]) -> int:
        """Count the first tokens that are those of the kept text; the last is always read."""
        most = min(len(ids) - 1, len(self._ids))
        return next((i for i in range(most) if ids[i] != self._ids[i]), most)


class _Last:
    """A tap that keeps the last row of logits and probabilities."""

    def __init__(self, check_cancelled: Callable[[], None]) -> None:
        self._go_on = check_cancelled
        self.seen: dict[str, NDArray[np.float32]] = {}

    def __call__(self, name: ActivationName, layer: int | None, x: Tensor) -> Tensor:
        self._go_on()
        if name in ("logits", "probs"):
            self.seen[name] = x[0, -1].numpy()  # (V,)
        return x
