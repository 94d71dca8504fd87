"""All keys, and how to read what is on the screen."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType

from tui_gpt.app.actions import help_groups, help_lines
from tui_gpt.app.dialogs.page import Page
from tui_gpt.views.legend_text import how_to_read
from tui_gpt.views.text import transliterate


class Help(Page):
    """Every action of the registry, then what scales and marks mean."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark", "close", show=False, priority=True),
    ]
    TITLE = "How to use tui-gpt"
    KEYS = (("↑↓", "scroll"), ("?", "close"), ("q", "quit"))

    def text(self, width: int) -> Text:
        """Write it for this terminal; the lines are short enough for any."""
        glyphs = self._palette.profile.glyphs
        text = Text()
        for heading, actions in help_groups():
            text.append(f"{heading}\n", self._palette.strong)
            for keys, sentence in help_lines(actions):
                text.append(f"{transliterate(keys, glyphs):>12}", self._palette.accent)
                text.append(f"  {sentence}\n", self._palette.plain)
            text.append("\n")
        for heading, lines in how_to_read(self._palette):
            text.append(f"{heading}\n", self._palette.strong)
            for line in lines:
                text.append_text(line)
                text.append("\n")
            text.append("\n")
        return text
