"""`tui-gpt train`: learn a text, or check what was learnt against one."""

from __future__ import annotations

import math
import shlex
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from tui_gpt.cli.group import ARGUMENTS
from tui_gpt.cli.options import Globals, global_options
from tui_gpt.config import GPTConfig
from tui_gpt.errors import CannotWrite, Interrupted, TuiGPTError, UnknownCharacters, UsageError
from tui_gpt.views.profile import Colour, TerminalProfile
from tui_gpt.views.text import sanitize

if TYPE_CHECKING:
    from tui_gpt.model.train import Progress


def _finite(context: click.Context, parameter: click.Parameter, value: float) -> float:
    """Refuse inf and nan, which lie in no range and outside none."""
    if not math.isfinite(value):
        raise click.BadParameter(f"{value} is no number to compute with")
    return value


@click.command(
    help="Train a character model on TEXT_FILE and write it to FOLDER; or, with --check, "
    "recompute the held-out loss of the model in FOLDER on TEXT_FILE. Ctrl-C keeps the best "
    "weights so far.",
)
@click.argument("text_file", type=click.Path(path_type=Path))
@click.argument("folder", type=click.Path(path_type=Path), required=False)
@click.option("-o", "output", type=click.Path(path_type=Path), help="The folder to write.")
@click.option("--check", is_flag=True, help="Measure FOLDER instead of training.")
@click.option("--resume", is_flag=True, help="Go on with an unfinished run.")
@click.option("--steps", type=click.IntRange(1), default=6000, show_default=True)
@click.option("--seed", type=click.IntRange(0, 2**63 - 2), default=123, show_default=True)
@click.option("--n-layer", type=click.IntRange(1), default=2, show_default=True)
@click.option("--n-head", type=click.IntRange(1), default=4, show_default=True)
@click.option("--n-embd", type=click.IntRange(1), default=64, show_default=True)
@click.option("--n-inner", type=click.IntRange(1), help="Default: 4 times --n-embd.")
@click.option("--block-size", type=click.IntRange(1), default=64, show_default=True)
@click.option("--norm", type=click.Choice(["pre", "post"]), default="pre", show_default=True)
@click.option(
    "--positions",
    type=click.Choice(["learned", "sinusoidal"]),
    default="learned",
    show_default=True,
)
@click.option(
    "--activation",
    type=click.Choice(["gelu", "gelu_tanh", "relu"]),
    default="gelu_tanh",
    show_default=True,
)
@click.option("--tied/--untied", default=False, show_default=True)
@click.option("--bias/--no-bias", default=True, show_default=True)
@click.option("--qkv-bias/--no-qkv-bias", default=True, show_default=True)
@click.option("--batch-size", type=click.IntRange(1), default=64, show_default=True)
@click.option(
    "--learning-rate",
    type=click.FloatRange(0, min_open=True),
    callback=_finite,
    default=3e-3,
    show_default=True,
    help="The highest rate, after the warm-up.",
)
@click.option("--warmup", type=click.IntRange(1), default=200, show_default=True, help="Steps.")
@click.option(
    "--weight-decay",
    type=click.FloatRange(0),
    callback=_finite,
    default=0.1,
    show_default=True,
)
@click.option(
    "--evaluate-every",
    type=click.IntRange(1),
    default=500,
    show_default=True,
    help="Steps between two measurements of the held-out tenth.",
)
@click.option("--preparation", help="For the card: how the text was made.")
@click.option(
    "--probe",
    type=click.Path(path_type=Path),
    help="A short text to keep on the card with the model's loss on it.",
)
@global_options
def train(
    *,
    text_file: Path,
    folder: Path | None,
    output: Path | None,
    check: bool,
    common: Globals,
    **options: object,
) -> None:
    """Check the request, then hand it on."""
    if check:
        if folder is None or output is not None:
            raise UsageError("give --check TEXT_FILE FOLDER, without -o")
        _check(text_file, folder, common)
        return
    if output is None or folder is not None:
        raise UsageError("give TEXT_FILE -o FOLDER")
    _train(text_file, output, options, common)


def _train(text_file: Path, folder: Path, options: dict[str, object], common: Globals) -> None:
    resume = bool(options.pop("resume"))
    _check_folder(folder, resume)
    preparation = options.pop("preparation") or "used as it is"
    probe_file = options.pop("probe")
    shape = _shape(options)
    probe = _read_probe(probe_file) if isinstance(probe_file, Path) else None

    import torch

    from tui_gpt.checkpoints.training_folder import train as train_into
    from tui_gpt.cli.commands.train_text import read_text
    from tui_gpt.model.train import Schedule

    torch.set_num_threads(common.n_threads)
    schedule = Schedule(
        **{  # type: ignore[arg-type]  # click has checked each of them
            name: options[name]
            for name in (
                "steps",
                "seed",
                "batch_size",
                "learning_rate",
                "warmup",
                "weight_decay",
                "evaluate_every",
            )
        }
    )
    GPTConfig.from_dict({**shape, "vocab_size": 1})  # an impossible shape need not read the text
    text = read_text(text_file, int(str(options["block_size"])))
    config = GPTConfig.from_dict({**shape, "vocab_size": text.tokenizer.vocab_size})
    facts: dict[str, object] = {
        "command": shlex.join(["tui-gpt", *click.get_current_context().meta[ARGUMENTS]]),
        "preparation": preparation,
        **({"probe": probe} if probe is not None else {}),
    }
    if probe is not None:
        _check_probe(probe, text.tokenizer.encode)
    with _ProgressBar(schedule.steps, common.profile(sys.stderr)) as bar:
        try:
            train_into(text, config, schedule, folder, facts=facts, report=bar.show)
        except KeyboardInterrupt:
            raise Interrupted(_what_is_kept(folder)) from None
    _report(folder, common)


