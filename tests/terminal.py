"""A real terminal for tests: a program on a pty, its screen as pyte draws it, its bytes."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Self

import pyte

EXPLORER = (sys.executable, "-m", "tui_gpt")

UP, DOWN, RIGHT, LEFT = "\x1b[A", "\x1b[B", "\x1b[C", "\x1b[D"
HOME, END, PAGE_UP, PAGE_DOWN = "\x1b[H", "\x1b[F", "\x1b[5~", "\x1b[6~"
ENTER, TAB, BACKSPACE, CTRL_C, CTRL_G = "\r", "\t", "\x7f", "\x03", "\x07"
PASTE, PASTED = "\x1b[200~", "\x1b[201~"

# pyte takes private CSI sequences it does not know for text.
_PRIVATE = re.compile(rb"\x1b\[[<>=?][0-9;]*(?:\$p|[a-gi-km-zA-Z])")

_UNFINISHED = re.compile(rb"\x1b(?:\[[<>=?]?[0-9;]*\$?)?\Z")
"""A sequence whose end is still on its way."""

RESTORED = (b"\x1b[?1049l", b"\x1b[?25h")
"""What leaves the alternate screen and shows the cursor again."""


class Terminal:
    """One program on one pty."""

    def __init__(
        self,
        command: Sequence[str] = EXPLORER,
        *,
        size: tuple[int, int] = (80, 24),
        env: Mapping[str, str] | None = None,
    ) -> None:
        columns, lines = size
        self.screen = pyte.Screen(columns, lines)
        self._stream = pyte.ByteStream(self.screen)
        self.received = bytearray()
        self._pending = b""
        self.started = time.monotonic()
        self._code: int | None = None
        environment = {
            name: value
            for name, value in os.environ.items()
            if name not in ("NO_COLOR", "COLORTERM", "PYTEST_CURRENT_TEST", "COLUMNS", "LINES")
        }
        environment.update({"TERM": "xterm-256color", "COLORTERM": "truecolor", **(env or {})})
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            os.execvpe(command[0], list(command), environment)
        self._set_size(columns, lines)
        self.settings_before = self.settings

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._code is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self._fd)

    @property
    def text(self) -> str:
        """The screen, line by line."""
        return "\n".join(self.screen.display)

    @property
    def settings(self) -> list[object]:
        """The terminal's own settings, such as echo, signals and flow control."""
        return list(termios.tcgetattr(self._fd))

    def signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def resize(self, columns: int, lines: int) -> None:
        self.screen.resize(lines, columns)
        self._set_size(columns, lines)

    def hang_up(self) -> None:
        """Take the terminal away, as a dropped connection does."""
        os.close(self._fd)
        self._fd = os.open(os.devnull, os.O_RDWR)

    def send(self, keys: str) -> None:
        os.write(self._fd, keys.encode())

    def press(self, keys: str, *, quiet: float = 0.3) -> int:
        """Type, wait until the screen is quiet, and give the bytes that it cost."""
        before = len(self.received)
        self.send(keys)
        self.settle(quiet=quiet)
        return len(self.received) - before

    def settle(self, *, quiet: float = 0.3, most: float = 20.0) -> None:
        """Read until nothing has come for some time."""
        start = last = time.monotonic()
        while time.monotonic() - last < quiet and time.monotonic() - start < most:
            if self._read(0.02):
                last = time.monotonic()

    def wait_for(self, wanted: str | Callable[[Terminal], bool], *, most: float = 30.0) -> float:
        """Read until a text is on the screen or a condition holds; give the seconds it took."""
        start = time.monotonic()
        while not (wanted in self.text if isinstance(wanted, str) else wanted(self)):
            if time.monotonic() - start > most:
                raise AssertionError(f"waited {most} s for {wanted!r}, got:\n{self.text}")
            if self._read(0.02) is None:
                raise AssertionError(f"the program ended before {wanted!r}, got:\n{self.text}")
        return time.monotonic() - start

    def wait_for_exit(self, *, most: float = 10.0) -> int:
        """Read to the end; give the exit code, negative for a signal."""
        start = time.monotonic()
        while time.monotonic() - start < most:
            self._read(0.02)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                while self._read(0.05):
                    pass
                self._code = os.waitstatus_to_exitcode(status)
                return self._code
        raise AssertionError(f"still running after {most} s:\n{self.text}")

    def _set_size(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def _read(self, seconds: float) -> int | None:
        """Take what has come; 0 for nothing yet, None at the end."""
        ready, _, _ = select.select([self._fd], [], [], seconds)
        if not ready:
            return 0
        try:
            chunk = os.read(self._fd, 1 << 16)
        except OSError:
            return None
        if not chunk:
            return None
        self.received += chunk
        whole = self._pending + chunk
        cut = _UNFINISHED.search(whole)
        self._pending = whole[cut.start() :] if cut else b""
        self._stream.feed(_PRIVATE.sub(b"", whole[: cut.start()] if cut else whole))
        return len(chunk)
