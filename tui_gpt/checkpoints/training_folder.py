"""Training into a folder: the best weights so far, a card, and what a stopped run goes on from."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from tui_gpt import __version__
from tui_gpt.checkpoints.find import ModelSource
from tui_gpt.checkpoints.names import CARD
from tui_gpt.checkpoints.weights import discard_model, read_card, save_model
from tui_gpt.config import GPTConfig
from tui_gpt.errors import CannotWrite, DamagedModel, TrainingDiverged
from tui_gpt.files import write_whole
from tui_gpt.model.gpt import GPT
from tui_gpt.model.train import (
    Progress,
    Schedule,
    Training,
    TrainingText,
    begin,
    mean_loss,
    take_step,
)

RESUME = "resume.pt"


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
    state = begin(config, schedule)
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
    state: Training,
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
        loss = take_step(state, text.trained, schedule)
        if not math.isfinite(loss):
            raise TrainingDiverged(
                f"the loss is {loss} at step {state.step} of {schedule.steps}: the weights ran "
                f"away; take a lower --learning-rate than {schedule.learning_rate:g} "
                f"({folder} keeps the best weights so far)"
            )
        report(Progress(state.step, schedule.steps, loss, held_out, schedule.rate(state.step - 1)))
    report(Progress(state.step, schedule.steps, loss, held_out, 0.0))


def _keep(
    state: Training,
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
    save_model(folder, state.model, text.tokenizer.to_json(), _card(state, text, schedule, facts))


def _card(
    state: Training, text: TrainingText, schedule: Schedule, facts: Mapping[str, object]
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
    state: Training, path: Path, config: GPTConfig, schedule: Schedule, text: TrainingText
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
    state: Training, path: Path, config: GPTConfig, schedule: Schedule, text: TrainingText
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
