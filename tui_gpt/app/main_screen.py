"""The main screen: title, tabs, one pane, one number read aloud, keys.

Keys change a `Place`; the pane of that place is drawn from what is known, and what it would
like to know besides is asked in the background; each answer draws the pane again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from rich.segment import Segment
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import Screen
from textual.timer import Timer

from tui_gpt.app.actions import KEPT, hints
from tui_gpt.app.bindings import bindings
from tui_gpt.app.dialogs.dialog import Dialog, with_keys
from tui_gpt.app.initial_view import InitialView
from tui_gpt.app.lines import Lines
from tui_gpt.app.panes import PANES
from tui_gpt.app.panes.pane import Pane, Scene
from tui_gpt.app.place.moves import MOVES
from tui_gpt.app.place.place import Place, at_largest
from tui_gpt.app.status import going_on, standing
from tui_gpt.app.work.jobs import Work
from tui_gpt.app.work.messages import (
    Answered,
    Checking,
    ModelLoaded,
    Refused,
    RunPrepared,
    TraceFailed,
    TraceReady,
)
from tui_gpt.app.work.questions import Answers, Broken, BrokenOf, ExplanationOf, Shown
from tui_gpt.errors import TuiGPTError
from tui_gpt.records.stages import find_stage
from tui_gpt.records.tokens import Token
from tui_gpt.records.trace import Run, Trace
from tui_gpt.views import bars
from tui_gpt.views.palette import palette
from tui_gpt.views.profile import TerminalProfile
from tui_gpt.views.rows import Row, padded
from tui_gpt.views.text import sanitize, transliterate

if TYPE_CHECKING:
    from tui_gpt.session import Session

SMALLEST = (44, 12)
"""Cells and lines below which nothing sensible can be drawn."""

_LINES_AROUND = 4
"""Title, tabs, reading and footer."""

_JUMPS = 100
"""Jumps that can be gone back."""


class MainScreen(Screen[None]):
    """The panes and the lines around them."""

    BINDINGS: ClassVar[list[BindingType]] = bindings()
    DEFAULT_CSS = """
    MainScreen { layout: vertical; }
    MainScreen > Lines { height: 1; }
    MainScreen > #too-small { display: none; height: 1fr; }
    MainScreen > #notice { display: none; }
    MainScreen > #body { height: 1fr; }
    """

    def __init__(self, initial_view: InitialView, profile: TerminalProfile, n_threads: int) -> None:
        super().__init__()
        self._session = initial_view.session
        self._recording = initial_view.recording
        self._crop = initial_view.crop
        self._bos = initial_view.bos
        self._models = initial_view.models
        self._palette = palette(profile)
        self._work = Work(self.post_message, n_threads)
        self._panes: dict[str, Pane] = {}
        stages = initial_view.run.stages
        self.place = Place(
            initial_view.run, stages.index(find_stage(stages, initial_view.stage_id))
        )
        self._jumps: list[Place] = []
        self._trace: Trace | None = None
        self._answers = Answers()
        self._asked: set[object] = set()
        self._recorded = False
        self._loaded: Session | None = None
        self._loading = False
        self._waiting_for: Run | None = None
        self._checking: Checking | None = None
        self._problem = ""
        self._reading: Row = []
        self._complete = False
        self._next_step: Timer | None = None

    @property
    def is_settled(self) -> bool:
        """True when the pane is drawn with all it wants and nothing is on its way."""
        loaded = self._session is None or self._loaded is self._session
        return self._complete and self._waiting_for is None and loaded

    def compose(self) -> ComposeResult:
        """Lay the lines out."""
        for name in ("title", "tabs", "notice", "body", "reading", "footer", "too-small"):
            yield Lines(id=name)

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
        self._checking = None
        self._waiting_for = message.run
        self._work.start(message.session, message.run)
        self._draw_status()

    def on_refused(self, message: Refused) -> None:
        """Say why, where the person is typing; nothing else changes."""
        dialog = self.app.screen
        if isinstance(dialog, Dialog):
            dialog.refuse(with_keys(message.error))
        else:
            self._complain(str(message.error))

    def on_trace_ready(self, message: TraceReady) -> None:
        """Show another run, at the same stage, head and cell where they exist."""
        self._waiting_for = self._checking = None
        self._trace = message.trace
        self._answers = Answers()
        self._answers.ready = True
        self._asked.clear()
        self._recorded = message.recorded
        self._session = message.session
        if not message.recorded:
            self._loaded = message.session
            self._loading = False
        self._jumps.clear()
        self.place = self.place.on(message.trace.run)
        self._fit()

    def on_trace_failed(self, message: TraceFailed) -> None:
        """Say why there are no new numbers; the last ones stay."""
        self._waiting_for = self._checking = None
        self._complain(str(message.error))

    def on_answered(self, message: Answered) -> None:
        """Keep an answer about the run on the screen, and draw with it."""
        if message.trace is not self._trace:
            return
        self.place = message.question.arrived(self.place, message.answer)
        if message.question.kept or isinstance(message.answer, TuiGPTError):
            self._answers.keep(message.question, message.answer)
        self._asked.discard(message.question)
        answer = message.answer
        if self.place.row is None and isinstance(answer, Shown) and answer.tensor is not None:
            self.place = at_largest(self.place, answer.tensor)
        if isinstance(message.answer, Broken):
            self._fit()  # a banner takes a line
        else:
            self._draw_pane()
        if self._recorded and self._complete:
            self.call_after_refresh(self._preload)

    def on_model_loaded(self, message: ModelLoaded) -> None:
        """Take the word about loading away."""
        self._loaded = message.session
        self._loading, self._checking = False, None
        self._draw_status()

    def on_checking(self, message: Checking) -> None:
        """Say how far the reading of weights is."""
        self._checking = message
        self._draw_status()

    # What keys do -------------------------------------------------------------------------

    def action_move(self, down: int, right: int) -> None:
        """Do what an arrow key does in this place."""
        self._go(self._pane.move(self.place, down, right))

    def action_go(self, move: str) -> None:
        """Make one of the moves."""
        if move == "weights" and not self.place.stage.parameters:
            self._complain(f"{self.place.stage.name} owns no parameters")
            return
        self._go(MOVES[move](self.place, self._pane))

    def action_pane(self, key: str) -> None:
        """Show another pane of the same place."""
        self._go(self.place.at_pane(key))

    def action_follow(self) -> None:
        """Go to the cell that the chosen line of the explanation names; in pane 7, take a token."""
        if self.place.pane == "7":
            from tui_gpt.app.panes.generate import with_candidate  # not for the first frame

            self._go(with_candidate(self.place))
            return
        question = ExplanationOf(self.place.stage.id, self.place.cell_index)
        explanation = self._answers.get(question)
        if self.place.zone != "terms" or explanation is None:
            return
        from tui_gpt.app.panes.explanations import followed

        place = followed(self.place, explanation)
        if place is None:
            self._complain("this line names no cell: its number is derived or constant")
            return
        self._jumps = [*self._jumps[-_JUMPS:], self.place]
        self._go(place)

    def action_back(self) -> None:
        """Go back to where the last jump started."""
        if self._jumps:
            self._go(self._jumps.pop())

    async def action_prompt(self) -> None:
        """Edit the prompt."""
        from tui_gpt.app.dialogs.prompt_editor import PromptEditor  # not for the first frame

        if self._session is None:
            self._complain("this recording's model is not here, so no other prompt can be run")
            return
        # Awaited, so that what was typed ahead reaches the field and not this screen's keys.
        run = self.place.run
        await self.app.push_screen(
            PromptEditor(
                run.prompt,
                self._palette,
                self._submit,
                highest_id=run.model.config.vocab_size - 1 if run.is_ids_only else None,
            )
        )

    async def action_model(self) -> None:
        """Choose another model."""
        from tui_gpt.app.dialogs.model_chooser import ModelChooser  # not for the first frame

        run = self.place.run
        await self.app.push_screen(
            ModelChooser(
                self._models(),
                run.model.name,
                self._palette,
                lambda name: self._work.open_model(name, run, crop=self._crop, bos=self._bos),
            )
        )

    async def action_help(self) -> None:
        """Show the keys and how to read the screen."""
        from tui_gpt.app.dialogs.help import Help  # not for the first frame

        await self.app.push_screen(Help(self._palette))

    async def action_inspect(self) -> None:
        """Show how the model's files were read."""
        from tui_gpt.app.dialogs.inspection import Inspection  # not for the first frame

        if self._session is None:
            self._complain("this recording's model is not here, so there are no files to look at")
            return
        await self.app.push_screen(Inspection(self._session, self._work, self._palette))

    def action_cancel(self) -> None:
        """Stop a run that has no numbers yet; those on the screen stay."""
        if self._waiting_for is not None:
            self._work.cancel_run()
            self._waiting_for = self._checking = None
            self._complain("stopped; p runs a prompt, m opens a model")

    async def action_quit(self) -> None:
        """Leave."""
        self.app.exit()

    def action_redraw(self) -> None:
        """Draw everything again."""
        self.app.action_redraw()  # type: ignore[attr-defined]  # the explorer's own app

    # What that means ----------------------------------------------------------------------

    @property
    def _pane(self) -> Pane:
        return self._pane_of(self.place)

    def _pane_of(self, place: Place) -> Pane:
        """Give the pane of a place, made when it is first shown."""
        if place.pane not in self._panes:
            listed = next(pane for pane in PANES if pane.key == place.pane)
            self._panes[place.pane] = listed.open()
        return self._panes[place.pane]

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
        if self._waiting_for is None and not self._loading and self._session is not self._loaded:
            assert self._session is not None
            self._loading = True
            self._work.load(self._session)
            self._draw_status()

    def _submit(self, text: str, crop: bool) -> None:
        assert self._session is not None
        self._work.prepare(self._session, text, crop=crop or self._crop, bos=self._bos)

    def _close_dialog(self) -> None:
        if isinstance(self.app.screen, Dialog):
            self.app.pop_screen()

    def _go(self, place: Place) -> None:
        """Move to a place and draw what changed with it."""
        before, self.place = self.place, place
        if self._problem:
            self._problem = ""
            self._draw_status()
        if place == before:
            return
        if self._pane.where(place) != self._pane_of(before).where(before):
            self._draw_footer()
        self._draw_pane()

    def _complain(self, text: str) -> None:
        self._problem = text
        self._draw_status()

    # How it is drawn ----------------------------------------------------------------------

    def _fit(self) -> None:
        """Give every part its room, and draw all of it."""
        width, height = self.app.size
        small = width < SMALLEST[0] or height < SMALLEST[1]
        notices = self._notices
        for name in ("title", "tabs", "body", "reading", "footer"):
            self._lines(name).display = not small
        self._lines("too-small").display = small
        self._lines("notice").display = bool(notices) and not small
        if small:
            words = f"Too small: {width}x{height}, need {SMALLEST[0]}x{SMALLEST[1]}"
            self._lines("too-small").show([[Segment(words, self._palette.plain)]])
            return
        self._lines("title").show([bars.title_bar(self.place.run, width, self._palette)])
        if notices:
            text = transliterate(sanitize(" · ".join(notices)), self._palette.profile.glyphs)
            self._show_line("notice", [Segment(f" {text}", self._palette.problem)])
        self._draw_status()
        self._draw_footer()
        self._draw_pane()

    @property
    def _notices(self) -> tuple[str, ...]:
        """What must be in sight as long as this run is."""
        return standing(self.place.run, self._answers.get(BrokenOf()))

    def _draw_status(self) -> None:
        """Draw the panes' names, and what is going on; a problem takes the names' place."""
        width = self.app.size.width
        if self._problem:
            text = transliterate(sanitize(self._problem), self._palette.profile.glyphs)
            self._show_line("tabs", [Segment(f" {text}", self._palette.problem)])
        else:
            panes = [(pane.key, pane.title) for pane in PANES]
            row = bars.tab_bar(panes, self.place.pane, width, self._palette)
            self._lines("tabs").show([row])
        row = bars.reading_bar(self._reading, self._status, width, self._palette)
        self._lines("reading").show([row])

    @property
    def _status(self) -> str:
        """What is going on, in a few quiet words."""
        return going_on(
            has_trace=self._trace is not None,
            waits=self._waiting_for is not None,
            loads=self._loading,
            recorded=self._recorded and self.place.pane != "7",  # whose steps are always computed
            checking=self._checking,
        )

    def _draw_footer(self) -> None:
        where = self._pane.where(self.place)
        row = bars.footer(hints(where), self.app.size.width, self._palette, keep=KEPT)
        self._lines("footer").show([row])

    def _draw_pane(self) -> None:
        """Draw the pane from what is known, and ask for what it wants besides."""
        width, height = self.app.size
        if width < SMALLEST[0] or height < SMALLEST[1]:
            return
        scene = Scene(
            self.place,
            self._answers,
            self._vocabulary(),
            width,
            height - _LINES_AROUND - bool(self._notices),
            self._palette,
        )
        picture = self._pane.draw(scene)
        self._lines("body").show(picture.rows)
        self._reading = picture.reading
        self._draw_status()
        self._complete = self._answers.ready and not scene.wanted
        if self._complete:
            scene.ask(BrokenOf())
        if self._trace is not None and not self._asked.issuperset(scene.wanted):
            self._asked = set(scene.wanted)
            self._work.ask(self._trace, self._session, tuple(scene.wanted))
        self._pace()

    def _pace(self) -> None:
        """Take the next step of a text that writes itself, when its time has come."""
        generation = self.place.generation
        if self._next_step is None and generation is not None and generation.can_go_on:
            self._next_step = self.set_timer(generation.wait, self._write_on)

    def _write_on(self) -> None:
        self._next_step = None
        generation = self.place.generation
        if generation is not None and generation.can_go_on:
            self._go(replace(self.place, generation=generation.onward()))

    def _vocabulary(self) -> Callable[[int], Token] | None:
        return None if self._session is None else self._session.token

    def _show_line(self, name: str, row: Row) -> None:
        self._lines(name).show([padded(row, self.app.size.width, self._palette.plain)])

    def _lines(self, name: str) -> Lines:
        return self.query_one(f"#{name}", Lines)
