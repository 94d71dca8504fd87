"""What the dialogs at the foot of the screen share: a question, room for a refusal, keys."""

from __future__ import annotations

from typing import ClassVar

from rich.segment import Segment
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen

from tui_gpt.app.lines import Lines
from tui_gpt.errors import PromptTooLong, TuiGPTError
from tui_gpt.views.bars import footer
from tui_gpt.views.palette import Palette
from tui_gpt.views.rows import padded
from tui_gpt.views.stage_text import wrapped
from tui_gpt.views.text import sanitize, transliterate


class Dialog(ModalScreen[None]):
    """Asks for something over the foot of the screen; what is behind stays in sight.

    A subclass composes a `Vertical` of the lines `question`, its own widgets, and the lines
    `refusal` and `keys`.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,ctrl+g", "cancel", show=False, priority=True),
    ]
    DEFAULT_CSS = """
    Dialog { align: left bottom; background: transparent; }
    Dialog > Vertical { height: auto; max-height: 100%; }
    Dialog Lines { height: 1; }
    Dialog #refusal { display: none; }
    """
    QUESTION: ClassVar[str]
    KEYS: ClassVar[tuple[tuple[str, str], ...]]
    """(key, what it does), as in the footer."""

    def __init__(self, palette: Palette) -> None:
        super().__init__()
        self.question = self.QUESTION
        self._palette = palette
        self._refusal = ""

    def on_resize(self) -> None:
        """Draw the lines in the new width."""
        width, palette = self.app.size.width, self._palette
        question = Segment(f" {self.question}", palette.bar_key)
        self.query_one("#question", Lines).show([padded([question], width, palette.bar)])
        self.query_one("#keys", Lines).show([footer(self.KEYS, width, palette)])
        if self._refusal:
            self.refuse(self._refusal)

    def refuse(self, reason: str) -> None:
        """Say why the answer cannot be taken; it stays for editing."""
        self._refusal = reason
        width, palette = self.app.size.width, self._palette
        text = transliterate(sanitize(reason), palette.profile.glyphs)
        lines = wrapped(text, max(1, width - 2))
        widget = self.query_one("#refusal", Lines)
        widget.display = True
        widget.styles.height = len(lines)
        widget.show(
            [padded([Segment(f" {line}", palette.problem)], width, palette.plain) for line in lines]
        )

    def action_cancel(self) -> None:
        """Close and change nothing."""
        self.dismiss()


def with_keys(error: TuiGPTError) -> str:
    """Say a refusal where a key is at hand, and no option of the command line."""
    if isinstance(error, PromptTooLong):
        return (
            f"the prompt is {error.n_tokens} tokens but this model reads {error.block_size}; cut "
            f"at least {error.n_tokens - error.block_size}, or press Ctrl+R to run its last "
            f"{error.block_size}"
        )
    return str(error)
