"""Pane 5: what one position proposes as the next token."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from tui_gpt.app.actions import Where
from tui_gpt.app.panes.pane import Picture, Scene, waiting
from tui_gpt.app.place import Place
from tui_gpt.app.questions import OutputOf


class OutputPane:
    """Logits and probabilities of one position, best first."""

    key: ClassVar[str] = "5"
    title: ClassVar[str] = "Output"

    def __init__(self) -> None:
        self._count = 1

    def draw(self, scene: Scene) -> Picture:
        """Draw the answer after the position of the place."""
        place = scene.place
        question = OutputOf(place.position)
        record = scene.ask(question)
        if record is None:
            return waiting(scene, self.title, scene.reason(question))
        from tui_gpt.views.output_pane import output_pane, output_reading

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
