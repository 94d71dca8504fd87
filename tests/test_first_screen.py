"""What a person sees first: at once, without torch, and with real numbers in it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

from explorer import Explorer
from terminal import EXPLORER, Terminal

from tui_gpt.files import assets
from tui_gpt.records.recording import Recording

EMPTY_APP = (sys.executable, "-c", "from textual.app import App; App().run(mouse=False)")

UP_TO_THE_FIRST_FRAME = """
import sys
from textual.app import App
from tui_gpt.cli import main

HEAVY = ("torch", "tiktoken", "numpy")
send = App._display

def first(app, screen, update):
    send(app, screen, update)
    if "attn_scores" in "".join(strip.text for strip in screen._compositor.render_strips()):
        app.exit(return_code=sum(module in sys.modules for module in HEAVY) or 100)
        App._display = send

App._display = first
main()
"""
"""Leaves with the number of heavy modules there are once the list is painted, 100 for none."""


def test_the_list_is_there_nearly_as_soon_as_an_empty_app(tmp_path: Path) -> None:
    # An installed program has its byte code; a checkout may not be allowed to keep any.
    byte_code = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(tmp_path)}

    def seconds(command: Sequence[str], condition: Callable[[Terminal], bool]) -> float:
        with Terminal(command, env=byte_code) as terminal:
            terminal.wait_for(condition)
            return time.monotonic() - terminal.started

    def pair() -> float:
        # Back to back, so that what slows the machine down slows both.
        return seconds(EXPLORER, has_the_list) / seconds(EMPTY_APP, is_painted)

    pair()
    assert median(pair() for _ in range(9)) <= 1.4


def test_nothing_heavy_is_imported_for_it() -> None:
    with Terminal((sys.executable, "-c", UP_TO_THE_FIRST_FRAME)) as terminal:
        assert terminal.wait_for_exit() == 100


def test_the_first_attention_pattern_is_chosen_and_shown() -> None:
    recording = Recording(assets() / "recordings" / "shakespeare.safetensors")
    last = recording.tensor("blocks.0.pattern").values[0, 18]
    with Explorer() as explorer:
        assert explorer.chosen.split()[:5] == ["│", "│", "pattern", "(4,", "19,"]
        assert explorer.panel[0].startswith("Block 1 of 2 · attention pattern ")
        assert explorer.panel[0].endswith(" head 1/4")
        key = int(last.argmax())
        assert explorer.reading == f"L0H0 · query 18 “e” reads key {key} “␣”  {last[key]!s}"
        assert "recorded" in explorer.status
        assert any("██" in row for row in explorer.panel)
        assert len(explorer.received) <= 70_000


def test_the_first_picture_needs_no_torch() -> None:
    without = "import sys; sys.modules['torch'] = None; from tui_gpt.cli import main; main()"
    with Explorer(command=(sys.executable, "-c", without)) as explorer:
        assert explorer.reading.startswith("L0H0 · query 18 “e” reads key ")
        assert "recorded" in explorer.status


def has_the_list(terminal: Terminal) -> bool:
    return "attn_scores" in terminal.text


def is_painted(terminal: Terminal) -> bool:
    return bool(terminal.screen.buffer[23][79].bg != "default")
