"""Brings a place and its values onto the lines of the main screen.

The rows come from the views; what is kept here is only where the list and the matrix are
scrolled to. Modules that need numpy are imported when the first values are drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.segment import Segment

from tui_gpt.app.actions import KEPT, hints
from tui_gpt.app.lines import Lines
from tui_gpt.app.pipeline import Place
from tui_gpt.records.tokens import Token
from tui_gpt.records.trace import Run
from tui_gpt.views import bars
from tui_gpt.views.palette import Palette
from tui_gpt.views.rows import Row, padded
from tui_gpt.views.stage_list import ListLine, first_line, list_layout, list_lines, list_rows
from tui_gpt.views.stage_text import heading, reading
from tui_gpt.views.text import harmless, spoken

if TYPE_CHECKING:
    from tui_gpt.records.tensors import StageTensor, Statistics

SMALLEST = (44, 12)
"""Cells and lines below which nothing sensible can be drawn."""

_LINES_AROUND = 4
"""Title, tabs, reading and footer."""


@dataclass(frozen=True, slots=True)
class Shown:
    """The values on the screen."""

    tensor: StageTensor
    found: Statistics


class Drawing:
    """Draws parts of the main screen, each on its own lines."""

    def __init__(self, palette: Palette, lines: Callable[[str], Lines]) -> None:
        """Remember where to draw.

        Args:
            palette: For this terminal.
            lines: Gives the lines of a part by its name.
        """
        self._palette = palette
        self._lines = lines
        self._list: tuple[ListLine, ...] = ()
        self._width, self._height = SMALLEST
        self._body_height = 1
        self._list_top = 0
        self._top = self._left = 0
        self.list_width = 0
        """Cells of the stage list, its rule included."""
        self.list_page = 1
        """Stages that PgUp and PgDn jump."""
        self.cell_page = 1
        """Matrix rows that PgUp and PgDn jump."""

    @property
    def is_small(self) -> bool:
        """True where the screen has no room for anything but saying so."""
        return self._width < SMALLEST[0] or self._height < SMALLEST[1]

    def resize(self, width: int, height: int, run: Run) -> None:
        """Lay the parts out for a screen and a run."""
        self._width, self._height = width, height
        self._list = list_lines(run.stages, run.model.config)
        self._body_height = max(1, height - _LINES_AROUND - bool(run.notices))
        self.list_width = list_layout(self._list, width).width + 1
        self.list_page = max(1, self._body_height - 2)

    def frame(self, place: Place) -> None:
        """Draw what does not depend on values: title, notices, list, footer."""
        if self.is_small:
            words = f"Too small: {self._width}x{self._height}, need {SMALLEST[0]}x{SMALLEST[1]}"
            self._lines("too-small").show([[Segment(words, self._palette.plain)]])
            return
        self._lines("title").show([bars.title_bar(place.run, self._width, self._palette)])
        if place.run.notices:
            text = spoken(harmless(" · ".join(place.run.notices)), self._palette.profile.glyphs)
            self._show_line("notice", [Segment(f" {text}", self._palette.problem)])
        self.stages(place)
        self.footer(place)

    def tabs(
        self, panes: Sequence[tuple[str, str]], chosen: str, status: str, problem: str
    ) -> None:
        """Draw the panes' names and what is going on; a problem takes the status's place."""
        words = harmless(problem) if problem else status
        row = bars.tab_bar(panes, chosen, words, self._width, self._palette, problem=bool(problem))
        self._lines("tabs").show([row])

    def footer(self, place: Place) -> None:
        """Draw the keys that apply."""
        row = bars.footer(hints(place.zone), self._width, self._palette, keep=KEPT)
        self._lines("footer").show([row])

    def stages(self, place: Place) -> None:
        """Draw the part of the stage list that holds the chosen stage."""
        self._list_top = first_line(self._list_top, self._list, place.index, self._body_height)
        rows = list_rows(
            self._list,
            list_layout(self._list, self._width),
            first=self._list_top,
            height=self._body_height,
            index=place.index,
            active=place.zone == "stages",
            palette=self._palette,
        )
        self._lines("stages").show(rows)

    def stage(self, place: Place, shown: Shown, vocabulary: Callable[[int], Token] | None) -> None:
        """Draw the chosen stage with its values, and read the cell aloud."""
        from tui_gpt.views.stage_panel import stage_panel

        run = place.run
        panel = stage_panel(
            shown.tensor,
            shown.found,
            run.model.config,
            run.tokens,
            vocabulary=vocabulary,
            head=place.head,
            cell=place.cell,
            dense=place.dense,
            top=self._top,
            left=self._left,
            width=self._width - self.list_width,
            height=self._body_height,
            palette=self._palette,
        )
        self._top, self._left = panel.top, panel.left
        self.cell_page = max(1, panel.page - 1)
        self._lines("stage").show(panel.rows)
        self._show_line(
            "reading",
            reading(shown.tensor, place.head, place.cell, run.tokens, vocabulary, self._palette),
        )

    def heading(self, place: Place, reason: str = "") -> None:
        """Draw what the chosen stage is, without values; a reason why there are none."""
        width = self._width - self.list_width
        rows = heading(
            place.stage,
            place.run.model.config,
            head=place.head,
            width=width,
            palette=self._palette,
        )
        if reason:
            text = spoken(harmless(reason), self._palette.profile.glyphs)
            rows.append(padded([Segment(text, self._palette.problem)], width, self._palette.plain))
        blank: Row = [Segment(" " * width, self._palette.plain)]
        self._lines("stage").show(rows + [blank] * (self._body_height - len(rows)))
        self._show_line("reading", [])

    def _show_line(self, name: str, row: Row) -> None:
        self._lines(name).show([padded(row, self._width, self._palette.plain)])