def _check_folder(folder: Path, resume: bool) -> None:
    if resume:
        if not (folder / "resume.pt").exists():
            raise UsageError(f"nothing to resume in {folder}: there is no resume.pt")
        return
    if folder.exists() or folder.is_symlink():
        raise CannotWrite(folder, "it exists; give a new folder, or --resume an unfinished run")
    if not folder.parent.is_dir():
        raise CannotWrite(folder, f"there is no folder {folder.parent}")


def _what_is_kept(folder: Path) -> str:
    if (folder / "resume.pt").exists():
        return f"stopped; {folder} holds the best weights so far, --resume goes on"
    return "stopped before the first measurement; nothing is kept"


def _shape(options: dict[str, object]) -> dict[str, object]:
    return {
        name: options[name]
        for name in (
            "n_layer",
            "n_head",
            "n_embd",
            "n_inner",
            "block_size",
            "norm",
            "positions",
            "activation",
            "tied",
            "bias",
            "qkv_bias",
        )
    }


def _read_probe(path: Path) -> str:
    try:
        probe = path.read_bytes().decode("utf-8")  # line ends stay as they are
    except OSError as error:
        raise TuiGPTError(f"cannot read the probe {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise TuiGPTError(
            f"the probe {path} is not UTF-8: offset {error.start}; convert it first"
        ) from error
    if len(probe) < 2:
        raise TuiGPTError(f"the probe {path} has {len(probe)} characters; give at least 2")
    return probe


def _check_probe(probe: str, encode: Callable[[str], list[int]]) -> None:
    try:
        encode(probe)
    except UnknownCharacters as error:
        raise TuiGPTError(f"the probe does not fit the text: {error}") from error


def _report(folder: Path, common: Globals) -> None:
    from tui_gpt.checkpoints.find import find_model
    from tui_gpt.checkpoints.weights import read_card

    # By its whole path: a folder may bear the name of a bundled model.
    losses = read_card(find_model(str(folder.absolute())))["losses"]
    name = sanitize(str(folder), common.profile().glyphs)
    click.echo(f"{name}: held-out loss {losses['held_out']:.4f} nats a character")


def _check(text_file: Path, folder: Path, common: Globals) -> None:
    from tui_gpt.checkpoints.find import find_model

    # A folder comes before a bundled model of the same name.
    source = find_model(str(folder.absolute() if folder.exists() else folder))
    if source.recipe is not None:
        raise UsageError(f"{source.name} learnt nothing that could be checked")

    from tui_gpt.tokenization.characters import CharacterTokenizer
    from tui_gpt.tokenization.open import open_tokenizer

    tokenizer, _ = open_tokenizer(source.vocabulary, source.config.vocab_size)
    if not isinstance(tokenizer, CharacterTokenizer):
        raise UsageError(f"{folder} reads no single characters; --check is for character models")

    import torch

    from tui_gpt.checkpoints.training_folder import check
    from tui_gpt.checkpoints.weights import load_weights
    from tui_gpt.cli.commands.train_text import read_text

    torch.set_num_threads(common.n_threads)
    text = read_text(text_file, source.config.block_size, tokenizer)
    measured, recorded = check(source, load_weights(source), text)
    card = "not on its card" if recorded is None else f"{recorded:.4f} on its card"
    glyphs = common.profile().glyphs
    click.echo(
        f"{sanitize(str(folder), glyphs)}: held-out loss {measured:.4f} nats a character "
        f"over the last {len(text.held_out):,} of {sanitize(str(text_file), glyphs)} ({card})"
    )


_RICH_COLOURS: Mapping[Colour, Literal["truecolor", "256", "standard"] | None] = {
    "truecolor": "truecolor",
    "256": "256",
    "16": "standard",
    "none": None,
}
"""The rungs of our ladder in Rich's words."""


class _ProgressBar:
    """Step, losses, rate and time left on one line of stderr; nothing where it is no terminal."""

    def __init__(self, steps: int, profile: TerminalProfile) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TaskProgressColumn,
            TextColumn,
            TimeRemainingColumn,
        )

        self._bar = Progress(
            MofNCompleteColumn(),
            TaskProgressColumn() if profile.ascii else BarColumn(bar_width=None),
            TextColumn("loss {task.fields[loss]}"),
            TextColumn("held out {task.fields[held_out]}"),
            TextColumn("rate {task.fields[rate]}"),
            TimeRemainingColumn(),
            console=Console(
                stderr=True,
                color_system=_RICH_COLOURS[profile.colour],
                no_color=profile.colour == "none",
            ),
            refresh_per_second=4,
            disable=not sys.stderr.isatty(),
        )
        self._task = self._bar.add_task("steps", total=steps, loss="", held_out="", rate="")

    def __enter__(self) -> _ProgressBar:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._bar.stop()

    def show(self, progress: Progress) -> None:
        held_out = "" if progress.held_out_loss is None else f"{progress.held_out_loss:.4f}"
        self._bar.update(
            self._task,
            completed=progress.step,
            loss=f"{progress.loss:.3f}",
            held_out=held_out,
            rate=f"{progress.rate:.1e}",
        )
