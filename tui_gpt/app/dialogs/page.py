"""A whole screen of text to scroll through, between a heading and its keys."""

from __future__ import annotations

from typing import ClassVar

from rich.segment import Segment
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from tui_gpt.app.lines import Lines
from tui_gpt.views.bars import footer
from tui_gpt.views.palette import Palette
from tui_gpt.views.rows import padded


class Page(ModalScreen[None]):
    """Text that covers the main screen; a subclass says which, for any width."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,ctrl+g,enter,space", "close", show=False, priority=True),
        Binding("q", "quit", show=False, priority=True),
        Binding("up,k", "scroll(-1)", show=False, priority=True),
        Binding("down,j", "scroll(1)", show=False, priority=True),
        Binding("pageup", "scroll(-10)", show=False, priority=True),
        Binding("pagedown", "scroll(10)", show=False, priority=True),
        Binding("home,g", "scroll(-100000)", show=False, priority=True),
        Binding("end,G", "scroll(100000)", show=False, priority=True),
    ]
    DEFAULT_CSS = """
    Page { background: $background; }
    Page Lines { height: 1; dock: top; }
    Page #page-footer { dock: bottom; }
    Page VerticalScroll { padding: 0 1; scrollbar-size: 0 0; }
    """
    TITLE: ClassVar[str]
    KEYS: ClassVar[tuple[tuple[str, str], ...]]
    """(key, what it does), as in the footer."""

    def __init__(self, palette: Palette) -> None:
        super().__init__()
        self._palette = palette

    def compose(self) -> ComposeResult:
        """Put the text between the heading and the keys."""
        yield Lines(id="page-title")
        with VerticalScroll():
            yield Static("", id="page-text", markup=False)
        yield Lines(id="page-footer")

    def on_mount(self) -> None:
        """Draw the page."""
        self.draw()

    def on_resize(self) -> None:
        """Use the new width."""
        self.draw()

    def text(self, width: int) -> Text:
        """Give the text, in lines of at most `width` cells."""
        raise NotImplementedError  # a page without a text is none

    def draw(self) -> None:
        """Draw the page in the screen's width."""
        width, palette = self.app.size.width, self._palette
        title = Segment(f" {self.TITLE}", palette.bar_key)
        self.query_one("#page-title", Lines).show([padded([title], width, palette.bar)])
        self.query_one("#page-footer", Lines).show([footer(self.KEYS, width, palette)])
        self.query_one("#page-text", Static).update(self.text(max(1, width - 2)))

    def action_close(self) -> None:
        """Go back."""
        self.dismiss()

    def action_quit(self) -> None:
        """Leave the program."""
        self.app.exit()

    def action_scroll(self, lines: int) -> None:
        """Move the text."""
        self.query_one(VerticalScroll).scroll_relative(y=lines, animate=False)
