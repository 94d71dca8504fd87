"""The picture in the README is the picture that this test compares with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from textual.pilot import Pilot

from tui_gpt.app.explorer import ExplorerApp
from tui_gpt.app.initial_view import InitialView
from tui_gpt.app.main_screen import MainScreen
from tui_gpt.files import DEFAULT_PROMPT
from tui_gpt.session import Session, bundled_recording, known_models
from tui_gpt.views.profile import TerminalProfile

Compare = Callable[..., bool]

README = Path(__file__).parent.parent / "README.md"


def explorer(model: str) -> ExplorerApp:
    session = Session.open(model)
    run = session.prepare(DEFAULT_PROMPT)
    initial_view = InitialView(
        session,
        run,
        bundled_recording(model, DEFAULT_PROMPT),
        "blocks.0.pattern",
        known_models,
    )
    return ExplorerApp(initial_view, TerminalProfile(), n_threads=1)


async def numbers_are_shown(pilot: Pilot[None]) -> None:
    # Until torch is loaded: the word about it in the status line goes away then.
    for _ in range(600):
        await pilot.pause(0.05)
        screen = pilot.app.screen
        assert isinstance(screen, MainScreen)
        if screen.is_settled:
            return
    raise AssertionError("the first numbers did not come within 30 s")


AT_80_BY_24: dict[str, Any] = {"terminal_size": (80, 24), "run_before": numbers_are_shown}


def test_the_first_screen(snap_compare: Compare) -> None:
    assert snap_compare(explorer("shakespeare"), **AT_80_BY_24)


def test_the_first_screen_of_2017(snap_compare: Compare) -> None:
    assert snap_compare(explorer("shakespeare-2017"), **AT_80_BY_24)


def test_the_readme_shows_the_picture_that_is_compared() -> None:
    names = [part.split(")")[0] for part in README.read_text("utf-8").split("](")[1:]]
    pictures = [name for name in names if name.endswith(".svg")]
    assert len(pictures) == 1
    assert (README.parent / pictures[0]).is_file()
