"""Pane 5: what one position proposes as the next token."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tui_gpt.app.actions import Where
from tui_gpt.app.panes.pane import Picture, Scene, waiting
from tui_gpt.app.place.place import Place
from tui_gpt.app.work.questions import CheckCancelled, Question
from tui_gpt.records.tokens import Token
from tui_gpt.records.trace import Trace

if TYPE_CHECKING:
    from tui_gpt.records.analyses.output import Output
    from tui_gpt.session import Session


@dataclass(frozen=True, slots=True)
class OutputOf(Question["Output"]):
    """What one position proposes as the next token."""

    position: int

    def answer(
        self, trace: Trace, session: Session | None, check_cancelled: CheckCancelled
    ) -> Output:
        """Rank the vocabulary; see `Question.answer`."""
        from tui_gpt.analysis.output import output

        return output(trace, self.position, token_of(session))


def token_of(session: Session | None) -> Callable[[int], Token]:
    """Give the tokens' texts where the model is at hand, their ids alone where it is not."""
    return session.token if session is not None else lambda token_id: Token(token_id, b"")


class OutputPane:
    """Logits and probabilities of one position, best first."""

    def __init__(self) -> None:
        self._count = 1

    def draw(self, scene: Scene) -> Picture:
        """Draw the answer after the position of the place."""
        place = scene.place
        question = OutputOf(place.position)
        record = scene.ask(question)
        if record is None:
            return waiting(scene, "Output", scene.reason(question))
        from tui_gpt.views.panes.output import output_pane, output_reading

        self._count = len(record.ranking.best) if record.ranking is not None else 0
        chosen = max(0, min(place.choice, self._count - 1))
        rows = output_pane(
            record,
            place.run.tokens,
            chosen=chosen,
            width=scene.width,
            height=scene.height,
            palette=scene.palette,
        )
        aloud = output_reading(record, chosen, scene.palette) if self._count else []
        return Picture(rows, aloud)

    def move(self, place: Place, down: int, right: int) -> Place:
        """Choose the candidate and the position."""
        choice = max(0, min(place.choice + down, self._count - 1))
        size = len(place.run.tokens)
        return replace(
            place.at_row_and_column(place.position + right, place.column, size, place.column + 1),
            choice=choice,
        )

    def page(self, place: Place) -> int:
        """Jump through the candidates."""
        return 10

    def columns(self, place: Place) -> int:
        """Go through the positions."""
        return len(place.run.tokens)

    def where(self, place: Place) -> Where:
        """Name this pane."""
        return "output"
