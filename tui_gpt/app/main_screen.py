"""The main screen: title, tabs, stage list, the chosen stage, one cell read aloud, keys.

Keys change a `Place`; a changed place asks the background for values where it needs them;
what comes back is drawn. The picture never shows numbers of another stage than its heading.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.screen import Screen
from textual.timer import Timer

from tui_gpt.app.actions import ACTIONS, Zone
from tui_gpt.app.dialog import Dialog
from tui_gpt.app.drawing import Drawing, Shown
from tui_gpt.app.lines import Lines
from tui_gpt.app.messages import (
    ModelLoaded,
    Refused,
    RunPrepared,
    TensorMissing,
    TensorReady,
    TraceFailed,
    TraceReady,
)
from tui_gpt.app.pipeline import Place
from tui_gpt.app.work import Work
from tui_gpt.records.stages import find_stage
from tui_gpt.records.tokens import Token
from tui_gpt.records.trace import ModelFacts, Run, Trace
from tui_gpt.views.palette import palette
from tui_gpt.views.profile import TerminalProfile

if TYPE_CHECKING:
    from tui_gpt.records.tensors import StageTensor
    from tui_gpt.session import Session

PANES = (("1", "Pipeline"),)

_PATIENCE = 0.15
"""Seconds for which the last picture may stand while the next one is read."""


@dataclass(frozen=True, slots=True)
class Opening:
    """What the explorer shows first."""

    session: Session | None
    """None where a recording's model is not at hand."""
    run: Run
    recording: Path | None
    """Holds the run's numbers, if there is one."""
    stage_id: str
    models: Callable[[], tuple[ModelFacts, ...]]
    """Lists what can be chosen without a path, when it is asked for."""
    crop: bool = False
    """Prompts that are too long keep their end."""


