"""What the background threads tell the screen: immutable results, one message each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.message import Message

from tui_gpt.errors import TuiGPTError
from tui_gpt.records.trace import Run, Trace

if TYPE_CHECKING:
    from tui_gpt.app.work.questions import Question
    from tui_gpt.records.loader_report import LoaderReport
    from tui_gpt.session import Session


class RunPrepared(Message):
    """A prompt was cut into tokens for a model, old or new."""

    def __init__(self, session: Session, run: Run) -> None:
        self.session = session
        self.run = run
        super().__init__()


class Refused(Message):
    """A prompt or model cannot be used; what is on the screen stays."""

    def __init__(self, error: TuiGPTError) -> None:
        self.error = error
        super().__init__()


class TraceReady(Message):
    """A run has numbers now."""

    def __init__(self, session: Session | None, trace: Trace, *, recorded: bool) -> None:
        self.session = session
        self.trace = trace
        self.recorded = recorded
        super().__init__()


class TraceFailed(Message):
    """A run could not be computed, or its recording not read."""

    def __init__(self, run: Run, error: TuiGPTError) -> None:
        self.run = run
        self.error = error
        super().__init__()


class Answered(Message):
    """A question about a run has an answer, or an error that says why it has none."""

    def __init__(self, trace: Trace, question: Question[object], answer: object) -> None:
        self.trace = trace
        self.question = question
        self.answer = answer
        super().__init__()


class Checking(Message):
    """Weights are being read."""

    def __init__(self, done: int, count: int) -> None:
        self.done = done
        self.count = count
        super().__init__()

    def can_replace(self, message: Message) -> bool:
        """Only the newest counts."""
        return isinstance(message, Checking)


class Inspected(Message):
    """How a model's files were read, or the error that says why they cannot be."""

    def __init__(self, answer: LoaderReport | TuiGPTError) -> None:
        self.answer = answer
        super().__init__()


class ModelLoaded(Message):
    """The weights of a session are in memory."""

    def __init__(self, session: Session) -> None:
        self.session = session
        super().__init__()
