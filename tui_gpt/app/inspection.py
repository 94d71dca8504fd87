"""How the model's files were read: the loader report, on a screen of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rich.segment import Segment
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from tui_gpt.app.lines import Lines
from tui_gpt.app.messages import Checking, Inspected
from tui_gpt.app.work import Work
from tui_gpt.errors import TuiGPTError
from tui_gpt.records.loader_report import LoaderReport
from tui_gpt.views.bars import footer
from tui_gpt.views.loader_report import ReportStyles, report_lines
from tui_gpt.views.palette import Palette
from tui_gpt.views.rows import padded
from tui_gpt.views.stage_text import wrapped
from tui_gpt.views.text import harmless, spoken

if TYPE_CHECKING:
    from tui_gpt.session import Session

_KEYS = (("↑↓", "scroll"), ("i", "close"), ("q", "quit"))
_MARGIN = 2


class Inspection(ModalScreen[None]):
    """Shows a report once it is there, and until then how far the reading is."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("i,escape,ctrl+g,enter,space", "close", show=False, priority=True),
        Binding("q", "quit", show=False, priority=True),
        Binding("up,k", "scroll(-1)", show=False, priority=True),
        Binding("down,j", "scroll(1)", show=False, priority=True),
        Binding("pageup", "scroll(-10)", show=False, priority=True),
        Binding("pagedown", "scroll(10)", show=False, priority=True),
        Binding("home,g", "scroll(-100000)", show=False, priority=True),
        Binding("end,G", "scroll(100000)", show=False, priority=True),
    ]
    DEFAULT_CSS = """
    Inspection { background: $background; }
    Inspection Lines { height: 1; dock: top; }
    Inspection #inspection-footer { dock: bottom; }
    Inspection VerticalScroll { padding: 0 1; scrollbar-size: 0 0; }
    """

    def __init__(self, session: Session, work: Work, palette: Palette) -> None:
        """Ask for a report.

        Args:
            session: Of the model.
            work: Reads its files in the background.
            palette: For this terminal.
        """
        super().__init__()
        self._session = session
        self._work = work
        self._palette = palette
        self._answer: LoaderReport | TuiGPTError | str = "reading the files…"

    def compose(self) -> ComposeResult:
        """Put the report between a heading and the keys."""
        yield Lines(id="inspection-title")
        with VerticalScroll():
            yield Static("", id="inspection-text", markup=False)
        yield Lines(id="inspection-footer")

    def on_mount(self) -> None:
        """Start to read."""
        self._draw()
        self._work.inspect(self._session, self.post_message)

    def on_resize(self) -> None:
        """Use the new width."""
        self._draw()

    def on_checking(self, message: Checking) -> None:
        """Say how far the reading is."""
        message.stop()
        self._answer = f"checking {message.done} of {message.count} tensors…"
        self._draw()

    def on_inspected(self, message: Inspected) -> None:
        """Show the report, or why there is none."""
        message.stop()
        self._answer = message.answer
        self._draw()

    def action_close(self) -> None:
        """Go back."""
        self._work.cancel_inspection()
        self.dismiss()

    def action_quit(self) -> None:
        """Leave the program."""
        self.app.exit()

    def action_scroll(self, lines: int) -> None:
        """Move the text."""
        self.query_one(VerticalScroll).scroll_relative(y=lines, animate=False)

    def _draw(self) -> None:
        width, palette = self.app.size.width, self._palette
        title = Segment(" How the model's files were read", palette.bar_key)
        self.query_one("#inspection-title", Lines).show([padded([title], width, palette.bar)])
        self.query_one("#inspection-footer", Lines).show([footer(_KEYS, width, palette)])
        glyphs = palette.profile.glyphs
        room = max(1, width - _MARGIN)
        if isinstance(self._answer, LoaderReport):
            styles = ReportStyles(palette.strong, palette.faint, palette.problem)
            lines = list(report_lines(self._answer, max(40, room), glyphs, styles))
        else:
            style = palette.problem if isinstance(self._answer, TuiGPTError) else palette.plain
            said = spoken(harmless(str(self._answer)), glyphs)
            lines = [Text(line, style) for line in wrapped(said, room)]
        self.query_one("#inspection-text", Static).update(Text("\n").join(lines))
