"""Work off the event loop: one thread a lane, the newest job first, and no waiting at the end.

The threads are daemons and nothing joins them, because `import torch` cannot be interrupted
and quitting must not wait for it. A job that a newer one replaced before it started is never
run; one that is running is told to stop and its result is dropped.
"""

from __future__ import annotations

import threading
from collections.abc import Callable


class Cancelled(Exception):
    """Raised inside a job whose result nobody waits for any more."""


class Lane:
    """A thread that runs one job at a time."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._wake = threading.Condition()
        self._job: Callable[[Callable[[], None]], None] | None = None
        self._newest = 0
        self._thread: threading.Thread | None = None

    def submit(self, job: Callable[[Callable[[], None]], None]) -> None:
        """Run a job when the lane is free, in place of any that waits or runs.

        Args:
            job: Called in the lane's thread with a function that raises `Cancelled` once a
                newer job was submitted; it should call that function between its steps.
        """
        with self._wake:
            self._job = job
            self._newest += 1
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()
            self._wake.notify()

    def cancel(self) -> None:
        """Drop what waits, and tell what runs to stop."""
        with self._wake:
            self._job = None
            self._newest += 1

    def _run(self) -> None:
        while True:
            with self._wake:
                while self._job is None:
                    self._wake.wait()
                job, self._job = self._job, None
                mine = self._newest

            def check_cancelled(mine: int = mine) -> None:
                if mine != self._newest:
                    raise Cancelled

            try:
                job(check_cancelled)
            except Cancelled:
                continue
