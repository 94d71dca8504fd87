"""All keys, and how to read what is on the screen."""

from __future__ import annotations

from typing import ClassVar

from rich.segment import Segment
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from tui_gpt.app.actions import help_groups, help_lines
from tui_gpt.app.lines import Lines
from tui_gpt.views.bars import footer
from tui_gpt.views.legend_text import how_to_read
from tui_gpt.views.palette import Palette
from tui_gpt.views.rows import padded
from tui_gpt.views.text import spoken

_KEYS = (("↑↓", "scroll"), ("?", "close"), ("q", "quit"))


class Help(ModalScreen[None]):
    """All keys, and how to read what is on the screen."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark,escape,enter,space", "close", "close", show=False, priority=True),
        Binding("q", "quit", "quit", show=False, priority=True),
        Binding("up,k", "scroll(-1)", show=False, priority=True),
        Binding("down,j", "scroll(1)", show=False, priority=True),
        Binding("pageup", "scroll(-10)", show=False, priority=True),
        Binding("pagedown", "scroll(10)", show=False, priority=True),
    ]
    DEFAULT_CSS = """
    Help { background: $background; }
    Help Lines { height: 1; dock: top; }
    Help #help-footer { dock: bottom; }
    Help VerticalScroll { padding: 0 1; scrollbar-size: 0 0; }
    """

    def __init__(self, palette: Palette) -> None:
        super().__init__()
        self._palette = palette

    def compose(self) -> ComposeResult:
        """Put the text between a heading and the keys."""
        yield Lines(id="help-title")
        with VerticalScroll():
            yield Static(self._text(), markup=False)
        yield Lines(id="help-footer")

    def on_mount(self) -> None:
        """Draw the lines around the text."""
        self._draw()

    def on_resize(self) -> None:
        """Use the new width."""
        self._draw()

    def action_close(self) -> None:
        """Go back."""
        self.dismiss()

    def action_quit(self) -> None:
        """Leave the program."""
        self.app.exit()

    def action_scroll(self, lines: int) -> None:
        """Move the text."""
        self.query_one(VerticalScroll).scroll_relative(y=lines, animate=False)

    def _draw(self) -> None:
        width = self.app.size.width
        title = Segment(" How to use tui-gpt", self._palette.bar_key)
        self.query_one("#help-title", Lines).show([padded([title], width, self._palette.bar)])
        self.query_one("#help-footer", Lines).show([footer(_KEYS, width, self._palette)])

    def _text(self) -> Text:
        glyphs = self._palette.profile.glyphs
        text = Text()
        for heading, actions in help_groups():
            text.append(f"{heading}\n", self._palette.strong)
            for keys, sentence in help_lines(actions):
                text.append(f"{spoken(keys, glyphs):>12}", self._palette.accent)
                text.append(f"  {sentence}\n", self._palette.plain)
            text.append("\n")
        for heading, lines in how_to_read(self._palette):
            text.append(f"{heading}\n", self._palette.strong)
            for line in lines:
                text.append_text(line)
                text.append("\n")
            text.append("\n")
        return text
