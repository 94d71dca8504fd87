"""Pane 3: the hidden units of one block, before and after the activation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tui_gpt.app.actions import Where
from tui_gpt.app.panes.pane import Picture, Scene, waiting
from tui_gpt.app.place.place import Place
from tui_gpt.app.work.questions import CheckCancelled, Question
from tui_gpt.records.trace import Trace

if TYPE_CHECKING:
    from tui_gpt.records.analyses.feed_forward import FeedForward
    from tui_gpt.session import Session


@dataclass(frozen=True, slots=True)
class FeedForwardOf(Question["FeedForward"]):
    """All hidden units of a block."""

    layer: int

    def answer(
        self, trace: Trace, session: Session | None, check_cancelled: CheckCancelled
    ) -> FeedForward:
        """Read the block's hidden units; see `Question.answer`."""
        from tui_gpt.analysis.feed_forward import feed_forward

        return feed_forward(trace, self.layer)


class FeedForwardPane:
    """Which hidden units fire for which token."""

    def __init__(self) -> None:
        self._top = self._left = 0
        self._page = 1

    def draw(self, scene: Scene) -> Picture:
        """Draw the block of the place."""
        place = scene.place
        question = FeedForwardOf(place.block)
        record = scene.ask(question)
        if record is None:
            return waiting(scene, "Feed-forward", scene.reason(question))
        from tui_gpt.views.panes.feed_forward.pane import ffn_pane  # numpy
        from tui_gpt.views.stage_text import reading

        unit = self._unit(place)
        panel = ffn_pane(
            record,
            place.run.model.config,
            place.run.tokens,
            position=place.position,
            unit=unit,
            dense=place.dense,
            top=self._top,
            left=self._left,
            width=scene.width,
            height=scene.height,
            palette=scene.palette,
        )
        self._top, self._left, self._page = panel.top, panel.left, panel.page
        tensor, cell = record.post.tensor, (place.position, unit)
        aloud = (
            []
            if tensor is None
            else reading(tensor, 0, cell, place.run.tokens, None, scene.palette)
        )
        return Picture(panel.rows, aloud)

    def move(self, place: Place, down: int, right: int) -> Place:
        """Choose the token and the unit."""
        rows, columns = len(place.run.tokens), place.run.model.config.n_inner
        return place.at_row_and_column(
            place.position + down, self._unit(place) + right, rows, columns
        )

    def page(self, place: Place) -> int:
        """Jump by the tokens in sight."""
        return max(1, self._page - 1)

    def columns(self, place: Place) -> int:
        """Go through the units."""
        return place.run.model.config.n_inner

    def where(self, place: Place) -> Where:
        """Name this pane."""
        return "ffn"

    def _unit(self, place: Place) -> int:
        return min(place.column, place.run.model.config.n_inner - 1)
