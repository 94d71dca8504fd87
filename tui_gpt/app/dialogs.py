"""Two dialogs: which model to open, and what the keys and the picture mean."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.segment import Segment
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from tui_gpt.app.actions import help_lines
from tui_gpt.app.lines import Lines
from tui_gpt.records.trace import ModelFacts
from tui_gpt.views.bars import footer
from tui_gpt.views.legend_text import how_to_read
from tui_gpt.views.model_text import describe
from tui_gpt.views.palette import Palette
from tui_gpt.views.rows import padded
from tui_gpt.views.stage_text import wrapped
from tui_gpt.views.text import harmless, spoken

_CHOOSER_HINTS = (("↑↓", "choose"), ("Enter", "open"), ("Tab", "type a path"), ("Ctrl+G", "cancel"))
_HELP_HINTS = (("↑↓", "scroll"), ("?", "close"), ("q", "quit"))


class ModelChooser(ModalScreen[None]):
    """The models that ship, and a field for the path of another."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,ctrl+g", "cancel", "cancel", show=False),
    ]
    DEFAULT_CSS = """
    ModelChooser { align: left bottom; background: transparent; }
    ModelChooser > Vertical { height: auto; max-height: 100%; }
    ModelChooser Lines { height: 1; }
    ModelChooser #refusal { height: auto; display: none; }
    ModelChooser OptionList { height: auto; max-height: 8; border: none; padding: 0; }
    ModelChooser Input { height: 1; border: none; padding: 0 1; }
    """

    def __init__(
        self,
        models: Sequence[ModelFacts],
        current: str,
        palette: Palette,
        choose: Callable[[str], None],
    ) -> None:
        """Open the list.

        Args:
            models: What can be chosen without a path.
            current: The name of the model on the screen.
            palette: For this terminal.
            choose: Takes a name or path.
        """
        super().__init__()
        self._models = models
        self._current = current
        self._palette = palette
        self._choose = choose

    def compose(self) -> ComposeResult:
        """Lay the list out, the field and the keys below."""
        glyphs = self._palette.profile.glyphs
        with Vertical():
            yield Lines(id="question")
            yield OptionList(
                *(
                    Option(Text(f" {spoken(describe(model), glyphs)}", no_wrap=True))
                    for model in self._models
                ),
                compact=True,
            )
            path = Input(placeholder="or the path of a folder written by tui-gpt train")
            path.cursor_blink = False
            yield path
            yield Lines(id="refusal")
            yield Lines(id="chooser-footer")

    def on_mount(self) -> None:
        """Start at the model on the screen."""
        names = [model.name for model in self._models]
        listed = self.query_one(OptionList)
        listed.highlighted = names.index(self._current) if self._current in names else 0
        listed.focus()
        self._draw()

    def on_resize(self) -> None:
        """Use the new width."""
        self._draw()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Open the chosen model."""
        self._choose(self._models[event.option_index].name)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Open the model at the path."""
        self._choose(event.value)

    def refuse(self, reason: str) -> None:
        """Say why the model cannot be opened."""
        show_refusal(self.query_one("#refusal", Lines), reason, self.app.size.width, self._palette)

    def action_cancel(self) -> None:
        """Close the list and change nothing."""
        self.dismiss()

    def _draw(self) -> None:
        width = self.app.size.width
        question = Segment(" Open a model with this prompt", self._palette.bar_key)
        self.query_one("#question", Lines).show([padded([question], width, self._palette.bar)])
        self.query_one("#chooser-footer", Lines).show(
            [footer(_CHOOSER_HINTS, width, self._palette)]
        )


class Help(ModalScreen[None]):
    """All keys, and how to read what is on the screen."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark,escape,enter,space", "close", "close", show=False),
        Binding("q", "quit", "quit", show=False),
        Binding("up,k", "scroll(-1)", show=False),
        Binding("down,j", "scroll(1)", show=False),
        Binding("pageup", "scroll(-10)", show=False),
        Binding("pagedown", "scroll(10)", show=False),
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
        self.query_one("#help-footer", Lines).show([footer(_HELP_HINTS, width, self._palette)])

    def _text(self) -> Text:
        glyphs = self._palette.profile.glyphs
        text = Text()
        text.append("Keys\n", self._palette.strong)
        for keys, sentence in help_lines():
            text.append(f"{spoken(keys, glyphs):>12}", self._palette.accent)
            text.append(f"  {sentence}\n", self._palette.plain)
        for heading, lines in how_to_read(self._palette):
            text.append(f"\n{heading}\n", self._palette.strong)
            for line in lines:
                text.append_text(line)
                text.append("\n")
        return text


def show_refusal(widget: Lines, reason: str, width: int, palette: Palette) -> None:
    """Write a refusal into the lines that a dialog keeps for it."""
    text = spoken(harmless(reason), palette.profile.glyphs)
    lines = wrapped(text, width - 2)
    widget.display = True
    widget.styles.height = len(lines)
    widget.show(
        [padded([Segment(f" {line}", palette.problem)], width, palette.plain) for line in lines]
    )
