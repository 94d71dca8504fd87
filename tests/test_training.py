"""`tui-gpt train`: what it learns, what it keeps, and what it says when it cannot."""

from __future__ import annotations

import hashlib
import json
import math
import os
import pty
import random
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from torch.nn import functional
from vocabularies import tokenizer_of

from tui_gpt import cli
from tui_gpt.checkpoints import training_folder as training
from tui_gpt.checkpoints.find import find_model
from tui_gpt.checkpoints.weights import load_weights
from tui_gpt.cli.commands.train_text import read_text, unigram_entropy
from tui_gpt.config import GPTConfig
from tui_gpt.errors import DamagedModel
from tui_gpt.model.gpt import GPT
from tui_gpt.model.train import Progress, Schedule, mean_loss

WORDS = ["the", "cat", "sat", "on", "a", "mat", "and", "saw", "an", "owl", "in", "its", "oak"]
"""Sixteen different characters with the blank between them and the line end."""

SMALL = ["--n-embd", "8", "--n-head", "2", "--block-size", "16", "--batch-size", "8"]

SCHEDULE = Schedule(steps=60, batch_size=8, warmup=5, evaluate_every=20, learning_rate=1e-2)


@pytest.fixture
def text_file(tmp_path: Path) -> Path:
    """Words in random order: something to learn, and something left to guess."""
    file = tmp_path / "text.txt"
    file.write_text(" ".join(random.Random(3).choices(WORDS, k=900)) + "\n")
    return file


def learn(
    text_file: Path,
    folder: Path,
    schedule: Schedule = SCHEDULE,
    report: Callable[[Progress], None] = lambda progress: None,
) -> None:
    text = read_text(text_file, 16)
    config = GPTConfig(
        n_layer=2,
        n_head=2,
        n_embd=8,
        n_inner=32,
        block_size=16,
        vocab_size=text.tokenizer.vocab_size,
    )
    training.train(text, config, schedule, folder, facts={"command": "here"}, report=report)


def card(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "card.json").read_text())
    return content


def refused(capsys: pytest.CaptureFixture[str], *arguments: object, code: int = 1) -> str:
    """Run a command line that must be refused, and give the one line that says why."""
    assert cli.run([str(argument) for argument in arguments]) == code
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("tui-gpt: ")
    assert said.err.count("\n") == 1
    return said.err.removeprefix("tui-gpt: ").rstrip("\n")


def test_the_loss_falls_below_that_of_counting_characters(text_file: Path, tmp_path: Path) -> None:
    seen: list[Progress] = []
    learn(text_file, tmp_path / "model", report=seen.append)
    history = card(tmp_path / "model")["losses"]["history"]
    assert [measured["step"] for measured in history] == [0, 20, 40, 60]
    first, last = history[0]["held_out_loss"], history[-1]["held_out_loss"]
    assert first == pytest.approx(math.log(16), abs=0.1)  # 16 characters, nothing known yet
    assert last < unigram_entropy(text_file.read_text()) < first
    assert [progress.step for progress in seen] == [*range(1, 61), 60]
    assert seen[0].rate == pytest.approx(1e-2 / 5)
    assert max(progress.rate for progress in seen) == pytest.approx(1e-2)


def test_the_same_seed_gives_the_same_weights_and_another_seed_others(
    text_file: Path, tmp_path: Path
) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        learn(text_file, tmp_path / name, Schedule(steps=3, batch_size=4, seed=seed))
    a, b, c = ((tmp_path / name / "model.safetensors").read_bytes() for name in "abc")
    assert a == b
    assert a != c


def test_a_stopped_run_that_goes_on_ends_where_an_unstopped_one_does(
    text_file: Path, tmp_path: Path
) -> None:
    def stop(progress: Progress) -> None:
        if progress.step == 33:
            raise KeyboardInterrupt

    straight, stopped = tmp_path / "straight", tmp_path / "stopped"
    learn(text_file, straight)
    with pytest.raises(KeyboardInterrupt):
        learn(text_file, stopped, report=stop)
    assert card(stopped)["steps"] == 20
    load_weights(find_model(str(stopped)))
    seen: list[Progress] = []
    learn(text_file, stopped, report=seen.append)
    assert seen[0].step == 21
    for name in ("model.safetensors", "card.json", "config.json", "characters.json"):
        assert (stopped / name).read_bytes() == (straight / name).read_bytes(), name
    assert sorted(os.listdir(stopped)) == sorted(os.listdir(straight))
    assert "resume.pt" not in os.listdir(stopped)


