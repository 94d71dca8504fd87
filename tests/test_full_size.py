"""A folder of GPT-2's full size: what it costs to open, and what the program says of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from commands import command
from explorer import Explorer
from foreign import gpt2_state, write_folder

PARAMETERS = 124_439_808

_SIZES = ("n_layer", "n_embd", "n_head", "vocab_size", "n_positions")

_PROBE = """
import os, sys
import torch
from tui_gpt.checkpoints import report
from tui_gpt.model import gpt
from tui_gpt.session import Session

def resident(field):  # bytes, mapped pages of files included
    lines = open("/proc/self/status").read().splitlines()
    return 1024 * int(next(line.split()[1] for line in lines if line.startswith(field)))

Session.open("shakespeare").load()
base = resident("VmRSS")
session = Session.open(sys.argv[1])
session.load()
print(resident("VmHWM") - base, sum(os.path.getsize(path) for path in session.source.files.paths))
"""


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A float32 folder of 124 million random parameters; half a gigabyte."""
    state = gpt2_state(n_layer=12, width=768, vocab=50257, positions=1024, inner=3072)
    sizes: dict[str, Any] = {
        "n_layer": 12,
        "n_embd": 768,
        "n_head": 12,
        "vocab_size": 50257,
        "n_positions": 1024,
    }
    return write_folder(tmp_path_factory.mktemp("full") / "gpt2", state, **sizes)


def test_weights_are_not_held_twice(full: Path) -> None:
    done = subprocess.run([sys.executable, "-c", _PROBE, str(full)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    peak, size = map(int, done.stdout.split())
    assert 0.9 * size < peak <= 1.1 * size  # measured: 1.00


def test_the_budget_is_the_one_that_is_known(full: Path) -> None:
    found = command("budget", "-m", str(full), "--json").json
    assert found["total"] == PARAMETERS
    assert found["file"]["parameters"] == PARAMETERS
    assert command("models", "--inspect", str(full), "--json").json["parameters"] == PARAMETERS


def test_it_opens_in_the_explorer(full: Path) -> None:
    with Explorer("-m", str(full), "-p", "Hello world", size=(100, 30)) as screen:
        assert "124,439,808 parameters" in screen.title
        screen.wait_for("computed here")
        screen.send("6")
        screen.wait_for(lambda _: screen.text.count("124,439,808") > 1)
