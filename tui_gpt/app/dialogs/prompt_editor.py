"""The prompt field: every line of a paste, wide characters, no blinking.

Enter runs the prompt. An Enter with more keys right behind it, or behind such lines, is part
of a paste whose brackets the terminal did not send: it is kept as a line end and runs nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from time import monotonic
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.timer import Timer
from textual.widgets import TextArea

from tui_gpt.app.dialogs.dialog import Dialog
from tui_gpt.app.lines import Lines
from tui_gpt.views.palette import Palette

_BURST = 0.02
"""Seconds between two keys below which no person typed them."""

_SILENCE = 0.25
"""Seconds after which a burst is over. While torch is imported, what a person types arrives
in one burst too, so the Enter at the end of a single line must not be lost."""

_NOT_FOR_THE_FIELD = ("tab", "shift+tab")
"""The only keys that leave the field; the screen's own have priority and never come here."""

_LINE_END = re.compile("\r\n?")


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
        self._burst_has_lines = False

    async def _on_key(self, event: events.Key) -> None:
        if event.key in _NOT_FOR_THE_FIELD:
            return
        event.stop()
        event.prevent_default()
        now = monotonic()
        burst = now - self._last_key < _BURST
        self._last_key = now
        if not burst:
            self._burst_has_lines = False
        if self._enter is not None:
            # Something followed the Enter at once: it was the end of a pasted line.
            self._enter.stop()
            self._enter = None
            self._type("\n")
            self._burst_has_lines = True
        if event.key != "enter":
            await self._edit(event)
        elif self._burst_has_lines:
            self._type("\n")
        else:
            self._enter = self.set_timer(_SILENCE if burst else _BURST, self._submit)

    async def _edit(self, event: events.Key) -> None:
        """Do what a key does to the text, now.

        Textual runs a widget's bindings only after the event has travelled up to the app, so
        that in a burst a Backspace would come after the letters typed behind it.
        """
        bindings = self._bindings.key_to_bindings.get(event.key)
        if bindings:
            await self.app.run_action(bindings[0].action, self)
        elif event.is_printable and event.character is not None:
            self._type(event.character)

    def _submit(self) -> None:
        self._enter = None
        self._run_prompt()

    async def _on_paste(self, event: events.Paste) -> None:
        # Terminals send Return for the line ends of a paste.
        event.prevent_default()
        event.stop()
        self._type(_LINE_END.sub("\n", event.text))

    def _type(self, text: str) -> None:
        """Put text in the place of the selection, the cursor behind it."""
        start, end = sorted(self.selection)
        self.replace(text, start, end, maintain_selection_offset=False)

    def action_new_line(self) -> None:
        """Start a new line at the cursor."""
        self._type("\n")


class PromptEditor(Dialog):
    """The field over the foot of the screen."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+r", "run_end", show=False, priority=True),
    ]
    DEFAULT_CSS = """
    PromptEditor PromptField {
        height: auto; min-height: 2; max-height: 6; border: none; padding: 0 1;
    }
    """
    QUESTION = "Your prompt"
    KEYS = (
        ("Enter", "run"),
        ("Ctrl+O", "new line"),
        ("Ctrl+R", "run its end if too long"),
        ("Ctrl+G", "cancel"),
        ("Ctrl+U", "clear line"),
    )

    def __init__(
        self,
        text: str,
        palette: Palette,
        submit: Callable[[str, bool], None],
        *,
        highest_id: int | None = None,
    ) -> None:
        """Open the field.

        Args:
            text: To start from, selected as a whole so that typing replaces it.
            palette: For this terminal.
            submit: Takes the text, and whether to keep only its end where it is too long.
            highest_id: Of a model without a tokenizer, whose prompt is ids.
        """
        super().__init__(palette)
        if highest_id is not None:
            self.question = f"Token ids, 0 to {highest_id}, with commas between"
        self._text = text
        self._submit = submit

    def compose(self) -> ComposeResult:
        """Lay the field out."""
        with Vertical():
            yield Lines(id="question")
            yield PromptField(self._text, lambda: self._run(crop=False))
            yield Lines(id="refusal")
            yield Lines(id="keys")

    def on_mount(self) -> None:
        """Select the old prompt."""
        field = self.query_one(PromptField)
        field.select_all()
        self.set_focus(field)

    def action_run_end(self) -> None:
        """Run the last tokens of a prompt that is too long."""
        self._run(crop=True)

    def _run(self, *, crop: bool) -> None:
        self._submit(self.query_one(PromptField).text, crop)