def test_a_run_goes_on_only_with_the_options_it_began_with(text_file: Path, tmp_path: Path) -> None:
    def stop(progress: Progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        learn(text_file, tmp_path / "model", report=stop)
    other = Schedule(steps=70, batch_size=8, warmup=5, evaluate_every=20, learning_rate=1e-2)
    with pytest.raises(DamagedModel, match="had steps 60 and this one has 70; give the same"):
        learn(text_file, tmp_path / "model", other)
    text_file.write_text(text_file.read_text() + "!" * 20)
    with pytest.raises(DamagedModel, match=r"had vocab_size 16 and this one has 17"):
        learn(text_file, tmp_path / "model")
    (tmp_path / "model" / "resume.pt").write_bytes(b"no state")
    with pytest.raises(DamagedModel, match=r"resume\.pt is damaged; train into a new folder"):
        learn(text_file, tmp_path / "model")


def test_the_weights_kept_are_the_best_and_not_the_last(text_file: Path, tmp_path: Path) -> None:
    # A rate that is fine at first and far too high after a long warm-up.
    wild = Schedule(steps=60, batch_size=8, warmup=60, evaluate_every=10, learning_rate=2.0)
    learn(text_file, tmp_path / "model", wild)
    losses = card(tmp_path / "model")["losses"]
    kept = mean_loss(
        load_weights(find_model(str(tmp_path / "model"))), read_text(text_file, 16).held_out
    )
    assert kept == pytest.approx(losses["held_out"], abs=1e-6)  # the same weights, measured again
    assert card(tmp_path / "model")["steps"] < 60
    assert losses["held_out"] == min(measured["held_out_loss"] for measured in losses["history"])


def test_the_held_out_loss_predicts_every_character_but_the_first_once() -> None:
    model = GPT(GPTConfig(n_layer=1, n_head=1, n_embd=4, n_inner=4, block_size=5, vocab_size=7))
    for n in (2, 5, 6, 7, 11, 23):
        ids = torch.randint(7, (n,), generator=torch.Generator().manual_seed(n))
        one_by_one = []
        for position in range(1, n):
            start = (position - 1) // 5 * 5
            logits = model(ids[None, start:position])[0, -1]
            one_by_one.append(functional.cross_entropy(logits, ids[position]).item())
        mean = sum(one_by_one) / (n - 1)
        assert mean_loss(model, ids) == pytest.approx(mean, abs=1e-6)  # float32 losses near 2


def test_the_card_says_how_the_weights_came_to_be(
    text_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    probe = tmp_path / "probe.txt"
    probe.write_text("an owl sat in its oak\n")
    folder = tmp_path / "shakespeare"  # the name of a bundled model: the folder is what counts
    arguments = [str(text_file), "-o", str(folder), "--steps", "4", "--seed", "9", *SMALL]
    extra = ["--probe", str(probe), "--preparation", "by hand", "--evaluate-every", "2"]
    assert cli.run(["train", *arguments, *extra]) == 0
    said = capsys.readouterr()
    written = card(folder)
    assert said.out == (
        f"{folder}: held-out loss {written['losses']['held_out']:.4f} nats a character\n"
    )
    assert said.err == ""
    raw = text_file.read_bytes()
    assert written["seed"] == 9
    assert written["steps"] == 4
    assert written["program"].startswith("tui-gpt ")
    assert written["text"] == {
        "sha256": hashlib.sha256(raw).hexdigest(),
        "characters": len(raw),
        "different_characters": 16,
        "trained_on": len(raw) * 9 // 10,
        "held_out": len(raw) - len(raw) * 9 // 10,
        "unigram_entropy": unigram_entropy(raw.decode()),
        "preparation": "by hand",
    }
    assert written["command"].startswith("tui-gpt ")
    ids = torch.tensor(tokenizer_of(find_model(str(folder))).encode(probe.read_text()))
    assert written["probe"]["text"] == probe.read_text()
    measured = mean_loss(load_weights(find_model(str(folder))), ids)
    assert written["probe"]["loss"] == pytest.approx(measured, abs=1e-6)
    assert sorted(os.listdir(folder)) == [
        "card.json",
        "characters.json",
        "config.json",
        "model.safetensors",
    ]

    assert cli.run(["train", "--check", str(text_file), str(folder)]) == 0
    loss = f"{written['losses']['held_out']:.4f}"
    assert f"held-out loss {loss} nats a character" in (checked := capsys.readouterr().out)
    assert f"over the last {written['text']['held_out']:,} of" in checked
    assert f"({loss} on its card)" in checked


def test_unigram_entropy_is_that_of_the_shares() -> None:
    assert unigram_entropy("aabb") == pytest.approx(math.log(2))
    assert unigram_entropy("aaab") == pytest.approx(-0.75 * math.log(0.75) - 0.25 * math.log(0.25))
    assert unigram_entropy("aaaa") == 0


def test_a_text_that_cannot_be_learnt_is_refused_with_its_numbers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, folder = tmp_path / "text.txt", tmp_path / "model"

    def said(content: bytes) -> str:
        file.write_bytes(content)
        why = refused(capsys, "train", file, "-o", folder, *SMALL)
        assert not folder.exists()
        return why

    assert said(b"") == f"{file} is empty; give a text to learn from"
    assert said(b"caf\xe9 " * 100) == (
        f"{file} is not UTF-8: byte 0xe9 at offset 3; convert it first"
    )
    assert said(b"a" * 160) == (
        f"{file} has 160 characters, 16 of them in its smaller part; a context of 16 needs more "
        "than 16 there, so at least 161 in all"
    )
    assert refused(capsys, "train", tmp_path / "no.txt", "-o", folder) == (
        f"cannot read {tmp_path / 'no.txt'}: No such file or directory"
    )
    assert refused(capsys, "train", tmp_path, "-o", folder) == (
        f"cannot read {tmp_path}: Is a directory"
    )
    assert not folder.exists()


def test_the_shortest_text_that_is_said_to_do_does(tmp_path: Path) -> None:
    file = tmp_path / "text.txt"
    for block_size in (1, 7, 16, 64):
        file.write_text("ab" * (5 * block_size) + "a")
        assert len(read_text(file, block_size).held_out) == block_size + 1


def test_a_folder_that_exists_or_has_no_parent_is_left_alone(
    text_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    there = tmp_path / "there"
    there.mkdir()
    said = refused(capsys, "train", text_file, "-o", there, *SMALL)
    assert said == (
        f"cannot write {there}: it exists; give a new folder, or --resume an unfinished run"
    )
    assert os.listdir(there) == []
    lost = tmp_path / "no" / "model"
    said = refused(capsys, "train", text_file, "-o", lost, *SMALL)
    assert said == f"cannot write {lost}: there is no folder {tmp_path / 'no'}"
    said = refused(capsys, "train", text_file, "-o", there, "--resume", code=2)
    assert said == f"nothing to resume in {there}: there is no resume.pt"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "Missing argument 'TEXT_FILE'; `tui-gpt train --help` lists what can be given"),
        (["text"], "give TEXT_FILE -o FOLDER"),
        (["--check", "text"], "give --check TEXT_FILE FOLDER, without -o"),
        (["text", "-o", "x", "--steps", "0"], "Invalid value for '--steps': 0 is not in the range"),
        (["text", "-o", "x", "--learning-rate", "nan"], "nan is no number to compute with"),
        (["text", "-o", "x", "--weight-decay", "inf"], "inf is no number to compute with"),
        (["a", "b", "\x1b[31mc"], "Got unexpected extra argument (␛[31mc)"),
    ],
)
def test_a_command_line_that_makes_no_sense_is_answered_in_one_line(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said in refused(capsys, "train", *arguments, code=2)


def test_a_shape_that_cannot_be_is_refused_before_the_text_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [tmp_path / "no.txt", "-o", tmp_path / "model", "--n-embd", "10", "--n-head", "4"]
    assert refused(capsys, "train", *arguments) == (
        "n_embd 10 does not divide into n_head 4; take a multiple of 4"
    )


def test_a_probe_with_other_characters_is_refused_before_training(
    text_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    probe = tmp_path / "probe.txt"
    probe.write_text("a Z")
    arguments = ["train", text_file, "-o", tmp_path / "model", "--probe", probe, *SMALL]
    assert "'Z' at 2" in refused(capsys, *arguments)
    probe.write_bytes(b"\xff")
    assert refused(capsys, *arguments).endswith("is not UTF-8: offset 0; convert it first")
    assert not (tmp_path / "model").exists()


def test_checking_on_a_strange_text_names_the_first_strange_character(
    text_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    learn(text_file, tmp_path / "model", Schedule(steps=1, batch_size=1))
    strange = tmp_path / "strange.txt"
    strange.write_text("the cat Ω " + "世" * 10_000)
    said = refused(capsys, "train", "--check", strange, tmp_path / "model")
    assert said.startswith(
        f"{strange} has 10001 characters that are none of the model's 16, the first 'Ω' at 8; "
    )


def test_weights_that_run_away_end_the_run_and_the_best_are_kept(
    text_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "model"
    arguments = ["train", text_file, "-o", folder, "--steps", "50", "--learning-rate", "1e30"]
    said = refused(capsys, *arguments, *SMALL)
    assert said.startswith("the loss is nan at step ")
    assert "take a lower --learning-rate than 1e+30" in said
    weights = safetensors.torch.load_file(folder / "model.safetensors")
    assert all(tensor.isfinite().all() for tensor in weights.values())


def test_stopping_before_anything_was_measured_leaves_nothing(
    text_file: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def stop(*_: object) -> float:
        raise KeyboardInterrupt

    monkeypatch.setattr(training, "mean_loss", stop)  # Ctrl-C during the first measurement
    folder = tmp_path / "model"
    said = refused(capsys, "train", text_file, "-o", folder, *SMALL, code=130)
    assert said == "stopped before the first measurement; nothing is kept"
    assert not folder.exists()


@pytest.mark.parametrize(
    ("limit", "left"),
    [
        (4_096, None),  # no room for the weights
        (16_384, ["card.json", "characters.json", "config.json", "model.safetensors"]),
    ],
)
def test_a_full_disk_ends_in_one_line_and_no_half_file(
    text_file: Path, tmp_path: Path, limit: int, left: list[str] | None
) -> None:
    folder = tmp_path / "model"  # case E10
    full = subprocess.run(
        [*TRAIN, text_file, "-o", folder, "--steps", "2", *SMALL],
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )
    name = "model.safetensors" if left is None else "resume.pt"
    assert full.returncode == 1
    assert full.stdout == ""
    assert full.stderr == f"tui-gpt: cannot write {folder / name}: File too large\n"
    if left is None:
        assert not folder.exists()
    else:
        assert sorted(os.listdir(folder)) == left
        load_weights(find_model(str(folder)))


TRAIN = [sys.executable, "-m", "tui_gpt", "train", "--threads", "1"]


def interrupted(arguments: list[object], folder: Path, number: signal.Signals) -> tuple[int, str]:
    """Train at a terminal until the run can be taken up again, then send a signal.

    Returns:
        The exit code, and what the terminal got.
    """
    outer, inner = pty.openpty()
    running = subprocess.Popen(
        [*TRAIN, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=inner,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
        # Pytest itself may have been started with SIGINT ignored, as `&` does.
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),
    )
    os.close(inner)
    deadline = time.monotonic() + 60
    while not (folder / "resume.pt").exists():
        assert running.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    time.sleep(0.5)  # two pictures of the progress bar
    running.send_signal(number)
    said = b""
    try:
        while piece := os.read(outer, 65_536):
            said += piece
    except OSError:  # how Linux says that nobody holds the other end
        pass
    os.close(outer)
    out, _ = running.communicate(timeout=20)
    assert out == b""
    return running.returncode, said.decode()


def test_ctrl_c_leaves_a_model_that_opens_and_a_run_that_goes_on(
    text_file: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "model"
    arguments = [text_file, "-o", folder, "--steps", "700", "--evaluate-every", "50", *SMALL]
    code, said = interrupted(arguments, folder, signal.SIGINT)
    assert code == 130
    for word in ("/700", "loss", "held out", "rate"):
        assert word in said
    assert f"tui-gpt: stopped; {folder} holds the best weights so far, --resume goes on" in said
    assert "Traceback" not in said
    load_weights(find_model(str(folder)))
    steps = card(folder)["steps"]
    assert steps < 700

    assert cli.run(["train", *map(str, arguments), "--resume"]) == 0
    assert card(folder)["losses"]["history"][0]["step"] == 0
    assert card(folder)["steps"] > steps
    assert not (folder / "resume.pt").exists()


def test_a_run_that_is_terminated_leaves_a_model_that_opens(
    text_file: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "model"
    arguments = [text_file, "-o", folder, "--steps", "100000", *SMALL, "--ascii", "--color", "none"]
    code, said = interrupted(arguments, folder, signal.SIGTERM)
    assert code == 143
    assert said.isascii()
    assert "\x1b[3" not in said  # no colour
    assert "Traceback" not in said
    load_weights(find_model(str(folder)))
    assert not [name for name in os.listdir(folder) if name.startswith(".")]
