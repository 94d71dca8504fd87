"""Running the program for a test: inside this process, or as a process of its own."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tui_gpt.cli import run

TUI_GPT = (sys.executable, "-m", "tui_gpt")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output as strict JSON: NaN and Infinity are refused."""
        return json.loads(self.out, parse_constant=_refuse)


class _Utf8Text(io.StringIO):
    encoding = "utf-8"


def command(*arguments: str) -> Outcome:
    """Run one command line in this process, which has torch already."""
    out, err = _Utf8Text(), _Utf8Text()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(list(arguments))
    return Outcome(code, out.getvalue(), err.getvalue())


def process(*arguments: str, environ: Mapping[str, str] | None = None) -> Outcome:
    """Run one command line as a process of its own, with these variables besides ours."""
    done = subprocess.run(
        [*TUI_GPT, *arguments],
        env={**os.environ, **(environ or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=120,
        check=False,
    )
    # Byte for byte: what a terminal would get, whatever the encoding was meant to be.
    return Outcome(done.returncode, done.stdout.decode("latin-1"), done.stderr.decode("latin-1"))


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not strict JSON")
