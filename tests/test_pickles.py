"""Pickled checkpoints: nothing in them ever runs, and what is refused is said in plain words."""

from __future__ import annotations

import io
import os
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from commands import command, process
from foreign import (
    ARGS,
    algebra,
    gpt2_state,
    nanogpt_state,
    our_logits,
    write_config,
    write_folder,
    write_nanogpt,
)
from test_checkpoints import refusal
from test_gpt2_folders import close

from tui_gpt.checkpoints.pickles import load_state


class Command:
    """Runs a command when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, ...]:
        return (os.system, (f"touch {self.mark}",))


def pickled_folder(folder: Path, *, old: bool = False) -> Path:
    """Write a GPT-2 folder whose weights are one pickle."""
    folder.mkdir()
    write_config(folder)
    torch.save(gpt2_state(), folder / "pytorch_model.bin", _use_new_zipfile_serialization=not old)
    return folder / "pytorch_model.bin"


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize("where", ["ckpt.pt", "pytorch_model.bin"])
def test_what_would_run_a_command_does_not(tmp_path: Path, where: str, old: bool) -> None:
    mark = tmp_path / "MARK"  # case A14
    folder = tmp_path / "model"
    folder.mkdir()
    evil: object = {"model": Command(mark), "model_args": ARGS}
    if where == "pytorch_model.bin":
        write_config(folder)
        evil = {**gpt2_state(), "odd": Command(mark)}
    torch.save(evil, folder / where, _use_new_zipfile_serialization=not old)
    outcome = command("trace", "-m", str(folder), "--ids", "1")
    assert (outcome.code, outcome.out) == (1, "")
    assert "would call posix.system" in outcome.err
    assert outcome.err.count("\n") == 1
    for advice in ("weights_only", "allowlist", "safe_globals", "trust"):
        assert advice not in outcome.err
    assert not mark.exists()


class TorchsOwn:
    """Calls a function of torch when it is unpickled."""

    def __reduce__(self) -> tuple[object, ...]:
        return (torch.hub.get_dir, ())


def test_what_torch_refuses_is_refused_without_its_advice(tmp_path: Path) -> None:
    torch.save({"wte.weight": TorchsOwn()}, tmp_path / "ckpt.pt")
    said = refusal(tmp_path)
    assert said.endswith("torch's weights-only loading does not take it")
    for advice in ("weights_only", "safe_globals", "allowlist"):
        assert advice not in said


@pytest.mark.parametrize("protocol", [0, 1, 2, 4, 5])
def test_a_bare_pickle_runs_nothing(tmp_path: Path, protocol: int) -> None:
    mark = tmp_path / "MARK"
    (tmp_path / "ckpt.pt").write_bytes(pickle.dumps(Command(mark), protocol))
    assert "ckpt.pt" in refusal(tmp_path)
    assert not mark.exists()


def test_escape_codes_in_a_librarys_words_reach_no_terminal(tmp_path: Path) -> None:
    torch.save({"model": np.float64(1.5), "model_args": ARGS}, tmp_path / "ckpt.pt")  # case A35
    outcome = process("trace", "-m", str(tmp_path), "--ids", "1")
    assert (outcome.code, outcome.out) == (1, "")
    assert "\x1b" not in outcome.err
    assert "Traceback" not in outcome.err
    assert "multiarray.scalar" in outcome.err


def test_a_pickle_of_the_old_form_is_read(tmp_path: Path) -> None:
    file = pickled_folder(tmp_path / "old", old=True)
    assert not zipfile.is_zipfile(file)
    assert close(our_logits(file), algebra(gpt2_state()))


@pytest.mark.parametrize("old", [False, True])
def test_a_pickle_cut_anywhere_is_refused(tmp_path: Path, old: bool) -> None:
    file = pickled_folder(tmp_path / "cut", old=old)
    whole = file.read_bytes()
    for kept in (0, 1, 7, 63, 200, len(whole) // 2, len(whole) - 5, len(whole) - 1):
        file.write_bytes(whole[:kept])
        assert "pytorch_model.bin" in refusal(file.parent)


@pytest.mark.parametrize("old", [False, True])
def test_a_pickle_does_not_give_more_than_it_stores(tmp_path: Path, old: bool) -> None:
    file = pickled_folder(tmp_path / "model", old=old)
    # wte.weight is said to be (12, 8) and 11 · 8 numbers are stored: the last row would be
    # whatever was in memory.
    larger = (b"K\x0bK\x08\x86", b"K\x0cK\x08\x86")
    if old:
        whole = file.read_bytes()
        assert whole.count(larger[0]) == 1
        file.write_bytes(whole.replace(*larger))
    else:
        with zipfile.ZipFile(file) as archive:
            members = {member.filename: archive.read(member) for member in archive.infolist()}
        with zipfile.ZipFile(file, "w") as archive:
            for name, content in members.items():
                archive.writestr(name, content.replace(*larger))
    write_config(file.parent, vocab_size=12)
    assert "pytorch_model.bin is damaged or incomplete" in refusal(file.parent)


@pytest.mark.parametrize("old", [False, True])
def test_a_tensor_that_repeats_few_numbers_is_refused(tmp_path: Path, old: bool) -> None:
    folder = write_folder(tmp_path / "gpt2")
    (folder / "model.safetensors").unlink()
    state = {**gpt2_state(), "wpe.weight": torch.ones(1, 1).expand(16, 8)}
    torch.save(state, folder / "pytorch_model.bin", _use_new_zipfile_serialization=not old)
    assert "wpe.weight (16, 8) needs 128 numbers and 1 are stored" in refusal(folder)


def test_a_zip_that_unpacks_to_more_than_it_is_is_refused(tmp_path: Path) -> None:
    file = write_nanogpt(tmp_path / "ckpt.pt")
    with zipfile.ZipFile(file) as old:
        members = {member.filename: old.read(member) for member in old.infolist()}
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as new:
        for name, content in members.items():
            new.writestr(name, content)
        new.writestr("archive/data/zeros", b"\0" * 10_000_000)
    assert "a checkpoint is not packed" in refusal(tmp_path)


@pytest.mark.parametrize("n_pickles", [0, 2])
def test_a_zip_of_another_make_is_refused(tmp_path: Path, n_pickles: int) -> None:
    with zipfile.ZipFile(tmp_path / "ckpt.pt", "w") as archive:
        archive.writestr("readme", "hello")
        for i in range(n_pickles):
            archive.writestr(f"archive{i}/data.pkl", pickle.dumps({}, 2))
    assert f"is a zip with {n_pickles} pickles" in refusal(tmp_path)


def test_a_very_long_pickle_is_not_read(tmp_path: Path) -> None:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02" + b"N0" * 5_000_001 + b"N.")
    (tmp_path / "ckpt.pt").write_bytes(content.getvalue())
    assert "bytes of instructions" in refusal(tmp_path)


@pytest.mark.parametrize(
    "value",
    [7, "text", [torch.ones(2)], {}, {"a": {"b": torch.ones(2)}}, {1: torch.ones(2)}, None],
)
def test_a_pickle_of_something_else_is_refused(tmp_path: Path, value: object) -> None:
    write_config(tmp_path)
    torch.save(value, tmp_path / "pytorch_model.bin")
    assert "pytorch_model.bin" in refusal(tmp_path)


@pytest.mark.parametrize("kind", ["sparse", "complex", "whole"])
def test_a_tensor_of_another_kind_is_refused(tmp_path: Path, kind: str) -> None:
    odd = {
        "sparse": torch.ones(16, 8).to_sparse(),
        "complex": torch.ones(16, 8, dtype=torch.complex64),
        "whole": torch.ones(16, 8, dtype=torch.int32),
    }
    write_config(tmp_path)
    torch.save({**gpt2_state(), "wpe.weight": odd[kind]}, tmp_path / "pytorch_model.bin")
    assert "pytorch_model.bin" in refusal(tmp_path)


def test_weights_of_a_pickle_stay_in_the_file(tmp_path: Path) -> None:
    file = write_nanogpt(tmp_path / "ckpt.pt")
    table = load_state(file).tensors["transformer.wte.weight"]
    assert str(file) in Path("/proc/self/maps").read_text()
    assert torch.equal(table, nanogpt_state()["transformer.wte.weight"])
