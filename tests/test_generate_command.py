"""`tui-gpt generate`: a line a step, as it is computed, equal to an independent loop."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from commands import TUI_GPT, command, process
from vocabularies import tokenizer_of

from tui_gpt.checkpoints.find import find_model
from tui_gpt.checkpoints.weights import load_weights

KEYS = {
    "schema", "step", "id", "text", "bytes", "logit", "prob", "argmax_logits", "argmax_probs",
    "entropy", "margin", "window", "cropped", "cached", "sampled", "candidates",
}  # fmt: skip


def lines(*arguments: str) -> list[dict[str, Any]]:
    """Run the command with --json, and read each line by itself."""
    outcome = command("generate", *arguments, "--json")
    assert outcome.code == 0, outcome.err
    assert outcome.out.isascii()
    return [json.loads(line, parse_constant=pytest.fail) for line in outcome.out.splitlines()]


@torch.no_grad()
def test_two_hundred_lines_equal_an_independent_loop_across_the_edge() -> None:
    source = find_model("shakespeare")
    model, size = load_weights(source), source.config.block_size
    ids = tokenizer_of(source).encode("ROMEO:")
    steps = lines("-p", "ROMEO:", "-n", "200")
    assert len(steps) == 200
    for number, step in enumerate(steps):
        logits = model(torch.tensor([ids[-size:]]))[0, -1]
        probs = torch.softmax(logits, dim=-1)
        best = int(logits.argmax())
        top = logits.sort(descending=True, stable=True)
        assert set(step) == KEYS
        assert (step["schema"], step["step"]) == (1, number)
        assert step["id"] == step["argmax_logits"] == step["argmax_probs"] == best
        character = tokenizer_of(source).token(best)
        assert (step["text"], step["bytes"]) == (character.text, character.bytes.hex())
        # Kept keys and values are added up in another order.
        assert step["logit"] == pytest.approx(float(logits[best]), abs=1e-4)
        assert step["prob"] == pytest.approx(float(probs[best]), abs=1e-4)
        assert step["margin"] == pytest.approx(float(top.values[0] - top.values[1]), abs=2e-4)
        wide = probs.double()
        assert step["entropy"] == pytest.approx(float(-(wide * wide.log()).nansum()), abs=1e-3)
        first = max(0, len(ids) - size)
        assert step["window"] == [first, len(ids) - first]
        assert step["cropped"] == (first > 0)
        assert step["cached"] == (number > 0 and first == 0)
        listed = [one["id"] for one in step["candidates"]]
        assert len(listed) == 10
        assert listed[0] == best
        ids.append(best)


def test_after_the_window_slides_a_line_is_that_of_a_full_pass_to_the_last_digit() -> None:
    kept = lines("-p", "ROMEO:", "-n", "80")
    full = lines("-p", "ROMEO:", "-n", "80", "--no-cache")
    assert [step["id"] for step in kept] == [step["id"] for step in full]
    assert not any(step["cached"] for step in full)
    assert kept[60:] == full[60:]


def test_numbers_give_the_same_float32_back() -> None:
    for step in lines("-n", "3"):
        for number in (step["logit"], step["prob"], *(one["prob"] for one in step["candidates"])):
            assert float(str(np.float32(number))) == number


def test_top_says_how_many_candidates_and_the_margin_does_not_need_two() -> None:
    (step,) = lines("-n", "1", "--top", "1")
    assert len(step["candidates"]) == 1
    assert step["margin"] > 0
    (step,) = lines("-n", "1", "--top", "500")
    assert len(step["candidates"]) == 81


def test_a_run_that_sampled_says_so_in_every_line() -> None:
    arguments = ("-n", "20", "--temperature", "0.9", "--top-k", "5", "--sample-seed", "4")
    steps = lines(*arguments)
    assert all(step["sampled"] is True for step in steps)
    assert all(step["id"] in [one["id"] for one in step["candidates"][:5]] for step in steps)
    assert steps[0]["sampling"] == {
        "temperature": 0.9,
        "top_k": 5,
        "top_p": None,
        "seed": 4,
        "prob": steps[0]["sampling"]["prob"],
        "kept": 5,
    }
    assert lines(*arguments) == steps
    assert not any(step["sampled"] for step in lines("-n", "3", "--temperature", "0"))


def test_top_p_alone_draws_at_temperature_one() -> None:
    assert lines("-n", "1", "--top-p", "0.5")[0]["sampling"]["temperature"] == 1.0


def test_a_long_prompt_is_read_from_its_end_and_the_notice_says_so() -> None:
    outcome = command("generate", "-p", "abc " * 20, "-n", "1", "--json")
    assert json.loads(outcome.out)["window"] == [16, 64]
    assert outcome.err == (
        "tui-gpt: notice: the prompt is 80 tokens and this model reads 64: "
        "the first 16 are not read\n"
    )
    outcome = command("generate", "-p", "abc " * 20, "-n", "1", "--json", "--crop")
    assert json.loads(outcome.out)["window"] == [0, 64]
    assert "the first 16 were cut" in outcome.err


def test_the_text_shows_each_step_and_then_the_whole() -> None:
    outcome = command("generate", "-p", "ROMEO:", "-n", "70")
    assert (outcome.code, outcome.err) == (0, "")
    head = outcome.out.splitlines()
    assert head[1] == "“ROMEO:” · 6 tokens"
    assert head[2] == "greedy: the highest logit each time, the lowest id among equal ones"
    assert head[4].split() == [
        "step", "token", "id", "logit", "prob", "margin", "entropy", "read", "then"
    ]  # fmt: skip
    assert head[5].split()[:3] == ["0", r"\n", "0"]
    assert max(map(len, head[:75])) <= 80
    assert "\n\nROMEO:\nThe stra" in outcome.out
    assert "the window slid from step 59 on: this model reads 64 tokens" in outcome.out
    assert command("generate", "--ascii", "-n", "70").out.isascii()


def test_the_text_says_that_it_was_drawn() -> None:
    outcome = command("generate", "-n", "2", "--temperature", "1", "--top-p", "0.9")
    assert "sampled, not greedy: temperature 1, top-p 0.9, sample seed 123" in outcome.out


def test_a_loop_is_said_to_be_one_in_plain_words() -> None:
    outcome = command("generate", "-p", "the ", "-n", "400")
    said = " ".join(outcome.out.split())
    assert "a loop: the last" in said
    assert "times in a row; the model reads exactly what it read one round ago, and greedy" in said


def test_ids_without_a_vocabulary_are_written_between_brackets() -> None:
    arguments = ("-m", "untrained:transformer-2017", "--ids", "5,6", "-n", "3")
    steps = lines(*arguments)
    assert all(step["text"] is None and step["bytes"] == "" for step in steps)
    outcome = command("generate", *arguments)
    assert outcome.code == 0
    ids = "".join(f"<id {step['id']}>" for step in steps)
    assert outcome.out.rstrip().endswith(ids)


@pytest.mark.parametrize(
    "arguments",
    [
        ("-n", "0"),
        ("--top", "0"),
        ("--temperature", "-1"),
        ("--temperature", "nan"),
        ("--top-k", "0"),
        ("--top-p", "0"),
        ("--top-p", "1.5"),
        ("--seed", "1"),
        ("-m", "untrained:shakespeare seed 2", "--seed", "1"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(arguments: tuple[str, ...]) -> None:
    outcome = command("generate", *arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("-p", ""), "the prompt is empty"),
        (("-p", "é"), "never saw"),
        (("--ids", "81"), "token id 81 is not one of 0"),
        (("-m", "nowhere"), "no model 'nowhere'"),
        (("-m", "untrained:gpt5"), "no preset 'gpt5'"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(arguments: tuple[str, ...], said: str) -> None:
    outcome = command("generate", *arguments)
    assert (outcome.code, outcome.out) == (1, "")
    assert said in outcome.err
    assert outcome.err.count("\n") == 1


def test_help_imports_no_torch_and_explains_loops_and_end_of_text() -> None:
    outcome = process("generate", "--help")
    said = " ".join(outcome.out.split())
    assert "often ends in a loop: nothing is penalised" in said
    assert "An end-of-text token is a token like any other and ends nothing" in said


# As a process ------------------------------------------------------------------------------


def running(*arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*TUI_GPT, "generate", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "PYTHONUNBUFFERED": ""},
    )


def test_lines_come_as_they_are_computed_and_ctrl_c_ends_with_130() -> None:
    with running("-n", "1000000", "--json") as child:
        assert child.stdout is not None
        assert child.stderr is not None
        first = json.loads(child.stdout.readline())
        assert first["step"] == 0
        assert child.poll() is None
        child.send_signal(signal.SIGINT)
        rest = child.stdout.read()
        assert child.wait(timeout=10) == 130
        assert child.stderr.read() == b"\n"  # the line on which the terminal wrote ^C
        whole = rest.splitlines(keepends=True)
        assert all(json.loads(line) for line in whole if line.endswith(b"\n"))


def test_a_reader_that_has_enough_ends_it_silently() -> None:
    with running("-n", "1000000", "--json") as child:
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdout.readline()
        child.stdout.close()
        assert child.wait(timeout=10) == 0
        assert child.stderr.read() == b""


def test_a_folder_of_ones_own_generates_too(tiny_folder: Path) -> None:
    steps = lines("-m", str(tiny_folder), "-p", "abc", "-n", "30")
    assert len(steps) == 30
    assert steps[-1]["window"] == [16, 16]
