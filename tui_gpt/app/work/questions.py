"""What a pane can ask about a run. Each question is answered in the background, once.

A question is a value, so that the same one is recognised; its `answer` imports what it needs
(numpy, torch) where it runs. An answer is a record, or the error that says why there is none.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Generic, TypeAlias, TypeVar, cast

from tui_gpt.errors import MissingStage, TuiGPTError
from tui_gpt.records.stages import ActivationName
from tui_gpt.records.trace import Trace

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tui_gpt.app.place.place import Place
    from tui_gpt.records.analyses.explanation import Explanation
    from tui_gpt.records.analyses.output import NotFinite
    from tui_gpt.records.tensors import StageTensor, Statistics, Values
    from tui_gpt.session import Session
    from tui_gpt.views.matrix import Pooled

T = TypeVar("T")

CheckCancelled: TypeAlias = Callable[[], None]

_KEPT = 32
"""Answers kept of one run."""

_LARGE_KEPT = 4
"""Of those, whole tensors."""

_NO_MODEL = "the recording's model is not here, so its weights cannot be read"


class Question(Generic[T]):
    """Something that can be asked about a run; equal questions have equal answers."""

    __slots__ = ()

    kept: ClassVar[bool] = True
    """The answer is kept for later drawings; otherwise the place keeps it."""

    def arrived(self, place: Place, answer: object) -> Place:
        """Say where an answer leads; most leave the place as it is."""
        return place

    def answer(self, trace: Trace, session: Session | None, check_cancelled: CheckCancelled) -> T:
        """Compute the answer, in a background thread.

        Args:
            trace: The numbers of the run.
            session: Its model, where it is at hand.
            check_cancelled: Called between steps; raises where the answer is no longer wanted.

        Raises:
            TuiGPTError: There is none; the message is the reason.
        """
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Shown:
    """The values of a stage or a parameter, and what they add up to."""

    found: Statistics
    """Of the rows that are held."""
    tensor: StageTensor | None
    """None for a parameter."""
    parameter: str = ""
    """The parameter's name; empty for a stage."""
    weights: NDArray[np.float32] | None = None
    """The parameter's values; None for a stage."""


@dataclass(frozen=True, slots=True)
class ValuesOf(Question[Shown]):
    """The values of one stage."""

    stage_id: str
    rows: tuple[int, int] | None = None
    """For logits and probs of many positions, those that are looked at."""

    def answer(
        self, trace: Trace, session: Session | None, check_cancelled: CheckCancelled
    ) -> Shown:
        """Read or compute the stage; see `Question.answer`."""
        from tui_gpt.records.tensors import statistics

        tensor = trace.tensor(self.stage_id, self.rows)
        return Shown(statistics(tensor), tensor)


@dataclass(frozen=True, slots=True)
class ParameterOf(Question[Shown]):
    """The values of one parameter."""

    name: str

    def answer(
        self, trace: Trace, session: Session | None, check_cancelled: CheckCancelled
    ) -> Shown:
        """Read the weights; see `Question.answer`."""
        from tui_gpt.records.tensors import statistics_of

        values = model_of(session).parameter(self.name)
        return Shown(statistics_of(values), None, self.name, values)


@dataclass(frozen=True, slots=True)
class SharedBound(Question[float]):
    """The largest magnitude of a stage over all blocks, so that blocks can be compared."""

    name: ActivationName

    def answer(
        self, trace: Trace, session: Session | None, check_cancelled: CheckCancelled
    ) -> float:
        """Look at the stage in every block; see `Question.answer`."""
        from tui_gpt.records.tensors import statistics

        bound = 0.0
        for stage in trace.run.stages:
            if stage.name == self.name:
                check_cancelled()
                found = statistics(trace.tensor(stage.id))
                bound = max(bound, abs(found.minimum or 0.0), abs(found.maximum or 0.0))
        return bound


@dataclass(frozen=True, slots=True)
class RobustBound(Question[float]):
    """A magnitude that 99 of 100 values of a stage or parameter do not pass."""

    stage_id: str | None
    parameter: str | None = None

    def answer(
        self, trace: Trace, session: Session | None, check_cancelled: CheckCancelled
    ) -> float:
        """Look at every value; see `Question.answer`."""
        import numpy as np

        values: Values
        if self.parameter is not None:
            values = model_of(session).parameter(self.parameter)
        else:
            assert self.stage_id is not None
            values = trace.tensor(self.stage_id).present()
        finite = np.abs(values[np.isfinite(values)])
        return float(np.percentile(finite, 99)) if finite.size else 0.0


