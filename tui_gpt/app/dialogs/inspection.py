"""How the model's files were read: the loader report, on a screen of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType

from tui_gpt.app.dialogs.page import Page
from tui_gpt.app.work.jobs import Work
from tui_gpt.app.work.messages import Checking, Inspected
from tui_gpt.errors import TuiGPTError
from tui_gpt.records.loader_report import LoaderReport
from tui_gpt.views.commands.loader_report import ReportStyles, report_lines
from tui_gpt.views.palette import Palette
from tui_gpt.views.stage_text import wrapped
from tui_gpt.views.text import sanitize, transliterate

if TYPE_CHECKING:
    from tui_gpt.session import Session


class Inspection(Page):
    """Shows a report once it is there, and until then how far the reading is."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("i", "close", show=False, priority=True),
    ]
    TITLE = "How the model's files were read"
    KEYS = (("↑↓", "scroll"), ("i", "close"), ("q", "quit"))

    def __init__(self, session: Session, work: Work, palette: Palette) -> None:
        """Ask for a report.

        Args:
            session: Of the model.
            work: Reads its files in the background.
            palette: For this terminal.
        """
        super().__init__(palette)
        self._session = session
        self._work = work
        self._answer: LoaderReport | TuiGPTError | str = "reading the files…"

    def on_mount(self) -> None:
        """Start to read."""
        self._work.inspect(self._session, self.post_message)

    def on_checking(self, message: Checking) -> None:
        """Say how far the reading is."""
        message.stop()
        self._answer = f"checking {message.done} of {message.count} tensors…"
        self.draw()

    def on_inspected(self, message: Inspected) -> None:
        """Show the report, or why there is none."""
        message.stop()
        self._answer = message.answer
        self.draw()

    def action_close(self) -> None:
        """Stop reading and go back."""
        self._work.cancel_inspection()
        self.dismiss()

    def text(self, width: int) -> Text:
        """Write the report, or what is said in its place."""
        palette = self._palette
        glyphs = palette.profile.glyphs
        if isinstance(self._answer, LoaderReport):
            styles = ReportStyles(palette.strong, palette.faint, palette.problem)
            lines = list(report_lines(self._answer, max(40, width), glyphs, styles))
        else:
            style = palette.problem if isinstance(self._answer, TuiGPTError) else palette.plain
            said = transliterate(sanitize(str(self._answer)), glyphs)
            lines = [Text(line, style) for line in wrapped(said, width)]
        return Text("\n").join(lines)
