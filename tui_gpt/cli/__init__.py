"""The command line: arguments in, exit code out. Each command's work is imported when it runs.

Exit codes: 0 done; 1 refused or failed, one message on stderr; 2 usage; 130 interrupted;
129 and 143 on SIGHUP and SIGTERM.
"""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType
from typing import NoReturn

import click

from tui_gpt.cli.group import tui_gpt
from tui_gpt.errors import TuiGPTError

INTERRUPTED = 130


def main() -> NoReturn:
    """Run the command line of this process and leave with its exit code."""
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        # A program started with nohup goes on when its terminal is lost.
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _leave_on_signal)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run one command line.

    Args:
        arguments: Without the program's name.

    Returns:
        The exit code.
    """
    output = sys.stdout
    try:
        code = tui_gpt.main(arguments, prog_name="tui-gpt", standalone_mode=False)
        if sys.stdout is not None:  # None: closed before we started
            sys.stdout.flush()
    except click.ClickException as error:
        _complain(_usage(error))
        return error.exit_code
    except click.exceptions.Exit as leaving:
        return leaving.exit_code
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except TuiGPTError as error:
        _complain(str(error))
        return error.exit_code
    except BrokenPipeError:
        _drop_output()
        return 0
    except SystemExit:
        # Click turns a broken pipe into exit code 1; that it wrapped the stream is the only sign.
        if sys.stdout is output:
            raise
        _drop_output()
        return 0
    except OSError as error:
        # What is left are the standard streams: files of ours raise TuiGPTError.
        _complain(f"cannot write the output: {error.strerror or error}")
        _drop_output()
        return 1
    return code if isinstance(code, int) else 0


def _drop_output() -> None:
    """Forget what is still buffered, so that it does not fail once more at exit."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _usage(error: click.ClickException) -> str:
    """Say in one line what was wrong with the arguments, and where the right ones are listed."""
    message = " ".join(error.format_message().split())
    context = error.ctx if isinstance(error, click.UsageError) else None
    command = "tui-gpt" if context is None else context.command_path
    return f"{message.rstrip('.')}; `{command} --help` lists what can be given"


def _complain(message: str) -> None:
    """Say on standard error, in one line, why nothing was done."""
    if sys.stderr is None:
        return
    from tui_gpt.cli.environment import glyph_set
    from tui_gpt.views.text import sanitize, transliterate

    click.echo(
        f"tui-gpt: {transliterate(sanitize(message), glyph_set(sys.stderr.encoding))}", err=True
    )


def _leave_on_signal(number: int, frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)
