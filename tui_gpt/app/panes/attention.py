"""Pane 2: the attention of one block, all heads small and one large."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tui_gpt.app.actions import Where
from tui_gpt.app.panes.pane import Picture, Scene, waiting
from tui_gpt.app.place.place import Place
from tui_gpt.app.work.questions import CheckCancelled, Question
from tui_gpt.records.trace import Trace

if TYPE_CHECKING:
    from tui_gpt.records.analyses.attention import Attention
    from tui_gpt.session import Session


@dataclass(frozen=True, slots=True)
class AttentionOf(Question["Attention"]):
    """All heads of a block."""

    layer: int

    def answer(
        self, trace: Trace, session: Session | None, check_cancelled: CheckCancelled
    ) -> Attention:
        """Read the block's pattern and scores; see `Question.answer`."""
        from tui_gpt.analysis.attention import attention

        return attention(trace, self.layer)


class AttentionPane:
    """What each position reads, head by head."""

    def __init__(self) -> None:
        self._top = self._left = 0
        self._page = 1

    def draw(self, scene: Scene) -> Picture:
        """Draw the block of the place."""
        place = scene.place
        question = AttentionOf(place.block)
        record = scene.ask(question)
        if record is None:
            return waiting(scene, "Attention", scene.reason(question))
        from tui_gpt.views.panes.attention.pane import attention_pane  # numpy
        from tui_gpt.views.stage_text import reading

        cell = self._cell(place)
        panel = attention_pane(
            record,
            place.run.model.config,
            place.run.tokens,
            head=place.head,
            cell=cell,
            show_scores=place.scores,
            dense=place.dense,
            top=self._top,
            left=self._left,
            width=scene.width,
            height=scene.height,
            palette=scene.palette,
        )
        self._top, self._left, self._page = panel.top, panel.left, panel.page
        tensor = (record.scores if place.scores else record.pattern).tensor
        aloud = (
            []
            if tensor is None
            else reading(tensor, place.head, cell, place.run.tokens, None, scene.palette)
        )
        return Picture(panel.rows, aloud)

    def move(self, place: Place, down: int, right: int) -> Place:
        """Choose the query and the key."""
        query, key = self._cell(place)
        size = len(place.run.tokens)
        return place.at_row_and_column(query + down, key + right, size, size)

    def page(self, place: Place) -> int:
        """Jump by the queries in sight."""
        return max(1, self._page - 1)

    def columns(self, place: Place) -> int:
        """Go through the keys."""
        return len(place.run.tokens)

    def where(self, place: Place) -> Where:
        """Name this pane."""
        return "attention"

    def _cell(self, place: Place) -> tuple[int, int]:
        return place.position, min(place.column, len(place.run.tokens) - 1)