class MainScreen(Screen[None]):
    """Pane 1 and the lines around it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *(
            Binding(",".join(action.keys), action.id, show=False, priority=True)
            for action in ACTIONS
            if action.zone is None
        ),
        # The arrow keys mean what the zone says; `move` asks it.
        Binding("up,k", "move(-1, 0)", show=False, priority=True),
        Binding("down,j", "move(1, 0)", show=False, priority=True),
        Binding("left", "move(0, -1)", show=False, priority=True),
        Binding("right", "move(0, 1)", show=False, priority=True),
    ]
    DEFAULT_CSS = """
    MainScreen { layout: vertical; }
    MainScreen > Lines { height: 1; }
    MainScreen > #too-small { display: none; height: 1fr; }
    MainScreen > #notice { display: none; }
    MainScreen > #body { height: 1fr; }
    #body > #stages { width: 36; height: 1fr; }
    #body > #stage { width: 1fr; height: 1fr; }
    """

    def __init__(self, opening: Opening, profile: TerminalProfile, n_threads: int) -> None:
        super().__init__()
        run = opening.run
        self._session = opening.session
        self._recording = opening.recording
        self._crop = opening.crop
        self._models = opening.models
        self._palette = palette(profile)
        self._work = Work(self.post_message, n_threads)
        index = run.stages.index(find_stage(run.stages, opening.stage_id))
        self.place = Place(run, index)
        self._trace: Trace | None = None
        self._recorded = False
        self._loaded: Session | None = None
        self._loading = False
        self._waiting_for: Run | None = None
        self._shown: Shown | None = None
        self._problem = ""
        self._drawing = Drawing(self._palette, lambda name: self.query_one(f"#{name}", Lines))
        self._patience: Timer | None = None

    @property
    def is_settled(self) -> bool:
        """True when the chosen stage is drawn with its values and nothing is on its way."""
        loaded = self._session is None or self._loaded is self._session
        return self._shown is not None and self._waiting_for is None and loaded

    def compose(self) -> ComposeResult:
        """Lay the lines out."""
        yield Lines(id="title")
        yield Lines(id="tabs")
        yield Lines(id="notice")
        with Horizontal(id="body"):
            yield Lines(id="stages")
            yield Lines(id="stage")
        yield Lines(id="reading")
        yield Lines(id="footer")
        yield Lines(id="too-small")

    # What happens -------------------------------------------------------------------------

    def on_mount(self) -> None:
        """Draw the first frame, and fetch the numbers once it is painted."""
        self._fit()
        self.call_after_refresh(self._begin)

    def on_resize(self) -> None:
        """Lay everything out for the new size."""
        self._fit()

    def on_run_prepared(self, message: RunPrepared) -> None:
        """Take a prompt or model that was accepted, and compute it."""
        self._close_dialog()
        self._problem = ""
        self._waiting_for = message.run
        self._work.start(message.session, message.run)
        self._draw_status()

    def on_refused(self, message: Refused) -> None:
        """Say why, where the person is typing; nothing else changes."""
        dialog = self.app.screen
        if isinstance(dialog, Dialog):
            dialog.refuse(str(message.error))
        else:
            self._complain(str(message.error))

    def on_trace_ready(self, message: TraceReady) -> None:
        """Show another run, at the same stage, head and cell where they exist."""
        first = self._trace is None
        self._waiting_for = None
        self._trace = message.trace
        self._recorded = message.recorded
        if not message.recorded:
            self._loaded = message.session
            self._loading = False
        self._session = message.session
        self._shown = None
        self.place = self.place.on(message.trace.run)
        self._fit()
        self._read()
        if message.recorded and not first:
            self._preload()

    def on_trace_failed(self, message: TraceFailed) -> None:
        """Say why there are no new numbers; the last ones stay."""
        self._waiting_for = None
        self._complain(str(message.error))

    def on_tensor_ready(self, message: TensorReady) -> None:
        """Draw the values, if they are still those that are wanted."""
        wanted = message.tensor.stage.id == self.place.stage.id
        if message.trace is not self._trace or not wanted:
            return
        first = self.place.row is None
        self._shown = Shown(message.tensor, message.found)
        if first:
            self.place = _at_largest(self.place, message.tensor)
        self._draw_stage()
        if first and self._recorded:
            self.call_after_refresh(self._preload)

    def on_tensor_missing(self, message: TensorMissing) -> None:
        """Show the hole and its reason."""
        if message.trace is self._trace and message.stage_id == self.place.stage.id:
            self._shown = None
            self._drawing.heading(self.place, f"missing: {message.error}")

    def on_model_loaded(self, message: ModelLoaded) -> None:
        """Take the word about loading away."""
        self._loaded = message.session
        self._loading = False
        self._draw_status()

    # What keys do -------------------------------------------------------------------------

    def action_move(self, down: int, right: int) -> None:
        """Move the chosen stage or the cell."""
        if self.place.zone == "cells":
            row, column = self.place.cell
            self._go(self.place.at_cell(row + down, column + right))
        elif down:
            self._go(self.place.at_stage(self.place.index + down))

    def action_switch_zone(self) -> None:
        """Give the arrow keys to the other side."""
        zone: Zone = "stages" if self.place.zone == "cells" else "cells"
        self._go(replace(self.place, zone=zone))

    def action_previous_stage(self) -> None:
        """Choose the stage above."""
        self._go(self.place.at_stage(self.place.index - 1))

    def action_next_stage(self) -> None:
        """Choose the stage below."""
        self._go(self.place.at_stage(self.place.index + 1))

    def action_previous_head(self) -> None:
        """Show the previous head."""
        self._go(self.place.by_heads(-1))

    def action_next_head(self) -> None:
        """Show the next head."""
        self._go(self.place.by_heads(1))

    def action_previous_block(self) -> None:
        """Go one block back."""
        self._go(self.place.by_blocks(-1))

    def action_next_block(self) -> None:
        """Go one block on."""
        self._go(self.place.by_blocks(1))

    def action_first(self) -> None:
        """Go to the first stage, or to the first cell of the row."""
        if self.place.zone == "cells":
            self._go(self.place.at_cell(self.place.cell[0], 0))
        else:
            self._go(self.place.at_stage(0))

    def action_last(self) -> None:
        """Go to the last stage, or to the last cell of the row."""
        if self.place.zone == "cells":
            self._go(self.place.at_cell(self.place.cell[0], self.place.matrix_shape[1] - 1))
        else:
            self._go(self.place.at_stage(len(self.place.run.stages) - 1))

    def action_page_up(self) -> None:
        """Go up by a screenful."""
        self._page_by(-1)

    def action_page_down(self) -> None:
        """Go down by a screenful."""
        self._page_by(1)

    def action_dense(self) -> None:
        """Draw two rows a line, or one again."""
        self._go(replace(self.place, dense=not self.place.dense))

    async def action_prompt(self) -> None:
        """Edit the prompt."""
        from tui_gpt.app.prompt_editor import PromptEditor  # not for the first frame

        if self._session is None:
            self._complain("this recording's model is not here, so no other prompt can be run")
            return
        # Awaited, so that what was typed ahead reaches the field and not this screen's keys.
        await self.app.push_screen(PromptEditor(self.place.run.prompt, self._palette, self._submit))

    async def action_model(self) -> None:
        """Choose another model."""
        from tui_gpt.app.model_chooser import ModelChooser  # not for the first frame

        prompt = self.place.run.prompt
        await self.app.push_screen(
            ModelChooser(
                self._models(),
                self.place.run.model.name,
                self._palette,
                lambda name: self._work.open_model(name, prompt, crop=self._crop),
            )
        )

    async def action_help(self) -> None:
        """Show the keys and how to read the screen."""
        from tui_gpt.app.help import Help  # not for the first frame

        await self.app.push_screen(Help(self._palette))

    async def action_quit(self) -> None:
        """Leave."""
        self.app.exit()

    def action_redraw(self) -> None:
        """Draw everything again."""
        self.app.action_redraw()  # type: ignore[attr-defined]  # the explorer's own app

    # What that means ----------------------------------------------------------------------

    def _begin(self) -> None:
        """Get the first numbers: from the recording, or from the model."""
        if self._recording is not None:
            self._work.open_recording(self._session, self._recording, self.place.run)
        elif self._session is not None:
            self._waiting_for = self.place.run
            self._work.start(self._session, self.place.run)
        self._draw_status()

    def _preload(self) -> None:
        """Load torch and the weights before they are asked for."""
        if self._waiting_for is None and self._session is not self._loaded:
            assert self._session is not None
            self._loading = True
            self._work.load(self._session)
            self._draw_status()

    def _submit(self, text: str, crop: bool) -> None:
        assert self._session is not None
        self._work.prepare(self._session, text, crop=crop or self._crop)

    def _close_dialog(self) -> None:
        if isinstance(self.app.screen, Dialog):
            self.app.pop_screen()

    def _page_by(self, direction: int) -> None:
        if self.place.zone == "cells":
            row, column = self.place.cell
            self._go(self.place.at_cell(row + direction * self._drawing.cell_page, column))
        else:
            lines = self._drawing.list_page
            self._go(self.place.at_stage(self.place.index + direction * lines))

    def _go(self, place: Place) -> None:
        """Move to a place and draw what changed with it."""
        before, self.place = self.place, place
        if self._problem:
            self._problem = ""
            self._draw_status()
        if place.index != before.index:
            self._shown = None
            self._drawing.stages(self.place)
            self._read()
        elif place != before:
            if place.zone != before.zone:
                self._drawing.stages(place)
                self._drawing.footer(place)
            self._draw_stage()

    def _read(self) -> None:
        """Ask for the values of the chosen stage."""
        if self._patience is not None:
            self._patience.stop()
        self._patience = self.set_timer(_PATIENCE, self._draw_stage)
        if self._trace is not None:
            self._work.read(self._trace, self.place.stage.id)

    def _complain(self, text: str) -> None:
        self._problem = text
        self._draw_status()

    # How it is drawn ----------------------------------------------------------------------

    def _fit(self) -> None:
        """Give every part its size, and draw all of it."""
        drawing = self._drawing
        drawing.resize(self.app.size.width, self.app.size.height, self.place.run)
        for name in ("title", "tabs", "body", "reading", "footer"):
            self.query_one(f"#{name}").display = not drawing.is_small
        self.query_one("#too-small").display = drawing.is_small
        self.query_one("#notice").display = bool(self.place.run.notices) and not drawing.is_small
        self.query_one("#stages").styles.width = drawing.list_width
        drawing.frame(self.place)
        self._draw_status()
        self._draw_stage()

    def _draw_status(self) -> None:
        if self._waiting_for is not None:
            status = "loading torch to run the prompt…" if self._trace is None else "running…"
        elif self._trace is None:
            status = ""
        else:
            status = "recorded run" if self._recorded else "computed here"
            if self._loading:
                status += " · loading torch…"
        self._drawing.tabs(PANES, "1", status, self._problem)

    def _draw_stage(self) -> None:
        """Draw the chosen stage with its values, or its heading while they are on their way."""
        if self._shown is None:
            self._drawing.heading(self.place)
        else:
            self._drawing.stage(self.place, self._shown, self._vocabulary())

    def _vocabulary(self) -> Callable[[int], Token] | None:
        if self._session is None:
            return None
        return self._session.source.tokenizer.token


def _at_largest(place: Place, tensor: StageTensor) -> Place:
    """Start at the last position, at the largest value there: what the prediction builds on."""
    matrix = tensor.values[place.head] if place.stage.axes[0] == "H" else tensor.values
    last = matrix.shape[0] - 1
    column = int(matrix[last].argmax()) if matrix.ndim == 2 else 0
    return place.at_cell(last, column)
