"""The jobs of the background threads: what is computed, and which message tells of it.

Three lanes, so that no kind of work waits for another: prompts (cutting text into tokens,
finding models), runs (importing torch, loading weights, forward passes) and tensors (the
values of one stage). The modules that need numpy or torch are imported inside the jobs.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from textual.message import Message

from tui_gpt.app.background import Lane
from tui_gpt.app.messages import (
    ModelLoaded,
    Refused,
    RunPrepared,
    TensorMissing,
    TensorReady,
    TraceFailed,
    TraceReady,
)
from tui_gpt.errors import TuiGPTError
from tui_gpt.records.trace import Run, Trace

if TYPE_CHECKING:
    from tui_gpt.session import Session


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
        self._tensors = Lane("tensors")

    def prepare(self, session: Session, text: str, *, crop: bool) -> None:
        """Cut a prompt into tokens: RunPrepared or Refused."""

        def job(go_on: Callable[[], None]) -> None:
            try:
                run = session.prepare(text, crop=crop)
            except TuiGPTError as error:
                go_on()
                self._post(Refused(error))
                return
            go_on()
            self._post(RunPrepared(session, run))

        self._prompts.submit(job)

    def open_model(self, name: str, text: str, *, crop: bool) -> None:
        """Find a model and cut the prompt for it: RunPrepared or Refused."""

        def job(go_on: Callable[[], None]) -> None:
            from tui_gpt.session import Session

            try:
                session = Session.open(name)
                run = session.prepare(text, crop=crop)
            except TuiGPTError as error:
                go_on()
                self._post(Refused(error))
                return
            go_on()
            self._post(RunPrepared(session, run))

        self._prompts.submit(job)

    def start(self, session: Session, run: Run) -> None:
        """Get the numbers of a run: TraceReady or TraceFailed.

        The recording that ships for a bundled model's default prompt is opened where there
        is one, without torch; every other prompt is computed.
        """

        def job(go_on: Callable[[], None]) -> None:
            from tui_gpt.session import bundled_recording, use_threads

            try:
                path = bundled_recording(run.model.name, run.prompt)
                if path is not None:
                    trace = _open(path)
                    go_on()
                    self._post(TraceReady(session, trace, recorded=True))
                    return
                use_threads(self._n_threads)
                go_on()
                trace = session.trace(run, go_on=go_on)
            except TuiGPTError as error:
                go_on()
                self._post(TraceFailed(run, error))
                return
            go_on()
            self._post(TraceReady(session, trace, recorded=False))

        self._runs.submit(job)

    def open_recording(self, session: Session | None, path: Path, run: Run) -> None:
        """Read a recording of a run: TraceReady or TraceFailed."""

        def job(go_on: Callable[[], None]) -> None:
            try:
                trace = _open(path)
            except TuiGPTError as error:
                self._post(TraceFailed(run, error))
                return
            go_on()
            self._post(TraceReady(session, trace, recorded=True))

        self._runs.submit(job)

    def load(self, session: Session) -> None:
        """Import torch and read the weights ahead of the first prompt: ModelLoaded."""

        def job(go_on: Callable[[], None]) -> None:
            # What the keys p, m and ? open comes first: it is small, and it is asked for sooner.
            from tui_gpt.app import help, model_chooser, prompt_editor  # noqa: F401
            from tui_gpt.session import use_threads

            go_on()
            use_threads(self._n_threads)
            go_on()
            try:
                session.load()
            except TuiGPTError:
                return  # said when it is needed: the recording on the screen is still good
            go_on()
            self._post(ModelLoaded(session))

        self._runs.submit(job)

    def read(self, trace: Trace, stage_id: str) -> None:
        """Get the values of one stage: TensorReady or TensorMissing."""

        def job(go_on: Callable[[], None]) -> None:
            from tui_gpt.records.tensors import statistics
            from tui_gpt.views import heatmap  # noqa: F401  # the handler will need it: numpy

            try:
                tensor = trace.tensor(stage_id)
            except TuiGPTError as error:
                go_on()
                self._post(TensorMissing(trace, stage_id, error))
                return
            go_on()
            found = statistics(tensor)
            go_on()
            self._post(TensorReady(trace, tensor, found))

        self._tensors.submit(job)


def _open(path: Path) -> Trace:
    from tui_gpt.records.recording import Recording

    return Recording(path)
