"""Training a character model on a text file, so that a held-out tenth is predicted well.

AdamW (arXiv:1711.05101) with a linear warm-up and a cosine decay. The first nine tenths of
the text are trained on, the last tenth only measured. What is kept is the state with the
lowest held-out loss so far, so stopping early loses nothing. The same seed, text and options
give the same weights on the same machine, in one run or resumed.
"""

from __future__ import annotations

import hashlib
import io
import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from tui_gpt import __version__
from tui_gpt.checkpoints.weights import CARD, ModelSource, discard_model, read_card, save_model
from tui_gpt.config import GPTConfig
from tui_gpt.errors import (
    CannotWrite,
    DamagedModel,
    TrainingDiverged,
    UnknownCharacters,
    UnusableText,
)
from tui_gpt.files import write_whole
from tui_gpt.model.gpt import GPT
from tui_gpt.tokenization.tokenizer import CharacterTokenizer

RESUME = "resume.pt"

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


@dataclass(frozen=True, slots=True)
class TrainingText:
    """A text as ids, cut into what is trained on and what is held out."""

    tokenizer: CharacterTokenizer
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
class _State:
    """All that a run needs to go on."""

    model: GPT
    optimiser: torch.optim.AdamW
    draw: torch.Generator
    step: int = 0
    best_loss: float = math.inf
    best_step: int = 0
    history: list[dict[str, float]] = field(default_factory=list)


