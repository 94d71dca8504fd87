"""The jobs of the background threads: what is computed, and which message tells of it.

Four lanes, so that no kind of work waits for another: prompts (cutting text into tokens,
finding models), runs (importing torch, loading weights, forward passes), answers (what the panes
ask about a run) and reports (how a model's files were read). The modules that need numpy or torch
are imported inside the jobs.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from textual.message import Message

from tui_gpt.app.work.lanes import Lane
from tui_gpt.app.work.messages import (
    Answered,
    Checking,
    Inspected,
    ModelLoaded,
    Refused,
    RunPrepared,
    TraceFailed,
    TraceReady,
)
from tui_gpt.app.work.questions import Question
from tui_gpt.errors import TuiGPTError
from tui_gpt.records.trace import Run, Trace

if TYPE_CHECKING:
    from tui_gpt.records.loader_report import LoaderReport
    from tui_gpt.session import Session

_PAUSE = 0.1
"""Seconds between two words about the reading of weights."""


class Work:
    """Starts jobs; each ends in one message, unless a newer job of its lane replaced it."""

    def __init__(self, post: Callable[[Message], object], n_threads: int) -> None:
        """Remember where results go.

        Args:
            post: Takes a message from any thread.
            n_threads: CPU threads of the computation.
        """
        self._post = post
        self._n_threads = n_threads
        self._prompts = Lane("prompts")
        self._runs = Lane("runs")
        self._answers = Lane("answers")
        self._reports = Lane("reports")

    def prepare(self, session: Session, typed: str, *, crop: bool, bos: bool) -> None:
        """Cut a prompt into tokens: RunPrepared or Refused."""
        self._prepare(lambda: (session, session.prepare_typed(typed, crop=crop, bos=bos)))

    def open_model(self, name: str, run: Run, *, crop: bool, bos: bool) -> None:
        """Find a model and cut the prompt of a run for it: RunPrepared or Refused."""

        def find() -> tuple[Session, Run]:
            from tui_gpt.session import Session

            session = Session.open(name)
            return session, session.adapt_run(run, crop=crop, bos=bos)

        self._prepare(find)

    def _prepare(self, find: Callable[[], tuple[Session, Run]]) -> None:
        def job(check_cancelled: Callable[[], None]) -> None:
            answer: Message
            try:
                answer = RunPrepared(*find())
            except TuiGPTError as error:
                answer = Refused(error)
            check_cancelled()
            self._post(answer)

        self._prompts.submit(job)

    def start(self, session: Session, run: Run) -> None:
        """Get the numbers of a run: TraceReady or TraceFailed.

        The recording that ships for a bundled model's default prompt is opened where there
        is one, without torch; every other prompt is computed.
        """

        def job(check_cancelled: Callable[[], None]) -> None:
            from tui_gpt.session import bundled_recording, use_threads

            try:
                path = bundled_recording(run.model.name, run.prompt)
                if path is not None:
                    trace = _open(path)
                    check_cancelled()
                    self._post(TraceReady(session, trace, recorded=True))
                    return
                use_threads(self._n_threads)
                check_cancelled()
                session.load(_checking(check_cancelled, self._post))
                trace = session.trace(run, check_cancelled=check_cancelled)
            except TuiGPTError as error:
                check_cancelled()
                self._post(TraceFailed(run, error))
                return
            check_cancelled()
            self._post(TraceReady(session, trace, recorded=False))

        self._runs.submit(job)

    def open_recording(self, session: Session | None, path: Path, run: Run) -> None:
        """Read a recording of a run: TraceReady or TraceFailed."""

        def job(check_cancelled: Callable[[], None]) -> None:
            try:
                trace = _open(path)
            except TuiGPTError as error:
                self._post(TraceFailed(run, error))
                return
            check_cancelled()
            self._post(TraceReady(session, trace, recorded=True))

        self._runs.submit(job)

    def load(self, session: Session) -> None:
        """Import torch and read the weights ahead of the first prompt: ModelLoaded."""

        def job(check_cancelled: Callable[[], None]) -> None:
            # What the keys p, m and ? open comes first: it is small, and it is asked for sooner.
            from tui_gpt.app.dialogs import help, inspection, model_chooser, prompt_editor  # noqa: F401
            from tui_gpt.session import use_threads

            check_cancelled()
            use_threads(self._n_threads)
            check_cancelled()
            try:
                session.load(_checking(check_cancelled, self._post))
            except TuiGPTError:
                return  # said when it is needed: the recording on the screen is still good
            check_cancelled()
            self._post(ModelLoaded(session))

        self._runs.submit(job)

    def cancel_run(self) -> None:
        """Stop the run that is being loaded or computed; no message will tell of it."""
        self._runs.cancel()

    def inspect(self, session: Session, post: Callable[[Message], object]) -> None:
        """Tell a screen how a model's files were read: Checking, and in the end Inspected."""

        def job(check_cancelled: Callable[[], None]) -> None:
            from tui_gpt.session import use_threads

            answer: LoaderReport | TuiGPTError
            try:
                use_threads(self._n_threads)
                check_cancelled()
                answer = session.report(_checking(check_cancelled, post))
            except TuiGPTError as error:
                answer = error
            check_cancelled()
            post(Inspected(answer))

        self._reports.submit(job)

    def cancel_inspection(self) -> None:
        """Stop reading for a report that nobody waits for."""
        self._reports.cancel()

    def ask(
        self, trace: Trace, session: Session | None, questions: tuple[Question[object], ...]
    ) -> None:
        """Answer questions about a run, one after the other: Answered for each."""

        def job(check_cancelled: Callable[[], None]) -> None:
            from tui_gpt.views import matrix  # noqa: F401  # drawing will need it: numpy

            for question in questions:
                answer: object
                try:
                    answer = question.answer(trace, session, check_cancelled)
                except TuiGPTError as error:
                    answer = error
                check_cancelled()
                self._post(Answered(trace, question, answer))

        self._answers.submit(job)


def _open(path: Path) -> Trace:
    from tui_gpt.records.recording import Recording

    return Recording(path)


def _checking(
    check_cancelled: Callable[[], None], post: Callable[[Message], object]
) -> Callable[[int, int], None]:
    """Make what a reader of weights calls: it can be stopped, and tells ten times a second."""
    last = monotonic()

    def checking(done: int, count: int) -> None:
        nonlocal last
        check_cancelled()
        if monotonic() - last >= _PAUSE:
            last = monotonic()
            post(Checking(done, count))

    return checking
