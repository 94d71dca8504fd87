"""The explorer as a program: colours, what goes over the wire, and how it ends.

It ends in four ways, each with the terminal as it was: `q` and Ctrl-C with exit code 0,
SIGTERM and SIGHUP with 143 and 129. None waits for work that is still running.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Sequence
from typing import ClassVar

from rich.console import RenderableType
from textual.app import App
from textual.binding import Binding, BindingType
from textual.filter import LineFilter
from textual.screen import Screen
from textual.theme import Theme

from tui_gpt.app.display import Terminal
from tui_gpt.app.initial_view import InitialView
from tui_gpt.app.main_screen import MainScreen
from tui_gpt.views.palette import BACKGROUND
from tui_gpt.views.profile import TerminalProfile

_GRACE = 1.0
"""Seconds after a signal before the process ends even if the terminal does not answer."""


class ExplorerApp(App[None], inherit_bindings=False):
    """Everything around the main screen.

    Textual's own Ctrl+Q is not inherited: it lifts a Ctrl+S, and must not end the program.
    """

    ENABLE_COMMAND_PALETTE = False
    TITLE = "tui-gpt"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", "quit", "quit", priority=True, show=False),
        Binding("ctrl+l", "redraw", "redraw", priority=True, show=False),
    ]
    CSS = """
    Screen { layers: base; overflow: hidden; scrollbar-size: 0 0; }
    """

    def __init__(self, initial_view: InitialView, profile: TerminalProfile, n_threads: int) -> None:
        """Prepare the first frame.

        Args:
            initial_view: What to show first.
            profile: What the terminal can show.
            n_threads: CPU threads of the computation.
        """
        own_colours = profile.colour in ("truecolor", "256")
        super().__init__(ansi_color=not own_colours)
        self.profile = profile
        self._initial_view = initial_view
        self._n_threads = n_threads
        self._terminal = Terminal(profile)
        self.register_theme(_THEME)
        self.theme = _THEME.name if own_colours else "ansi-dark"
        self.animation_level = "none"

    def get_default_screen(self) -> Screen[None]:
        """Start with the main screen."""
        return MainScreen(self._initial_view, self.profile, self._n_threads)

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Leave colours to the profile: `Terminal` writes what it allows, NO_COLOR or not."""
        return [line_filter for line_filter in self._filters[:1] if line_filter.enabled]

    def on_mount(self) -> None:
        """Take over the signals that would leave the terminal in pieces."""
        loop = asyncio.get_running_loop()
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
                loop.add_signal_handler(number, self._end_by_signal, number)
        self.app_resume_signal.subscribe(self, lambda _: self.action_redraw())

    def action_redraw(self) -> None:
        """Send every cell again."""
        self._terminal.forget()
        self.screen.refresh(layout=True)

    async def action_quit(self) -> None:
        """Leave now."""
        self.exit()

    def _end_by_signal(self, number: int) -> None:
        code = 0 if number == signal.SIGINT else 128 + number
        self.exit(return_code=code)
        # A lost terminal takes no bytes any more; the process must still end.
        watchdog = threading.Timer(_GRACE, os._exit, (code,))
        watchdog.daemon = True
        watchdog.start()

    def _display(self, screen: Screen[object], renderable: RenderableType | None) -> None:
        """Send differences instead of regions; see `Terminal`."""
        super()._display(screen, self._terminal.update(renderable))

    def _check_resize(self) -> None:
        """Forget the cells: terminals reflow and clear when they change their size."""
        self._terminal.forget()
        super()._check_resize()


_THEME = Theme(
    name="tui-gpt",
    primary="#ffc66d",
    secondary="#5fc9b8",
    accent="#ffc66d",
    foreground="#d5d9e0",
    background=BACKGROUND,
    surface=BACKGROUND,
    panel="#1f2733",
    success="#5fc9b8",
    warning="#ffc66d",
    error="#ff8f70",
    dark=True,
    variables={
        "block-cursor-background": "#2f5d8c",
        "block-cursor-foreground": "#ffffff",
        "input-selection-background": "#2f5d8c",
    },
)