@dataclass(frozen=True, slots=True)
class PooledOf(Question["Pooled"]):
    """A matrix made small enough to be in sight as a whole."""

    source: ValuesOf | ParameterOf
    head: int
    turned: bool
    bin: tuple[int, int]

    def answer(
        self, trace: Trace, session: Session | None, check_cancelled: CheckCancelled
    ) -> Pooled:
        """Look at every value; see `Question.answer`."""
        from tui_gpt.views.matrix import matrix_of, parameter_matrix, pool
        from tui_gpt.views.palette import palette
        from tui_gpt.views.profile import TerminalProfile

        plain = palette(TerminalProfile())  # labels are not kept
        if isinstance(self.source, ParameterOf):
            values = model_of(session).parameter(self.source.name)
            matrix = parameter_matrix(
                self.source.name, values, None, plain, bound=1.0, turned=self.turned
            )
        else:
            tensor = trace.tensor(self.source.stage_id, self.source.rows)
            matrix = matrix_of(
                tensor, self.head, trace.run.tokens, None, plain, bound=1.0, turned=self.turned
            )
        return pool(matrix, self.bin)


@dataclass(frozen=True, slots=True)
class ExplanationOf(Question["Explanation"]):
    """Where the value of one cell comes from."""

    stage_id: str
    index: tuple[int, ...]

    def answer(
        self, trace: Trace, session: Session | None, check_cancelled: CheckCancelled
    ) -> Explanation:
        """Recompute the cell; see `Question.answer`."""
        return model_of(session).explain(trace, self.stage_id, self.index)


@dataclass(frozen=True, slots=True)
class Broken:
    """Where the first NaN or infinity of a run is, if there is any that matters."""

    first: NotFinite | None


@dataclass(frozen=True, slots=True)
class BrokenOf(Question[Broken]):
    """Whether a NaN or an infinity reaches what the model answers, and where it starts."""

    def answer(
        self, trace: Trace, session: Session | None, check_cancelled: CheckCancelled
    ) -> Broken:
        """Look at the last row of logits, and where it is not finite at every stage.

        Every position attends to itself and the stream is a sum, so what breaks a position
        reaches its logits; the last position reads all others.
        """
        import numpy as np

        from tui_gpt.analysis.output import first_not_finite

        last = len(trace.run.tokens) - 1
        logits = trace.tensor("logits", (last, last + 1)).values
        check_cancelled()
        return Broken(None if np.isfinite(logits).all() else first_not_finite(trace))


class Answers:
    """The answers of one run, the last ones asked for."""

    def __init__(self) -> None:
        self._known: OrderedDict[object, object] = OrderedDict()
        self.ready = False
        """Numbers can be had: the trace is there, and with it the modules that need numpy."""

    def __contains__(self, question: object) -> bool:
        return question in self._known

    def keep(self, question: object, answer: object) -> None:
        """Take an answer, and drop the oldest where there are many."""
        self._known[question] = answer
        large = [known for known in self._known if isinstance(known, ValuesOf | ParameterOf)]
        for known in large[:-_LARGE_KEPT]:
            del self._known[known]
        while len(self._known) > _KEPT:
            self._known.popitem(last=False)

    def get(self, question: Question[T]) -> T | None:
        """Give an answer; None where there is none, yet or at all."""
        answer = self._known.get(question)
        if answer is None or isinstance(answer, TuiGPTError):
            return None
        self._known.move_to_end(question)
        return cast("T", answer)

    def reason(self, question: object) -> str:
        """Say why there is no answer; empty while it is on its way."""
        answer = self._known.get(question)
        return str(answer) if isinstance(answer, TuiGPTError) else ""


def model_of(session: Session | None) -> Session:
    """Give the model whose weights an answer needs.

    Raises:
        MissingStage: It is not at hand.
    """
    if session is None:
        raise MissingStage(_NO_MODEL)
    return session
