"""Pane 4: the residual stream by depth, the logit lens, the standing identities."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from tui_gpt.app.actions import Where
from tui_gpt.app.panes.pane import Picture, Scene, waiting
from tui_gpt.app.place import Place
from tui_gpt.app.questions import IdentitiesOf, LensOf, StreamOf


class StreamPane:
    """What every sub-layer adds, and what the model would answer there."""

    key: ClassVar[str] = "4"
    title: ClassVar[str] = "Stream"

    def draw(self, scene: Scene) -> Picture:
        """Draw the stream at the position of the place."""
        place = scene.place
        record = scene.ask(StreamOf())
        if record is None:
            return waiting(scene, self.title, scene.reason(StreamOf()))
        lens = scene.ask(LensOf(place.position))
        identities = scene.ask(IdentitiesOf())
        from tui_gpt.views.stream_pane import stream_pane, stream_reading  # numpy

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
