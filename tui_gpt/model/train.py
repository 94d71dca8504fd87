"""Training a character model on a text file, so that a held-out tenth is predicted well.

AdamW (arXiv:1711.05101) with a linear warm-up and a cosine decay. The first nine tenths of
the text are trained on, the last tenth only measured. What is kept is the state with the
lowest held-out loss so far, so stopping early loses nothing. The same seed, text and options
give the same weights on the same machine, in one run or resumed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional

from tui_gpt.config import GPTConfig
from tui_gpt.model.gpt import GPT

_EVALUATION_BATCH = 256
"""Windows measured at a time; it bounds memory and does not change the loss."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """How long and how fast to learn."""

    steps: int = 6000
    seed: int = 123
    batch_size: int = 64
    """Windows of block_size tokens in each step."""
    learning_rate: float = 3e-3
    """The highest rate, reached after the warm-up."""
    warmup: int = 200
    """Steps over which the rate rises from 0."""
    final_rate: float = 0.01
    """The rate at the end, as a share of the highest."""
    weight_decay: float = 0.1
    """On weight matrices and tables, not on biases and norms."""
    evaluate_every: int = 500

    def rate(self, step: int) -> float:
        """Give the learning rate of a step, counted from 0."""
        if step < self.warmup:
            return self.learning_rate * (step + 1) / self.warmup
        done = (step - self.warmup) / max(1, self.steps - self.warmup)
        cosine = 0.5 * (1 + math.cos(math.pi * min(1.0, done)))
        return self.learning_rate * (self.final_rate + (1 - self.final_rate) * cosine)


class Vocabulary(Protocol):
    """What training knows of a tokenizer."""

    @property
    def vocab_size(self) -> int:
        """Ids from 0 to this, exclusive."""
        ...

    def encode(self, text: str) -> list[int]:
        """Cut a text into ids."""
        ...

    def to_json(self) -> str:
        """Write the vocabulary as a model's folder keeps it."""
        ...


@dataclass(frozen=True, slots=True)
class TrainingText:
    """A text as ids, cut into what is trained on and what is held out."""

    tokenizer: Vocabulary
    trained: Tensor
    """(N,) ids of the first nine tenths."""
    held_out: Tensor
    """(M,) ids of the last tenth."""
    facts: Mapping[str, object]
    """SHA-256, length, number of characters, unigram entropy: what a card records."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a run stands, after a step."""

    step: int
    """Steps done."""
    steps: int
    loss: float
    """Nats a character on the last batch."""
    held_out_loss: float | None
    """Nats a character, when last measured."""
    rate: float


@dataclass(slots=True)
class Training:
    """A run: all that it needs to go on."""

    model: GPT
    optimiser: torch.optim.AdamW
    draw: torch.Generator
    step: int = 0
    best_loss: float = math.inf
    best_step: int = 0
    history: list[dict[str, float]] = field(default_factory=list)


def initialise(model: GPT, seed: int) -> None:
    """Draw every matrix and table from N(0, 0.02), in module order, and clear the biases."""
    draw = torch.Generator().manual_seed(seed)
    for module in model.modules():
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, std=0.02, generator=draw)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)


@torch.no_grad()
def mean_loss(model: GPT, ids: Tensor) -> float:
    """Measure nats a token over a text, cut into windows side by side.

    Every token but the first is predicted once, from at most block_size tokens before it in
    its window. Windows start at 0, block_size, 2 · block_size, …

    Args:
        model: Any GPT.
        ids: (N,) with N > 1.
    """
    size = model.config.block_size
    n_whole = (len(ids) - 1) // size
    total = 0.0
    for first in range(0, n_whole, _EVALUATION_BATCH):
        last = min(first + _EVALUATION_BATCH, n_whole)
        windows = ids[first * size : last * size].view(-1, size)
        targets = ids[first * size + 1 : last * size + 1].view(-1, size)
        total += _cross_entropy(model(windows), targets, reduction="sum").item()
    rest = ids[n_whole * size :]
    if len(rest) > 1:
        total += _cross_entropy(model(rest[None, :-1]), rest[None, 1:], reduction="sum").item()
    return total / (len(ids) - 1)


def begin(config: GPTConfig, schedule: Schedule) -> Training:
    """Start a run: a new model, its optimiser and the order of its batches."""
    model = GPT(config)
    initialise(model, schedule.seed)
    decayed = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() <= 1]
    optimiser = torch.optim.AdamW(
        [
            {"params": decayed, "weight_decay": schedule.weight_decay},
            {"params": others, "weight_decay": 0.0},
        ],
        lr=schedule.learning_rate,
        betas=(0.9, 0.99),
    )
    # The batches are drawn apart from the weights, so two shapes can see the same ones.
    return Training(model, optimiser, torch.Generator().manual_seed(schedule.seed + 1))


def take_step(state: Training, ids: Tensor, schedule: Schedule) -> float:
    """Learn from one batch of random windows; give its loss before the step."""
    size = state.model.config.block_size
    starts = torch.randint(len(ids) - size, (schedule.batch_size, 1), generator=state.draw)
    index = starts + torch.arange(size + 1)  # (B, T + 1)
    window = ids[index]
    for group in state.optimiser.param_groups:
        group["lr"] = schedule.rate(state.step)
    state.optimiser.zero_grad(set_to_none=True)
    loss = _cross_entropy(state.model(window[:, :-1]), window[:, 1:], reduction="mean")
    loss.backward()  # type: ignore[no-untyped-call]  # torch's stub
    nn.utils.clip_grad_norm_(state.model.parameters(), 1.0)
    state.optimiser.step()
    state.step += 1
    return loss.item()


def _cross_entropy(logits: Tensor, targets: Tensor, *, reduction: str) -> Tensor:
    return functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction=reduction)
