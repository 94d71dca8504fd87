"""Loading in the explorer: how far it is is said, it stops on a key, and no key waits for it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from explorer import Explorer
from foreign import State, gpt2_state, write_folder
from textual.pilot import Pilot

from tui_gpt.app.dialogs.inspection import Inspection
from tui_gpt.app.explorer import ExplorerApp
from tui_gpt.app.initial_view import InitialView
from tui_gpt.app.main_screen import MainScreen
from tui_gpt.checkpoints import weights
from tui_gpt.checkpoints.headers import TensorEntry
from tui_gpt.checkpoints.weight_files import WeightFiles, open_tensors
from tui_gpt.session import Session, known_models
from tui_gpt.views.profile import TerminalProfile

N_TENSORS = 28
"""Of the tiny GPT-2 folder."""


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Make every tensor take a while, and list those that were looked at."""
    keys: list[str] = []

    def slow(files: WeightFiles) -> Callable[[TensorEntry], torch.Tensor]:
        tensor = open_tensors(files)

        def looked(entry: TensorEntry) -> torch.Tensor:
            keys.append(entry.key)
            time.sleep(0.06)
            return tensor(entry)

        return looked

    monkeypatch.setattr(weights, "open_tensors", slow)
    return keys


def explorer(folder: Path) -> ExplorerApp:
    session = Session.open(str(folder))
    run = session.prepare_ids((1, 2, 3))
    initial_view = InitialView(session, run, None, "blocks.0.pattern", known_models)
    return ExplorerApp(initial_view, TerminalProfile(), n_threads=1)


def status(pilot: Pilot[None]) -> str:
    screen = pilot.app.screen_stack[0]
    assert isinstance(screen, MainScreen)
    return screen._status


async def until(pilot: Pilot[None], holds: Callable[[], bool]) -> None:
    for _ in range(400):
        if holds():
            return
        await pilot.pause(0.02)
    raise AssertionError(status(pilot))


async def test_how_far_the_reading_is_is_said_and_keys_do_not_wait(
    tmp_path: Path, looked_at: list[str]
) -> None:
    app = explorer(write_folder(tmp_path / "gpt2"))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: status(pilot).startswith("checking "))
        assert status(pilot).endswith(f" of {N_TENSORS} tensors…")
        screen = pilot.app.screen
        assert isinstance(screen, MainScreen)
        before, started = screen.place, time.monotonic()
        await pilot.press("comma")
        assert screen.place != before
        assert time.monotonic() - started < 0.5
        assert len(looked_at) < N_TENSORS
        await until(pilot, lambda: status(pilot) == "computed here")
        assert len(looked_at) == N_TENSORS


async def test_the_reading_stops_between_two_tensors(tmp_path: Path, looked_at: list[str]) -> None:
    app = explorer(write_folder(tmp_path / "gpt2"))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: status(pilot).startswith("checking "))
        await pilot.press("ctrl+g")
        assert status(pilot) == ""
        stopped = len(looked_at)
        await pilot.pause(0.3)
        assert stopped <= len(looked_at) <= stopped + 1 < N_TENSORS


async def test_the_report_is_read_while_one_waits_and_stops_when_it_is_closed(
    tmp_path: Path, looked_at: list[str]
) -> None:
    app = explorer(write_folder(tmp_path / "gpt2"))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: status(pilot).startswith("checking "))
        await pilot.press("ctrl+g", "i")
        report = pilot.app.screen
        assert isinstance(report, Inspection)
        await until(pilot, lambda: str(report._answer).startswith("checking "))
        await pilot.press("i")
        stopped = len(looked_at)
        await pilot.pause(0.3)
        assert len(looked_at) <= stopped + 1


def test_the_report_is_on_a_key(tmp_path: Path) -> None:
    state: State = gpt2_state()
    state["h.1.ln_2.weight"][0] = float("nan")
    folder = write_folder(tmp_path / "gpt2", state)
    with Explorer("-m", str(folder), "--ids", "1,2,3", size=(100, 30)) as screen:
        screen.send("i")
        screen.wait_for("How the model's files were read")
        screen.wait_for("28 tensors → 36 parameter tensors")
        assert "h.1.ln_2.weight holds NaN" in screen.text
        assert "tokenizer: none: ids only" in screen.text
        screen.send("G")
        screen.wait_for("ln_f.bias")
        screen.send("i")
        screen.wait_for("not finite")


def test_a_model_that_is_refused_says_so_in_the_list_of_models(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "gpt2", n_layer=3)
    torch.save({"model": np.float64(1.5), "model_args": {}}, tmp_path / "ckpt.pt")
    with Explorer(size=(100, 30)) as screen:
        screen.wait_until_loaded()
        for path, said in ((folder, "the config asks for it"), (tmp_path, "multiarray.scalar")):
            screen.send("m")  # the second is case A35
            screen.wait_for("Open a model")
            screen.send("\t")
            screen.settle(quiet=0.2)
            screen.type(str(path))
            screen.send("\r")
            screen.wait_for(said)
            screen.close_dialog()
        assert "shakespeare" in screen.title
