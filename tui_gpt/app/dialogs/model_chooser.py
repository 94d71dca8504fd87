"""Which model to open: those that ship, or the path of another."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Input, OptionList
from textual.widgets.option_list import Option

from tui_gpt.app.dialogs.dialog import Dialog
from tui_gpt.app.lines import Lines
from tui_gpt.records.trace import ModelFacts
from tui_gpt.views.model_text import describe
from tui_gpt.views.palette import Palette
from tui_gpt.views.text import transliterate


class ModelChooser(Dialog):
    """The list of models, and a field for a path."""

    DEFAULT_CSS = """
    ModelChooser OptionList { height: auto; max-height: 8; border: none; padding: 0; }
    ModelChooser Input { padding: 0 1; }
    """
    QUESTION = "Open a model with this prompt"
    KEYS = (("↑↓", "choose"), ("Enter", "open"), ("Tab", "type a path"), ("Ctrl+G", "cancel"))

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
        super().__init__(palette)
        self._models = models
        self._current = current
        self._choose = choose

    def compose(self) -> ComposeResult:
        """Lay the list out, the field below."""
        glyphs = self._palette.profile.glyphs
        options = [
            Option(Text(f" {transliterate(describe(model), glyphs)}")) for model in self._models
        ]
        with Vertical():
            yield Lines(id="question")
            yield OptionList(*options, compact=True)
            hint = "or the path of a model, or its name in the Hugging Face cache"
            path = Input(placeholder=hint, compact=True)
            path.cursor_blink = False
            yield path
            yield Lines(id="refusal")
            yield Lines(id="keys")

    def on_mount(self) -> None:
        """Start at the model on the screen."""
        names = [model.name for model in self._models]
        listed = self.query_one(OptionList)
        listed.highlighted = names.index(self._current) if self._current in names else 0
        self.set_focus(listed)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Open the chosen model."""
        self._choose(self._models[event.option_index].name)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Open the model at the path."""
        if event.value.strip():
            self._choose(event.value)
        else:
            self.refuse("type the path of a model folder, or choose one above")
