"""A widget that shows rows a view has built, and draws only those that changed."""

from __future__ import annotations

from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from tui_gpt.views.rows import Row


class Lines(Widget):
    """Rows of segments, one strip each; rows that stay equal keep their strip."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._rows: list[Row] = []
        self._strips: list[Strip] = []

    def show(self, rows: list[Row]) -> None:
        """Show these rows from the top; lines without a row are blank."""
        changed = [
            y
            for y in range(max(len(rows), len(self._rows)))
            if y >= len(rows) or y >= len(self._rows) or rows[y] != self._rows[y]
        ]
        strips = [
            self._strips[y] if y < len(self._strips) and y not in changed else Strip(row)
            for y, row in enumerate(rows)
        ]
        self._rows, self._strips = rows, strips
        if changed:
            self.refresh(*(Region(0, y, self.size.width, 1) for y in changed))

    def render_line(self, y: int) -> Strip:
        """Give one line."""
        return self._strips[y] if y < len(self._strips) else Strip.blank(self.size.width)
