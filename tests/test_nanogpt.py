"""nanoGPT checkpoints: sizes and tensors in one pickle, matrices the other way round."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch
from commands import command
from foreign import (
    ARGS,
    TIED,
    UNTIED,
    algebra,
    gpt2_state,
    nanogpt_state,
    our_logits,
    write_nanogpt,
)
from test_checkpoints import refusal
from test_gpt2_folders import close

from tui_gpt.checkpoints.find import find_model
from tui_gpt.checkpoints.weights import load_weights
from tui_gpt.session import Session


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write_nanogpt(tmp_path / "ckpt.pt")


def test_a_checkpoint_computes_what_its_tensors_say(file: Path) -> None:
    for asked in (file, file.parent):
        source = find_model(str(asked))
        assert (source.kind, source.config.activation) == ("nanogpt", "gelu")
        assert (source.config.tied, source.n_parameters) == (True, TIED)
        assert close(our_logits(asked), algebra(gpt2_state(), activation="gelu"))


@pytest.mark.parametrize("prefix", ["_orig_mod.", "module._orig_mod.", "_orig_mod.module."])
def test_the_names_of_a_compiled_model_are_the_same_model(tmp_path: Path, prefix: str) -> None:
    state = {prefix + key: tensor for key, tensor in nanogpt_state().items()}  # case A16
    compiled = write_nanogpt(tmp_path / "compiled.pt", state)
    clean = write_nanogpt(tmp_path / "ckpt.pt")
    assert torch.equal(our_logits(compiled), our_logits(clean))


def test_without_biases_there_are_none(tmp_path: Path) -> None:
    state = nanogpt_state(bias=False)
    file = write_nanogpt(tmp_path / "ckpt.pt", state, bias=False)
    model = load_weights(find_model(str(file)))
    assert not model.config.bias
    assert not any(name.endswith("bias") for name, _ in model.named_parameters())
    zeros = {
        key: torch.zeros_like(tensor) if key.endswith("bias") else tensor
        for key, tensor in gpt2_state().items()
    }
    assert close(our_logits(file), algebra(zeros, activation="gelu"))
    silent = write_nanogpt(tmp_path / "silent.pt", state, bias=None)
    assert torch.equal(our_logits(silent), our_logits(file))
    assert "bias; the tensors do: false" in " ".join(find_model(str(silent)).remarks)
    lying = write_nanogpt(tmp_path / "lying.pt", state, bias=True)
    assert "has no h.0.ln_1.bias (8,)" in refusal(lying)


def test_a_head_that_differs_is_used_and_said(tmp_path: Path) -> None:
    state = nanogpt_state()
    head = state["lm_head.weight"] = torch.randn(11, 8)
    file = write_nanogpt(tmp_path / "ckpt.pt", state)
    assert find_model(str(file)).n_parameters == UNTIED
    assert close(our_logits(file), algebra(gpt2_state(), activation="gelu", head=head))
    assert "differ" in find_model(str(file)).notices[0]


def test_a_padded_vocabulary_has_ids_that_stand_for_nothing(tmp_path: Path) -> None:
    state = gpt2_state(vocab=50304)  # case A17
    state["ln_f.bias"] = torch.full((8,), 5.0)
    state["wte.weight"][50300] = 9.0
    file = write_nanogpt(tmp_path / "ckpt.pt", nanogpt_state(state), vocab_size=50304)
    run = Session.open(str(file)).prepare("Hello world")
    assert [token.id for token in run.tokens] == [15496, 995]
    outcome = command("generate", "-m", str(file), "-p", "Hello", "-n", "3")
    assert outcome.code == 0, outcome.err
    assert "<unused 50300>" in outcome.out
    outcome = command("generate", "-m", str(file), "-p", "Hello", "-n", "2", "--json")
    steps = [json.loads(line) for line in outcome.out.splitlines()]
    assert [(step["id"], step["bytes"]) for step in steps] == [(50300, "")] * 2


def test_a_checkpoint_of_a_gpu_opens_on_the_cpu(file: Path) -> None:
    expected = our_logits(file)  # case A19
    tagged = file.with_name("cuda.pt")
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(tagged, "w") as new:
        for member in old.infolist():
            content = old.read(member)
            if member.filename.endswith("data.pkl"):
                assert b"X\x03\x00\x00\x00cpu" in content
                content = content.replace(b"X\x03\x00\x00\x00cpu", b"X\x06\x00\x00\x00cuda:0")
            new.writestr(member.filename, content)
    assert torch.equal(our_logits(tagged), expected)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"n_layer": 3}, "has no h.2.ln_1.weight (8,)"),
        ({"n_layer": 1}, "which the config has no place for"),
        ({"n_embd": 12}, "is (11, 8) but the config asks for (11, 12)"),
        ({"n_embd": "8"}, "n_embd is '8'"),
        ({"vocab_size": None}, "model_args has no vocab_size"),
        ({"block_size": 15}, "is (16, 8) but the config asks for (15, 8)"),
        ({"n_head": 3}, "does not divide into n_head 3"),
        ({"bias": "yes"}, "bias is 'yes'"),
        ({"rotary": True}, "model_args has rotary, which is none of nanoGPT's"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(
    tmp_path: Path, changes: dict[str, Any], said: str
) -> None:
    assert said in refusal(write_nanogpt(tmp_path / "ckpt.pt", **changes))


def test_a_checkpoint_without_sizes_is_refused(tmp_path: Path) -> None:
    torch.save(nanogpt_state(), tmp_path / "ckpt.pt")
    assert "has no model_args, as nanoGPT writes them, and no config.json" in refusal(tmp_path)
    torch.save({"model": nanogpt_state(), "model_args": [1, 2]}, tmp_path / "ckpt.pt")
    assert "model_args is no table of sizes" in refusal(tmp_path)
    torch.save({"model": [1], "model_args": ARGS}, tmp_path / "ckpt.pt")
    assert "holds no tensors by name" in refusal(tmp_path)


def test_an_old_file_with_masks_opens(tmp_path: Path) -> None:
    state = nanogpt_state()
    for i in range(2):
        state[f"transformer.h.{i}.attn.bias"] = torch.ones(16, 16).tril()[None, None]
    file = write_nanogpt(tmp_path / "ckpt.pt", state)
    assert close(our_logits(file), algebra(gpt2_state(), activation="gelu"))
