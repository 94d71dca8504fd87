"""Pane 1: the stage list, and the chosen stage as a heatmap with a cell that can be explained."""

from __future__ import annotations

from dataclasses import replace

from rich.segment import Segment

from tui_gpt.app.actions import Where
from tui_gpt.app.panes.pane import Picture, Scene
from tui_gpt.app.place.place import Place
from tui_gpt.app.work.questions import ExplanationOf
from tui_gpt.records.trace import Run
from tui_gpt.views.palette import Palette
from tui_gpt.views.panes.pipeline.stage_list import (
    ListLine,
    first_line,
    list_layout,
    list_lines,
    list_rows,
)
from tui_gpt.views.rows import Row, fitted
from tui_gpt.views.stage_text import heading, parameter_heading, wrapped
from tui_gpt.views.text import sanitize, transliterate

_TALL = 34
"""Lines from which picture and explanation are shown together."""


class PipelinePane:
    """The stage list left, one stage right."""

    def __init__(self) -> None:
        self._run: Run | None = None
        self._lines: tuple[ListLine, ...] = ()
        self._list_top = 0
        self._top = self._left = 0
        self._bin = (1, 1)
        self._n_lines = 0
        self._list_page = self._cell_page = 1

    def draw(self, scene: Scene) -> Picture:
        """Draw list and stage side by side."""
        place, palette = scene.place, scene.palette
        if place.run is not self._run:
            self._run = place.run
            self._lines = list_lines(place.run.stages, place.run.model.config)
        layout = list_layout(self._lines, scene.width)
        self._list_page = max(1, scene.height - 2)
        self._list_top = first_line(self._list_top, self._lines, place.index, scene.height)
        left = list_rows(
            self._lines,
            layout,
            first=self._list_top,
            height=scene.height,
            index=place.index,
            active=place.zone == "stages",
            palette=palette,
        )
        width = scene.width - layout.width - 1
        right, reading = self._stage(scene, width)
        right = fitted(right, width, scene.height, palette.plain)
        return Picture([[*a, *b] for a, b in zip(left, right, strict=True)], reading)

    def move(self, place: Place, down: int, right: int) -> Place:
        """Move the chosen stage, the cell, or the line of its explanation."""
        if place.zone == "stages":
            return place.at_stage(place.index + down) if down else place
        if place.zone == "terms":
            side = place.side if not right else int(right > 0)
            line = min(max(0, place.line + down), max(0, self._n_lines - 1))
            return replace(place, line=line, side=side)
        if place.turned:
            down, right = right, down
        row, column = place.cell
        step_down, step_right = self._bin[::-1] if place.turned else self._bin
        return place.at_cell(row + down * step_down, column + right * step_right)

    def page(self, place: Place) -> int:
        """Jump by what is in sight."""
        return self._list_page if place.zone == "stages" else max(1, self._cell_page - 1)

    def columns(self, place: Place) -> int:
        """Go through the row of the cell."""
        return max(place.matrix_shape)

    def where(self, place: Place) -> Where:
        """Name the zone that has the arrow keys."""
        return place.zone

    def _stage(self, scene: Scene, width: int) -> tuple[list[Row], Row]:
        """Draw the chosen stage, or the parameter in its place; and read the cell aloud."""
        place, palette = scene.place, scene.palette
        rows = _heading(place, width, palette)[: max(1, scene.height - 6)]
        if not scene.answers.ready:
            return rows, []
        from tui_gpt.app.panes.matrices import read_cell, source_of  # numpy is there by now

        aloud = read_cell(scene)
        if aloud is None:
            reason = scene.reason(source_of(place))
            text = (
                transliterate(sanitize(f"missing: {reason}"), palette.profile.glyphs)
                if reason
                else ""
            )
            return [*rows, *([Segment(line, palette.problem)] for line in wrapped(text, width))], []
        if place.explained and scene.height < _TALL:
            return [rows[0], *self._explanation(scene, width, scene.height - 1)], aloud
        room = scene.height - len(rows)
        below = self._explanation(scene, width, room // 2) if place.explained else []
        return [*rows, *self._picture(scene, width, room - len(below)), *below], aloud

    def _picture(self, scene: Scene, width: int, height: int) -> list[Row]:
        """Draw the matrix, what must be known of its scale above it."""
        from tui_gpt.app.panes.matrices import prepare
        from tui_gpt.views.panes.pipeline.matrix_panel import frame_of, matrix_panel

        palette = scene.palette
        prepared = prepare(scene, width, height)
        if prepared is None:
            return []
        self._bin = prepared.matrix.bin
        text = transliterate(" · ".join(prepared.notes), palette.profile.glyphs)
        notes = wrapped(text, width) if text else []
        height -= len(notes)
        panel = matrix_panel(
            prepared.matrix,
            frame_of(prepared.matrix, width, height, palette, dense=scene.place.dense),
            prepared.found,
            cell=prepared.cell,
            top=self._top,
            left=self._left,
            width=width,
            height=height,
            palette=palette,
        )
        self._top, self._left, self._cell_page = panel.top, panel.left, panel.page
        return [*([Segment(line, palette.accent)] for line in notes), *panel.rows]

    def _explanation(self, scene: Scene, width: int, height: int) -> list[Row]:
        """Draw where the cell's number comes from, the chosen line in sight."""
        from tui_gpt.app.panes.explanations import draw_explanation, targets

        place, palette = scene.place, scene.palette
        question = ExplanationOf(place.stage.id, place.cell_index)
        explanation = scene.ask(question)
        if explanation is None:
            reason = scene.reason(question) or "computing…"
            text = transliterate(sanitize(reason), palette.profile.glyphs)
            rows: list[Row] = [[Segment(line, palette.faint)] for line in wrapped(text, width)]
            return fitted(rows, width, height, palette.plain)
        self._n_lines = len(targets(explanation))
        return draw_explanation(explanation, scene, width, height)


def _heading(place: Place, width: int, palette: Palette) -> list[Row]:
    config = place.run.model.config
    if place.parameter is not None:
        return parameter_heading(place.stage, place.parameter, config, width=width, palette=palette)
    return heading(place.stage, config, head=place.head, width=width, palette=palette)
