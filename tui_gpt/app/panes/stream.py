"""Pane 4: the residual stream by depth, the logit lens, the standing identities."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tui_gpt.app.actions import Where
from tui_gpt.app.panes.pane import Picture, Scene, waiting
from tui_gpt.app.place.place import Place
from tui_gpt.app.work.questions import CheckCancelled, Question, model_of
from tui_gpt.records.trace import Trace

if TYPE_CHECKING:
    from tui_gpt.records.analyses.identities import Identities
    from tui_gpt.records.analyses.lens import Lens
    from tui_gpt.records.analyses.stream import Stream
    from tui_gpt.session import Session


@dataclass(frozen=True, slots=True)
class StreamOf(Question["Stream"]):
    """The residual stream by depth."""

    def answer(
        self, trace: Trace, session: Session | None, check_cancelled: CheckCancelled
    ) -> Stream:
        """Read every block once; see `Question.answer`."""
        from tui_gpt.analysis.stream import stream

        return stream(trace, check_cancelled=check_cancelled)


@dataclass(frozen=True, slots=True)
class LensOf(Question["Lens"]):
    """What the model would answer after each sub-layer, at one position."""

    position: int

    def answer(
        self, trace: Trace, session: Session | None, check_cancelled: CheckCancelled
    ) -> Lens:
        """Read every block once; see `Question.answer`."""
        return model_of(session).lens(trace, self.position, check_cancelled=check_cancelled)


@dataclass(frozen=True, slots=True)
class IdentitiesOf(Question["Identities"]):
    """Whether each stage is its operation on the stages it reads."""

    def answer(
        self, trace: Trace, session: Session | None, check_cancelled: CheckCancelled
    ) -> Identities:
        """Run every operation again; see `Question.answer`."""
        return model_of(session).identities(trace, check_cancelled=check_cancelled)


class StreamPane:
    """What every sub-layer adds, and what the model would answer there."""

    def draw(self, scene: Scene) -> Picture:
        """Draw the stream at the position of the place."""
        place = scene.place
        record = scene.ask(StreamOf())
        if record is None:
            return waiting(scene, "Stream", scene.reason(StreamOf()))
        lens = scene.ask(LensOf(place.position))
        identities = scene.ask(IdentitiesOf())
        from tui_gpt.views.panes.stream.pane import stream_pane, stream_reading  # numpy

        depth = self._depth(place)
        rows = stream_pane(
            record,
            lens,
            identities,
            place.run.tokens,
            position=place.position,
            chosen=depth,
            no_lens=scene.reason(LensOf(place.position)),
            no_identities=scene.reason(IdentitiesOf()),
            width=scene.width,
            height=scene.height,
            palette=scene.palette,
        )
        return Picture(rows, stream_reading(record, place.position, depth, scene.palette))

    def move(self, place: Place, down: int, right: int) -> Place:
        """Choose the depth and the position."""
        depth = max(0, min(self._depth(place) + down, self._depths(place) - 1))
        size = len(place.run.tokens)
        return replace(
            place.at_row_and_column(place.position + right, place.column, size, place.column + 1),
            depth=depth,
        )

    def page(self, place: Place) -> int:
        """Jump through the depths."""
        return 10

    def columns(self, place: Place) -> int:
        """Go through the positions."""
        return len(place.run.tokens)

    def where(self, place: Place) -> Where:
        """Name this pane."""
        return "stream"

    def _depth(self, place: Place) -> int:
        return min(place.depth, self._depths(place) - 1)

    def _depths(self, place: Place) -> int:
        return 2 * place.run.model.config.n_layer + 1
