"""Our numbers against those of transformers, on random GPT-2 models that it wrote itself.

5e-5 is what float32 allows two orders of the same sums over a few thousand products of size one.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from commands import command
from explorer import Explorer
from transformers import GPT2Config, GPT2LMHeadModel

from tui_gpt.session import Session

TOLERANCE = 5e-5

Shape = dict[str, Any]
"""Fields of a config, under the names that transformers gives them."""

SMALL: Shape = {"n_layer": 2, "n_head": 2, "n_embd": 8, "vocab_size": 11, "n_positions": 64}

SHAPES: dict[str, Shape] = {
    "small": {},
    "deep": {"n_layer": 5, "n_head": 3, "n_embd": 24, "vocab_size": 101},
    "narrow inside": {"n_inner": 12},
    "exact gelu": {"activation_function": "gelu"},
    "relu": {"activation_function": "relu"},
    "untied": {"tie_word_embeddings": False},
    "another epsilon": {"layer_norm_epsilon": 1e-3},
    "one head": {"n_head": 1},
    "one block": {"n_layer": 1, "n_head": 8, "n_embd": 64, "vocab_size": 300},
}


def write_random(folder: Path, shape: Shape, *, spread: float) -> GPT2LMHeadModel:
    """Let transformers make and save a model in which no parameter is 0 or 1."""
    torch.manual_seed(11)
    model = GPT2LMHeadModel(GPT2Config(**shape, bos_token_id=0, eos_token_id=0))
    model.set_attn_implementation("eager")
    model.eval()  # type: ignore[no-untyped-call]  # transformers leaves it without types
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            middle = 1.0 if ".ln_" in name and name.endswith("weight") else 0.0
            parameter.normal_(middle, spread)
    model.save_pretrained(folder)
    return model


@torch.no_grad()
def reference(model: GPT2LMHeadModel, ids: list[int]) -> tuple[np.ndarray, list[np.ndarray]]:
    """Give the logits (T, V) and the stream at every border, the last one after the final norm."""
    out = model(torch.tensor([ids]), output_hidden_states=True, use_cache=False)
    return out.logits[0].numpy(), [state[0].numpy() for state in out.hidden_states]


@torch.no_grad()
def greedy(model: GPT2LMHeadModel, ids: list[int], steps: int, window: int) -> list[int]:
    """Take the highest logit again and again, each from a fresh pass."""
    ids = list(ids)
    for _ in range(steps):
        logits = model(torch.tensor([ids[-window:]]), use_cache=False).logits
        ids.append(int(logits[0, -1].argmax()))
    return ids[-steps:]


def compare(folder: Path, model: GPT2LMHeadModel, ids: list[int]) -> None:
    session = Session.open(str(folder))
    trace = session.trace(session.prepare_ids(tuple(ids)))
    logits, states = reference(model, ids)
    np.testing.assert_allclose(trace.tensor("logits").values, logits, rtol=0, atol=TOLERANCE)
    n_layer = session.source.config.n_layer
    ours = [f"blocks.{i}.resid_pre" for i in range(n_layer)] + ["ln_final"]
    assert len(ours) == len(states)
    for stage, state in zip(ours, states, strict=True):
        np.testing.assert_allclose(
            trace.tensor(stage).values, state, rtol=0, atol=TOLERANCE, err_msg=stage
        )


@pytest.mark.parametrize("name", SHAPES)
def test_logits_and_the_stream_are_those_of_transformers(tmp_path: Path, name: str) -> None:
    shape = {**SMALL, **SHAPES[name]}
    model = write_random(tmp_path, shape, spread=0.3)
    ids = torch.randint(shape["vocab_size"], (40,)).tolist()
    compare(tmp_path, model, ids)


@pytest.mark.parametrize("name", SHAPES)
def test_fifty_greedy_tokens_are_those_of_transformers(tmp_path: Path, name: str) -> None:
    shape = {**SMALL, **SHAPES[name]}
    model = write_random(tmp_path, shape, spread=0.3)
    prompt = [1, 2, 3]
    listed = ",".join(map(str, prompt))
    outcome = command("generate", "-m", str(tmp_path), "--ids", listed, "-n", "50", "--json")
    assert outcome.code == 0
    ours = [json.loads(line)["id"] for line in outcome.out.splitlines()]
    assert ours == greedy(model, prompt, 50, shape["n_positions"])


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, GPT2LMHeadModel]]:
    """A random GPT-2 of the full size, half a gigabyte, as transformers saves it."""
    folder = tmp_path_factory.mktemp("full")
    model = write_random(folder, {}, spread=0.02)
    yield folder, model
    del model
    for path in folder.iterdir():
        path.unlink()
    gc.collect()


def test_the_full_size_agrees_too(full: tuple[Path, GPT2LMHeadModel]) -> None:
    folder, model = full
    session = Session.open(str(folder))
    ids = [464, 3797, 3332, 319, 262, 2603]
    assert [t.id for t in session.prepare("The cat sat on the mat").tokens] == ids
    compare(folder, model, ids)
    stepper = session.stepper()
    ours = [step.token.id for step, _ in zip(stepper.steps(ids), range(50), strict=False)]
    assert ours == greedy(model, ids, 50, 1024)


def test_the_budget_of_the_full_size_is_124_million(full: tuple[Path, GPT2LMHeadModel]) -> None:
    folder, _ = full
    outcome = command("budget", "-m", str(folder), "--json")
    assert outcome.code == 0, outcome.err
    assert outcome.json["total"] == 124_439_808


def test_the_full_size_opens_in_the_explorer(full: tuple[Path, GPT2LMHeadModel]) -> None:
    folder, _ = full
    with Explorer("-m", str(folder), "-p", "Hello world") as explorer:
        assert "“Hello world”" in explorer.title
        explorer.send("6")
        explorer.wait_for("124,439,808")
