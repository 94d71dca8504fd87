"""Tiny models that every test below the screen shares: random weights, nothing symmetric."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

# More threads than idle cores make small products many times slower, here and in subprocesses.
os.environ["OMP_NUM_THREADS"] = "1"

import pytest
import torch

from tui_gpt.checkpoints.weights import save_model
from tui_gpt.config import GPTConfig
from tui_gpt.model.gpt import GPT
from tui_gpt.tokenization.characters import CharacterTokenizer

torch.set_num_threads(1)

CHARACTERS = "\n abcdefghi"
"""The tiny vocabulary: eleven characters, in id order."""

TINY = GPTConfig(n_layer=2, n_head=2, n_embd=8, n_inner=32, block_size=16, vocab_size=11)

TINY_2017 = replace(TINY, norm="post", positions="sinusoidal", activation="relu")


def tiny_gpt(config: GPTConfig = TINY, seed: int = 7) -> GPT:
    """Build a model whose every parameter, norms and biases included, is drawn at random."""
    model = GPT(config)
    draw = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0.1, 0.5, generator=draw)
    return model.requires_grad_(False).eval()


def write_tiny_model(folder: Path, config: GPTConfig = TINY, **card: Any) -> GPT:
    """Write a tiny model as a folder of our own."""
    model = tiny_gpt(config)
    folder.mkdir()
    save_model(folder, model, CharacterTokenizer(CHARACTERS).to_json(), card)
    return model


@pytest.fixture(params=["pre", "post"])
def either_norm(request: pytest.FixtureRequest) -> GPTConfig:
    """GPT-2's order and that of 2017, one after the other."""
    return TINY if request.param == "pre" else TINY_2017


@pytest.fixture
def tiny_folder(tmp_path: Path) -> Path:
    """A folder with a tiny pre-norm model."""
    folder = tmp_path / "tiny"
    write_tiny_model(folder)
    return folder
