"""The command group: which commands there are, and what `tui-gpt` alone means."""

from __future__ import annotations

import importlib

import click

from tui_gpt import __version__
from tui_gpt.cli.options import Globals

_COMMANDS = {
    "explore": "Watch a prompt pass through a model, stage by stage (the default).",
    "trace": "Print the stages of a forward pass, or the values of one.",
    "budget": "Count a model's parameters and bytes, and compare shapes.",
    "generate": "Let a model write on, one token at a time, with what decided each.",
    "models": "List the models that can be opened.",
    "download": "Fetch a model into the local Hugging Face cache: the one use of the network.",
    "train": "Train a character model on a text file.",
}
"""Each is a module of this package with a click command of the same name."""

_DEFAULT = "explore"

ARGUMENTS = "tui_gpt.arguments"
"""Where the context keeps the whole command line, for a card that says how it was made."""

_GROUP_OPTIONS = {"--color": True, "--threads": True, "--ascii": False}
"""What may stand before a command's name, and whether a value follows."""


class _Commands(click.Group):
    """Imports a command when it is asked for, and takes none as `explore`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module = importlib.import_module(f"tui_gpt.cli.commands.{cmd_name}")
        command = getattr(module, cmd_name)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        # From the table above, so that --help imports no command.
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[ARGUMENTS] = tuple(args)
        first = _first_argument(args)
        if first is None or (args[first] not in _COMMANDS and not _asks_the_group(args[first])):
            position = len(args) if first is None else first
            args = [*args[:position], _DEFAULT, *args[position:]]
        return super().parse_args(ctx, args)


def _first_argument(args: list[str]) -> int | None:
    """Find the first argument that is no group option."""
    i = 0
    while i < len(args):
        name, equals, _ = args[i].partition("=")
        if name not in _GROUP_OPTIONS:
            return i
        i += 2 if _GROUP_OPTIONS[name] and not equals else 1
    return None


def _asks_the_group(argument: str) -> bool:
    return argument in ("--help", "--version")


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["--help"], "max_content_width": 100},
    help="Watch one prompt become the next token inside a small GPT, in the terminal. "
    "Without a command, `tui-gpt` opens the explorer.",
    epilog="`tui-gpt COMMAND --help` lists the options of a command.",
)
@click.option(
    "--color",
    "colour",
    type=click.Choice(["auto", "truecolor", "256", "16", "none"]),
    default="auto",
    show_default=True,
    help="Colours to use; auto asks NO_COLOR, COLORTERM and TERM.",
)
@click.option("--ascii", "ascii_only", is_flag=True, help="Only characters below 128.")
@click.option(
    "--threads", "n_threads", type=click.IntRange(1, 1024), metavar="N", help="CPU threads."
)
@click.version_option(__version__, prog_name="tui-gpt", message="%(prog)s %(version)s")
@click.pass_context
def tui_gpt(ctx: click.Context, colour: str, ascii_only: bool, n_threads: int | None) -> None:
    """Keep the options that stand before the command."""
    ctx.obj = Globals(colour, ascii_only, n_threads)
