"""However it ends, it ends at once, and the terminal is as it was."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from explorer import Explorer
from terminal import CTRL_C, EXPLORER, RESTORED, TAB, Terminal

import tui_gpt
from tui_gpt.files import assets

FAILING = """
from tui_gpt.app.place.place import Place
from tui_gpt.cli import main

def fail(*_):
    raise RuntimeError("something that nobody foresaw")

Place.by_heads = fail
main()
"""
"""The explorer with a fault behind the key for the next head."""


def assert_restored(terminal: Terminal) -> None:
    """The normal screen, a cursor, no bracketed paste, and the settings of the shell."""
    sent = terminal.received
    for on, off in ((b"\x1b[?1049h", b"\x1b[?1049l"), (b"\x1b[?2004h", b"\x1b[?2004l")):
        assert sent.rindex(off) > sent.rindex(on)
    assert sent.rindex(b"\x1b[?25h") > sent.rindex(b"\x1b[?25l")
    assert b"\x1b[?1000h" not in sent  # the mouse was left to the terminal
    assert terminal.settings == terminal.settings_before


def leave(terminal: Terminal, keys: str, *, code: int = 0) -> None:
    """Send keys and expect the end within a second."""
    sent = time.monotonic()
    terminal.send(keys)
    assert terminal.wait_for_exit() == code
    assert time.monotonic() - sent < 1


@pytest.mark.parametrize(
    ("key", "moment"),
    [("q", 0.0), ("q", 0.3), ("q", 0.6), ("q", 1.0), ("q", 1.5), (CTRL_C, 0.0), (CTRL_C, 0.8)],
)
def test_it_leaves_at_any_moment_while_torch_loads(key: str, moment: float) -> None:
    with Terminal() as terminal:
        terminal.wait_for("attn_scores")
        terminal.settle(quiet=moment, most=moment)
        leave(terminal, key)
        assert_restored(terminal)


def open_nothing(explorer: Explorer) -> None:
    """Stay in the list."""


def read_cells(explorer: Explorer) -> None:
    explorer.send(TAB)
    explorer.wait_for("Tab stages")


def edit_prompt(explorer: Explorer) -> None:
    explorer.open_prompt()


def choose_model(explorer: Explorer) -> None:
    explorer.send("m")
    explorer.wait_for("Open a model")


def type_path(explorer: Explorer) -> None:
    choose_model(explorer)
    explorer.send(TAB)
    explorer.type("some/path")


def read_help(explorer: Explorer) -> None:
    explorer.send("?")
    explorer.wait_for("How to use tui-gpt")


@pytest.mark.parametrize(
    "where", [open_nothing, read_cells, edit_prompt, choose_model, type_path, read_help]
)
def test_ctrl_c_leaves_from_everywhere(where: Callable[[Explorer], None]) -> None:
    # case D11
    with Explorer() as explorer:
        where(explorer)
        leave(explorer, CTRL_C)


@pytest.mark.parametrize("where", [read_cells, read_help])
def test_q_leaves_from_everywhere_but_the_fields(where: Callable[[Explorer], None]) -> None:
    with Explorer() as explorer:
        where(explorer)
        leave(explorer, "q")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("loaded", [False, True], ids=["loading", "loaded"])
def test_a_signal_restores_the_terminal_and_gives_its_code(
    number: signal.Signals, loaded: bool
) -> None:
    # case D13
    with Terminal() as terminal:
        terminal.wait_for("attn_scores")
        if loaded:
            terminal.settle(quiet=2.0, most=2.0)
        terminal.signal(number)
        assert terminal.wait_for_exit(most=3) == 128 + number
        assert_restored(terminal)


@pytest.mark.parametrize("ignored", [False, True], ids=["", "with SIGHUP ignored"])
def test_a_lost_terminal_ends_the_process(ignored: bool) -> None:
    nohup = ("sh", "-c", "trap '' HUP; exec \"$0\" -m tui_gpt", sys.executable)
    with Explorer(command=nohup if ignored else EXPLORER) as explorer:
        explorer.hang_up()
        explorer.wait_for_exit(most=3)


def test_a_fault_inside_restores_the_terminal_and_is_told() -> None:
    with Explorer(command=(sys.executable, "-c", FAILING)) as explorer:
        explorer.send("]")
        assert explorer.wait_for_exit() == 1
        assert b"something that nobody foresaw" in explorer.received
        assert_restored(explorer)


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("</dev/null", "standard input is not a terminal"),
        ("<&-", "standard input is not a terminal"),
        (">out", "standard output is not a terminal"),
        ("2>err", "standard error is not a terminal"),
    ],
)
def test_without_a_terminal_it_says_so_at_once(how: str, reason: str, tmp_path: Path) -> None:
    # case D15
    script = f'cd "$1"; PYTHONPATH="$2" exec "$0" -m tui_gpt {how}'
    here = str(Path(tui_gpt.__file__).parent.parent)
    with Terminal(("sh", "-c", script, sys.executable, str(tmp_path), here)) as terminal:
        assert terminal.wait_for_exit() == 2
        said = terminal.received.decode()
    if how == "2>err":
        assert said == ""
        said = (tmp_path / "err").read_text()
    elif how == ">out":
        assert (tmp_path / "out").read_bytes() == b""
    assert said.startswith("tui-gpt: the explorer needs a terminal, and ")
    assert reason in said
    assert "tui-gpt trace" in said
    assert said.count("\n") == 1


@pytest.mark.parametrize("term", ["dumb", ""])
def test_a_terminal_that_cannot_move_its_cursor_is_refused(term: str) -> None:
    with Terminal(env={"TERM": term}) as terminal:
        assert terminal.wait_for_exit() == 2
        assert f"TERM is '{term}'" in terminal.received.decode()
        assert b"\x1b" not in terminal.received


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("-m", "gpt-5"), "no model 'gpt-5': give shakespeare or shakespeare-2017"),
        (("-p", ""), "the prompt is empty"),
        (("-p", "café"), "'é' at 3"),
        (("-p", "a" * 65), "the prompt is 65 tokens but this model reads 64"),
        (("--ids", "7,81"), "token id 81 is not one of 0…80"),
        (("--stage", "blocks.2.z"), "no stage 'blocks.2.z'"),
        (("nowhere.safetensors",), "no recording at nowhere.safetensors"),
        (("DAMAGED",), "is damaged"),
    ],
    ids=lambda value: " ".join(value)[:12] if isinstance(value, tuple) else "",
)
def test_what_cannot_be_opened_is_said_before_the_screen_is_touched(
    arguments: tuple[str, ...], reason: str, tmp_path: Path
) -> None:
    damaged = tmp_path / "damaged.safetensors"
    whole = (assets() / "recordings" / "shakespeare.safetensors").read_bytes()
    damaged.write_bytes(whole[:-100])
    arguments = tuple(str(damaged) if part == "DAMAGED" else part for part in arguments)
    with Terminal((*EXPLORER, "explore", *arguments)) as terminal:
        assert terminal.wait_for_exit() == 1
        assert b"\x1b" not in terminal.received
        assert terminal.received.startswith(b"tui-gpt: ")
        assert terminal.received.count(b"\n") == 1
        assert reason in terminal.received.decode()


def test_ctrl_z_does_nothing_and_a_stop_from_outside_gives_the_terminal_back() -> None:
    # case D12
    with Explorer() as explorer:
        explorer.press("\x1a")
        shown = explorer.screen.display
        before = len(explorer.received)
        explorer.signal(signal.SIGTSTP)
        stopped = 0
        while not stopped:
            explorer.settle(quiet=0.05)
            pid, status = os.waitpid(explorer.pid, os.WNOHANG | os.WUNTRACED)
            stopped = os.WSTOPSIG(status) if pid else 0
        explorer.settle(quiet=0.1)
        for sequence in RESTORED:
            assert sequence in explorer.received[before:]
        assert explorer.settings == explorer.settings_before
        explorer.screen.reset()  # what the shell writes meanwhile
        explorer.signal(signal.SIGCONT)
        explorer.wait_for(lambda _: explorer.screen.display[3:] == shown[3:])
        leave(explorer, "q")


def test_flow_control_keys_do_not_freeze_it() -> None:
    # case D10
    with Explorer() as explorer:
        explorer.send("\x13")
        explorer.send("n")
        explorer.wait_for("Block 2 of 2 · attention pattern", most=3)
        explorer.send("\x11")
        explorer.send("N")
        explorer.wait_for("Block 1 of 2 · attention pattern", most=3)