def read_text(
    path: Path, block_size: int, tokenizer: CharacterTokenizer | None = None
) -> TrainingText:
    """Read a UTF-8 text and cut it into ids.

    Args:
        path: The text, used as it is.
        block_size: Context length; each part must hold more than one window.
        tokenizer: The vocabulary to use; by default the text's own characters, sorted.

    Raises:
        UnusableText: The file is missing, empty, not UTF-8 or too short, or the given
            vocabulary lacks characters of it.
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise UnusableText(f"cannot read {path}: {error.strerror}") from error
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UnusableText(
            f"{path} is not UTF-8: byte {raw[error.start]:#04x} at offset {error.start}; "
            "convert it first"
        ) from error
    if not text:
        raise UnusableText(f"{path} is empty; give a text to learn from")
    cut = len(text) * 9 // 10
    shortest = min(cut, len(text) - cut)
    if shortest <= block_size:
        raise UnusableText(
            f"{path} has {len(text)} characters, {shortest} of them in its smaller part; "
            f"a context of {block_size} needs more than {block_size} there, "
            f"so at least {10 * block_size + 1} in all"
        )
    tokenizer = tokenizer or CharacterTokenizer(sorted(set(text)))
    try:
        ids = torch.tensor(tokenizer.encode(text), dtype=torch.long)
    except UnknownCharacters as error:
        position, character = error.found[0]
        raise UnusableText(
            f"{path} has {len(error.found)} characters that are none of the model's "
            f"{tokenizer.vocab_size}, the first {character!r} at {position}; give a text prepared "
            "like the one the model learnt"
        ) from error
    facts = {
        "sha256": hashlib.sha256(raw).hexdigest(),
        "characters": len(text),
        "different_characters": len(set(text)),
        "trained_on": cut,
        "held_out": len(text) - cut,
        "unigram_entropy": unigram_entropy(text),
    }
    return TrainingText(tokenizer, ids[:cut], ids[cut:], facts)


def unigram_entropy(text: str) -> float:
    """Give the nats a character of a guesser that knows only how common each one is."""
    counts = Counter(text)
    shares = [count / len(text) for count in counts.values()]
    return -sum(share * math.log(share) for share in shares)


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


def train(
    text: TrainingText,
    config: GPTConfig,
    schedule: Schedule,
    folder: Path,
    *,
    facts: Mapping[str, object],
    report: Callable[[Progress], None],
) -> None:
    """Train, keeping the best weights so far in `folder`.

    Args:
        text: What to learn.
        config: The model's shape; its vocab_size is the text's.
        schedule: How long and how fast.
        folder: New, or one that an earlier run with the same options left unfinished.
        facts: What else the card records: command, preparation.
        report: Called after each step.

    Raises:
        CannotWrite: The disk is full or the folder read-only; earlier saves stay whole.
        TrainingDiverged: The loss is not finite; the folder keeps the best weights so far.
        DamagedModel: The unfinished run in `folder` had other options.
    """
    state = _begin(config, schedule)
    resume = folder / RESUME
    if resume.exists():
        _go_on(state, resume, config, schedule, text)
    else:
        try:
            folder.mkdir()
        except OSError as error:
            raise CannotWrite(folder, error.strerror or str(error)) from error
    try:
        _learn(state, text, config, schedule, folder, facts=facts, report=report)
    except BaseException:
        # Stopped before the first save was whole: a part of a model is no model.
        if not (folder / CARD).exists():
            discard_model(folder)
        raise
    resume.unlink(missing_ok=True)


def check(source: ModelSource, model: GPT, text: TrainingText) -> tuple[float, float | None]:
    """Recompute the held-out loss of a model.

    Returns:
        The loss on the text's last tenth, and the one on the model's card, if it has one.
    """
    losses = read_card(source).get("losses")
    recorded = losses.get("held_out") if isinstance(losses, dict) else None
    return mean_loss(model, text.held_out), recorded if isinstance(recorded, float) else None


def _learn(
    state: _State,
    text: TrainingText,
    config: GPTConfig,
    schedule: Schedule,
    folder: Path,
    *,
    facts: Mapping[str, object],
    report: Callable[[Progress], None],
) -> None:
    """Take the steps that are left, measuring and saving on the way; see `train`."""
    held_out: float | None = state.history[-1]["held_out_loss"] if state.history else None
    loss = math.nan
    while True:
        done = state.step >= schedule.steps
        if done or state.step % schedule.evaluate_every == 0:
            measured = not state.history or state.history[-1]["step"] != state.step
            if measured:
                held_out = mean_loss(state.model, text.held_out)
                _keep(state, held_out, loss, text, schedule, folder, facts)
            if done:
                break
            _save_resume(state, folder / RESUME, config, schedule, text)
        loss = _step(state, text.trained, schedule)
        if not math.isfinite(loss):
            raise TrainingDiverged(
                f"the loss is {loss} at step {state.step} of {schedule.steps}: the weights ran "
                f"away; take a lower --learning-rate than {schedule.learning_rate:g} "
                f"({folder} keeps the best weights so far)"
            )
        report(Progress(state.step, schedule.steps, loss, held_out, schedule.rate(state.step - 1)))
    report(Progress(state.step, schedule.steps, loss, held_out, 0.0))


def _begin(config: GPTConfig, schedule: Schedule) -> _State:
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
    return _State(model, optimiser, torch.Generator().manual_seed(schedule.seed + 1))


def _step(state: _State, ids: Tensor, schedule: Schedule) -> float:
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


def _keep(
    state: _State,
    held_out: float,
    loss: float,
    text: TrainingText,
    schedule: Schedule,
    folder: Path,
    facts: Mapping[str, object],
) -> None:
    """Note a measurement, and save the model where it is the best so far.

    Raises:
        TrainingDiverged: The measurement is not finite.
    """
    if not math.isfinite(held_out):
        raise TrainingDiverged(
            f"the held-out loss is {held_out} after step {state.step}: the weights ran away; take "
            f"a lower --learning-rate than {schedule.learning_rate:g}"
        )
    measured = {"step": state.step, "held_out_loss": held_out}
    if not math.isnan(loss):
        measured["batch_loss"] = loss
    state.history.append(measured)
    if held_out >= state.best_loss:
        return
    state.best_loss, state.best_step = held_out, state.step
    save_model(folder, state.model, text.tokenizer, _card(state, text, schedule, facts))


def _card(
    state: _State, text: TrainingText, schedule: Schedule, facts: Mapping[str, object]
) -> dict[str, object]:
    card: dict[str, object] = {
        **facts,
        "program": f"tui-gpt {__version__}",
        "torch": torch.__version__,
        "seed": schedule.seed,
        "steps": state.best_step,
        "schedule": asdict(schedule),
        "text": {**text.facts, "preparation": facts.get("preparation", "used as it is")},
        "losses": {
            "unit": "nats a character",
            "held_out": state.best_loss,
            "history": list(state.history),
        },
    }
    card.pop("preparation", None)
    probe = card.get("probe")
    if isinstance(probe, str):
        ids = torch.tensor(text.tokenizer.encode(probe))
        card["probe"] = {"text": probe, "loss": mean_loss(state.model, ids)}
    return card


def _save_resume(
    state: _State, path: Path, config: GPTConfig, schedule: Schedule, text: TrainingText
) -> None:
    buffer = io.BytesIO()
    torch.save(
        {
            "run": _identity(config, schedule, text),
            "model": state.model.state_dict(),
            "optimiser": state.optimiser.state_dict(),
            "draw": state.draw.get_state(),
            "step": state.step,
            "best": (state.best_loss, state.best_step),
            "history": state.history,
        },
        buffer,
    )
    write_whole(path, buffer.getvalue())


def _go_on(
    state: _State, path: Path, config: GPTConfig, schedule: Schedule, text: TrainingText
) -> None:
    """Put an unfinished run back as it was."""
    try:
        saved: dict[str, Any] = torch.load(path, weights_only=True)
        run = saved["run"]
    except Exception as error:  # torch raises many kinds for a damaged file
        raise DamagedModel(f"{path} is damaged; train into a new folder") from error
    for name, value in _identity(config, schedule, text).items():
        if run.get(name) != value:
            raise DamagedModel(
                f"the unfinished run in {path.parent} had {name} {run.get(name)} and this one has "
                f"{value}; give the same options, or train into a new folder"
            )
    state.model.load_state_dict(saved["model"])
    state.optimiser.load_state_dict(saved["optimiser"])
    state.draw.set_state(saved["draw"])
    state.step = saved["step"]
    state.best_loss, state.best_step = saved["best"]
    state.history = saved["history"]


def _identity(config: GPTConfig, schedule: Schedule, text: TrainingText) -> dict[str, object]:
    """Name what must be the same for a run to go on."""
    fixed = replace(schedule, evaluate_every=1)
    return {**config.to_dict(), **asdict(fixed), "text_sha256": text.facts["sha256"]}
