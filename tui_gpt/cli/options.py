"""Options that several commands share, and what they mean."""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

import click

from tui_gpt.cli.environment import glyph_set, terminal_profile, threads
from tui_gpt.errors import TuiGPTError, UsageError
from tui_gpt.files import BUNDLED_MODELS, DEFAULT_PROMPT
from tui_gpt.views.profile import TerminalProfile

if TYPE_CHECKING:
    from tui_gpt.records.trace import Run
    from tui_gpt.session import Session

Command = TypeVar("Command", bound=Callable[..., Any])

_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Globals:
    """What was asked for all commands alike."""

    colour: str = "auto"
    ascii_only: bool = False
    threads: int | None = None

    @property
    def n_threads(self) -> int:
        """Threads for the computation."""
        return threads(self.threads)

    def profile(self, stream: TextIO | None = None) -> TerminalProfile:
        """What a stream can show, standard output by default."""
        return terminal_profile(
            colour=self.colour, ascii_only=self.ascii_only, stream=stream or sys.stdout
        )


@dataclass(frozen=True, slots=True)
class Prompt:
    """The text to start from, as it was asked for."""

    text: str
    ids: str | None
    """Token ids, given instead of a text."""
    crop: bool
    """Keep the last tokens of a prompt that is too long."""
    bos: bool
    """Put the tokens around a text that the tokenizer adds."""
    notices: tuple[str, ...]
    """What was changed on the way in."""

    def prepare(self, session: Session, *, slide: bool = False) -> Run:
        """Lay out the stages for a model; see `Session.prepare`.

        Args:
            session: The model.
            slide: Its window slides over a prompt that is too long.
        """
        if self.ids is not None:
            ids = session.read_ids(self.ids)
            return session.prepare_ids(ids, crop=self.crop, slide=slide)
        return session.prepare(
            self.text, crop=self.crop, slide=slide, bos=self.bos, notices=self.notices
        )


def global_options(command: Command) -> Command:
    """Add the options that every command takes; they reach it as `common`.

    They may stand before the command's name too; the later one counts.
    """

    @click.option(
        "--color",
        "colour",
        type=click.Choice(["auto", "truecolor", "256", "16", "none"]),
        help="Colours to use; auto asks NO_COLOR, COLORTERM and TERM.",
    )
    @click.option("--ascii", "ascii_only", is_flag=True, help="Only characters below 128.")
    @click.option(
        "--threads", "n_threads", type=click.IntRange(1, 1024), metavar="N", help="CPU threads."
    )
    @functools.wraps(command)
    def wrapper(
        *args: Any, colour: str | None, ascii_only: bool, n_threads: int | None, **kwargs: Any
    ) -> Any:
        context = click.get_current_context()
        outer = context.obj if isinstance(context.obj, Globals) else Globals()
        common = Globals(
            colour or outer.colour, ascii_only or outer.ascii_only, n_threads or outer.threads
        )
        return command(*args, common=common, **kwargs)

    return wrapper  # type: ignore[return-value]  # the same command, with three options fewer


def model_option(command: Command) -> Command:
    """Add -m and --seed; both reach the command as `model`, one name."""

    @click.option(
        "-m",
        "--model",
        "model",
        metavar="MODEL",
        default=BUNDLED_MODELS[0],
        show_default=True,
        help=f"{', '.join(BUNDLED_MODELS)}, the path of a model, a name in the local Hugging Face "
        "cache, or untrained:PRESET.",
    )
    @click.option(
        "--seed",
        type=click.IntRange(0, 2**63 - 1),
        metavar="N",
        help="Draw the weights of untrained:PRESET from this seed; default 123.",
    )
    @functools.wraps(command)
    def wrapper(*args: Any, model: str, seed: int | None, **kwargs: Any) -> Any:
        if seed is not None:
            if not model.startswith("untrained:"):
                raise UsageError(
                    f"--seed {seed} draws the weights of untrained:PRESET, and {model} has its own"
                )
            if " seed " in model:
                raise UsageError(f"give one seed: {model!r} has one, and --seed says {seed}")
            model = f"{model} seed {seed}"
        return command(*args, model=model, **kwargs)

    return wrapper  # type: ignore[return-value]  # the same command, with one option fewer


def prompt_options(command: Command) -> Command:
    """Add -p, --prompt-file, --ids, --crop and --no-bos; they reach the command as `prompt`."""

    @click.option("-p", "--prompt", "text", metavar="TEXT", help=f"Default: {DEFAULT_PROMPT!r}.")
    @click.option("--prompt-file", metavar="FILE", help="Read the prompt as UTF-8; - is stdin.")
    @click.option("--ids", metavar="I,J,...", help="Token ids instead of a text.")
    @click.option("--crop", is_flag=True, help="Keep the end of a prompt that is too long.")
    @click.option("--no-bos", is_flag=True, help="Leave out the tokens that the tokenizer adds.")
    @functools.wraps(command)
    def wrapper(
        *args: Any,
        text: str | None,
        prompt_file: str | None,
        ids: str | None,
        crop: bool,
        no_bos: bool,
        **kwargs: Any,
    ) -> Any:
        given = [option for option in (text, prompt_file, ids) if option is not None]
        if len(given) > 1:
            raise UsageError("give one of -p, --prompt-file and --ids, not several")
        notices: tuple[str, ...] = ()
        if prompt_file is not None:
            text = _read_prompt(prompt_file)
        elif text is not None:
            text, replaced = _without_surrogates(text)
            if replaced:
                notices = (f"{replaced} bytes of the prompt were not UTF-8 and became U+FFFD",)
        prompt = Prompt(
            DEFAULT_PROMPT if text is None else text,
            ids,
            crop,
            not no_bos,
            notices,
        )
        return command(*args, prompt=prompt, **kwargs)

    return wrapper  # type: ignore[return-value]  # the same command, with five options fewer


def say_notices(notices: Iterable[str]) -> None:
    """Say on standard error what has no place in the output."""
    from tui_gpt.views.text import sanitize, transliterate

    for notice in notices:
        words = transliterate(sanitize(notice), glyph_set(sys.stderr.encoding))
        click.echo(f"tui-gpt: notice: {words}", err=True)


def _read_prompt(name: str) -> str:
    """Read a prompt file as it is, line ends included."""
    try:
        raw = sys.stdin.buffer.read() if name == "-" else Path(name).expanduser().read_bytes()
    except OSError as error:
        raise TuiGPTError(f"cannot read the prompt file {name}: {error.strerror}") from error
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise TuiGPTError(
            f"the prompt file {name} is not UTF-8: byte {raw[error.start]:#04x} at offset "
            f"{error.start}; convert it first"
        ) from error


def _without_surrogates(text: str) -> tuple[str, int]:
    """Replace what the command line could not decode, and count it."""
    return _SURROGATE.subn("\ufffd", text)
