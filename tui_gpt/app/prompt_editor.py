"""The prompt field: every line of a paste, wide characters, no blinking.

Enter runs the prompt. An Enter that comes in a burst of other keys is part of a paste whose
brackets the terminal did not send, so it is kept as a line end and runs nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from time import monotonic
from typing import ClassVar

from rich.segment import Segment
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.timer import Timer
from textual.widgets import TextArea

from tui_gpt.app.dialogs import show_refusal
from tui_gpt.app.lines import Lines
from tui_gpt.views.bars import footer
from tui_gpt.views.palette import Palette
from tui_gpt.views.rows import padded

_BURST = 0.02
"""Seconds between two keys below which no person typed them."""

_LINE_END = re.compile("\r\n?")

_HINTS = (
    ("Enter", "run"),
    ("Ctrl+O", "new line"),
    ("Ctrl+R", "run its end if too long"),
    ("Ctrl+G", "cancel"),
    ("Ctrl+U", "clear line"),
)


class PromptField(TextArea):
    """A text area in which Enter means run."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+o", "new_line", "new line", show=False),
    ]

    def __init__(self, text: str, run: Callable[[], None]) -> None:
        super().__init__(text, soft_wrap=True, show_line_numbers=False, compact=True)
        self.cursor_blink = False
        self.highlight_cursor_line = False
        self._run_prompt = run
        self._last_key = 0.0
        self._enter: Timer | None = None

    async def _on_key(self, event: events.Key) -> None:
        now = monotonic()
        burst = now - self._last_key < _BURST
        self._last_key = now
        if self._enter is not None:
            # Something followed the Enter at once: it was the end of a pasted line.
            self._enter.stop()
            self._enter = None
            self.insert("\n")
        if event.key != "enter":
            await super()._on_key(event)
            return
        event.stop()
        event.prevent_default()
        if burst:
            self.insert("\n")
        else:
            self._enter = self.set_timer(_BURST, self._submit)

    def _submit(self) -> None:
        self._enter = None
        self._run_prompt()

    async def _on_paste(self, event: events.Paste) -> None:
        # Terminals send Return for the line ends of a paste.
        event.prevent_default()
        event.stop()
        self.replace(_LINE_END.sub("\n", event.text), *self.selection)

    def action_new_line(self) -> None:
        """Start a new line at the cursor."""
        self.insert("\n")


class PromptEditor(ModalScreen[None]):
    """The field over the foot of the screen, with room for a refusal."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,ctrl+g", "cancel", "cancel", show=False),
        Binding("ctrl+r", "run_end", "run the end", show=False),
    ]
    DEFAULT_CSS = """
    PromptEditor { align: left bottom; background: transparent; }
    PromptEditor > Vertical { height: auto; max-height: 100%; }
    PromptEditor Lines { height: 1; }
    PromptEditor #refusal { height: auto; display: none; }
    PromptEditor PromptField { height: auto; min-height: 2; max-height: 6; border: none; padding: 0 1; }
    """

    def __init__(
        self, text: str, palette: Palette, submit: Callable[[str, bool], None]
    ) -> None:
        """Open the field.

        Args:
            text: To start from, selected as a whole so that typing replaces it.
            palette: For this terminal.
            submit: Takes the text, and whether to keep only its end where it is too long.
        """
        super().__init__()
        self._text = text
        self._palette = palette
        self._submit = submit

    def compose(self) -> ComposeResult:
        """Lay the field out, its keys below."""
        with Vertical():
            yield Lines(id="question")
            yield PromptField(self._text, self._run_prompt)
            yield Lines(id="refusal")
            yield Lines(id="editor-footer")

    def on_mount(self) -> None:
        """Select the old prompt."""
        field = self.query_one(PromptField)
        field.select_all()
        field.focus()
        self._draw()

    def on_resize(self) -> None:
        """Use the new width."""
        self._draw()

    def refuse(self, reason: str) -> None:
        """Say why the text cannot be run; the text stays for editing."""
        show_refusal(self.query_one("#refusal", Lines), reason, self.app.size.width, self._palette)

    def action_cancel(self) -> None:
        """Close the field and change nothing."""
        self.dismiss()

    def action_run_end(self) -> None:
        """Run the last tokens of a prompt that is too long."""
        self._submit(self.query_one(PromptField).text, True)

    def _run_prompt(self) -> None:
        self._submit(self.query_one(PromptField).text, False)

    def _draw(self) -> None:
        width = self.app.size.width
        question = Segment(" Your prompt", self._palette.bar_key)
        self.query_one("#question", Lines).show([padded([question], width, self._palette.bar)])
        self.query_one("#editor-footer", Lines).show([footer(_HINTS, width, self._palette)])
