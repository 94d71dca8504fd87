"""Model folders: what is written is what is read, and nothing damaged is ever filled in."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import safetensors.torch
import torch
from conftest import CHARACTERS, TINY, TINY_2017, write_tiny_model
from vocabularies import tokenizer_of

from tui_gpt.checkpoints.find import find_model
from tui_gpt.checkpoints.headers import read_header
from tui_gpt.checkpoints.weights import discard_model, load_weights, read_card
from tui_gpt.config import GPTConfig
from tui_gpt.errors import CannotWrite, DamagedModel, UnknownModel
from tui_gpt.files import write_whole
from tui_gpt.tokenization.characters import CharacterTokenizer

IDS = torch.tensor([[3, 1, 4, 1, 5]])

LFS_POINTER = (
    "version https://git-lfs.github.com/spec/v1\n"
    "oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\n"
    "size 548105171\n"
)


def opened(folder: Path) -> None:
    """Read all there is to a model."""
    source = find_model(str(folder))
    tokenizer_of(source)
    load_weights(source)


def refusal(folder: Path) -> str:
    """Open a folder that must be refused, and give the one line that says why."""
    with pytest.raises((DamagedModel, UnknownModel)) as refused:
        opened(folder)
    said = str(refused.value)
    assert "\n" not in said
    return said


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("shape", [TINY, TINY_2017, replace(TINY, bias=False, n_inner=24)])
def test_a_folder_gives_back_the_model_that_was_written(
    tmp_path: Path, shape: GPTConfig, tied: bool
) -> None:
    config = replace(shape, tied=tied)
    written = write_tiny_model(tmp_path / "model", config)
    source = find_model(str(tmp_path / "model"))
    read = load_weights(source)
    assert source.config == config
    assert source.n_parameters == sum(parameter.numel() for parameter in read.parameters())
    tokenizer = tokenizer_of(source)
    assert isinstance(tokenizer, CharacterTokenizer)
    assert tokenizer.characters == tuple(CHARACTERS)
    assert torch.equal(read(IDS), written(IDS))
    assert (read.lm_head.weight is read.wte.weight) == tied
    assert not read.training
    assert not any(parameter.requires_grad for parameter in read.parameters())


def test_a_tied_head_is_stored_once(tmp_path: Path) -> None:
    write_tiny_model(tmp_path / "tied", replace(TINY, tied=True))
    keys = [entry.key for entry in read_header(tmp_path / "tied" / "model.safetensors")]
    assert "wte.weight" in keys
    assert "lm_head.weight" not in keys


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_weights_of_other_precisions_are_read_as_float32(
    tiny_folder: Path, dtype: torch.dtype
) -> None:
    file = tiny_folder / "model.safetensors"
    state = safetensors.torch.load(file.read_bytes())
    file.write_bytes(safetensors.torch.save({key: x.to(dtype) for key, x in state.items()}))
    model = load_weights(find_model(str(tiny_folder)))
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
    for key, tensor in model.state_dict().items():
        assert torch.equal(tensor, state[key].to(dtype).float())


@pytest.mark.parametrize(
    ("cut", "said"),
    [
        (lambda whole: whole[:-5], "{short} bytes found, {size} expected"),
        (lambda whole: whole + b"xy", "{long} bytes found, {size} expected"),
        (lambda whole: b"", "0 bytes, and its header asks for 8"),
        (lambda whole: whole[:7], "7 bytes, and its header asks for"),
        (lambda whole: whole[:100], "100 bytes, and its header asks for"),
        (lambda whole: b"\xff" * 64, "64 bytes, and its header asks for"),
    ],
)
def test_an_incomplete_weight_file_is_refused_with_both_sizes(
    tiny_folder: Path, cut: Callable[[bytes], bytes], said: str
) -> None:
    file = tiny_folder / "model.safetensors"  # case A11
    whole = file.read_bytes()
    file.write_bytes(cut(whole))
    size = len(whole)
    expected = said.format(size=size, short=size - 5, long=size + 2)
    assert refusal(tiny_folder).startswith(f"{file} is damaged or incomplete: {expected}")


def test_a_git_lfs_pointer_is_called_one(tiny_folder: Path) -> None:
    file = tiny_folder / "model.safetensors"  # case A12
    file.write_text(LFS_POINTER)
    assert "is a Git LFS pointer of 134 bytes; the real file was not downloaded" in refusal(
        tiny_folder
    )


@pytest.mark.parametrize(
    "header",
    [
        b"not json",
        b"\xff\xfe",
        b"[]",
        b"7",
        b'{"wte.weight": 5}',
        b'{"wte.weight": {"dtype": "F32"}}',
        b'{"wte.weight": {"dtype": "F32", "shape": 5, "data_offsets": [0, 0]}}',
        b'{"wte.weight": {"dtype": "F32", "shape": [1], "data_offsets": ["a", "b"]}}',
        b'{"wte.weight": {"dtype": ["F32"], "shape": [11, 8], "data_offsets": [0, 0]}}',
        b"[" * 100_000,
    ],
)
def test_a_header_of_another_make_is_refused(tiny_folder: Path, header: bytes) -> None:
    file = tiny_folder / "model.safetensors"
    file.write_bytes(len(header).to_bytes(8, "little") + header)
    assert str(file) in refusal(tiny_folder)


def test_offsets_that_lie_are_refused(tiny_folder: Path) -> None:
    file = tiny_folder / "model.safetensors"
    whole = file.read_bytes()
    length = int.from_bytes(whole[:8], "little")
    header = json.loads(whole[8 : 8 + length])
    header["wte.weight"]["data_offsets"] = header["wpe.weight"]["data_offsets"]
    lying = json.dumps(header, separators=(",", ":")).encode().ljust(length)
    file.write_bytes(len(lying).to_bytes(8, "little") + lying + whole[8 + length :])
    assert str(file) in refusal(tiny_folder)


def rewrite(folder: Path, without: str = "", **changed: torch.Tensor) -> None:
    """Leave one tensor out of a weight file, and put others in; a name's dots are written __."""
    file = folder / "model.safetensors"
    state = safetensors.torch.load(file.read_bytes())
    state |= {name.replace("__", "."): tensor for name, tensor in changed.items()}
    state.pop(without, None)
    file.write_bytes(safetensors.torch.save(state))


def test_a_missing_tensor_is_named_and_never_invented(tiny_folder: Path) -> None:
    rewrite(tiny_folder, without="h.1.mlp.c_fc.weight")
    said = refusal(tiny_folder)
    assert said.endswith("has no h.1.mlp.c_fc.weight (32, 8); the config asks for it")


def test_a_tensor_too_many_is_named(tiny_folder: Path) -> None:
    rewrite(tiny_folder, h__2__ln_1__weight=torch.ones(8))
    assert refusal(tiny_folder).endswith(
        "has h.2.ln_1.weight (8,), which the config has no place for"
    )


def test_a_tensor_of_another_shape_is_named_with_both_shapes(tiny_folder: Path) -> None:
    rewrite(tiny_folder, wpe__weight=torch.ones(12, 8))
    assert refusal(tiny_folder).endswith("wpe.weight is (12, 8) but the config asks for (16, 8)")


def test_a_tensor_of_whole_numbers_is_no_weight(tiny_folder: Path) -> None:
    rewrite(tiny_folder, wpe__weight=torch.ones(16, 8, dtype=torch.int64))
    assert refusal(tiny_folder).endswith("wpe.weight holds I64, which is no kind of weight")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"n_layer": 3}, "has no h.2.ln_1.weight (8,)"),  # case A25
        ({"n_layer": 1}, "has h.1."),
        ({"n_embd": 12}, "wte.weight is (11, 8) but the config asks for (11, 12)"),
        ({"n_layer": 2_000_000_000}, "n_layer is 2000000000; it must be from 1 to 10,000"),
        ({"vocab_size": 12}, "has 11 characters but config.json says vocab_size 12"),
        ({"n_head": 3}, "n_embd 8 does not divide into n_head 3"),
        ({"format": "other"}, 'does not say "format": "tui-gpt"'),
        ({"n_embd": None}, "n_embd is None"),
    ],
)
def test_a_config_that_contradicts_the_weights_is_refused(
    tiny_folder: Path, changes: dict[str, object], said: str
) -> None:
    file = tiny_folder / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))
    assert said in refusal(tiny_folder)


@pytest.mark.parametrize("content", ["", "{", "[]", "[" * 100_000, '"tui-gpt"', "\x00"])
def test_a_config_that_is_no_json_object_is_refused(tiny_folder: Path, content: str) -> None:
    (tiny_folder / "config.json").write_text(content)
    assert f"{tiny_folder / 'config.json'} is damaged: it is no JSON" in refusal(tiny_folder)


def test_a_byte_order_mark_is_allowed(tiny_folder: Path) -> None:
    for name in ("config.json", "characters.json", "card.json"):  # case A28
        file = tiny_folder / name
        file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    source = find_model(str(tiny_folder))
    load_weights(source)
    assert read_card(source) == {}


@pytest.mark.parametrize("name", ["config.json", "characters.json", "model.safetensors"])
def test_a_folder_or_pipe_of_a_files_name_is_refused_at_once(
    tmp_path: Path, tiny_folder: Path, name: str
) -> None:
    piped = tmp_path / "piped"  # case A32
    shutil.copytree(tiny_folder, piped)
    (tiny_folder / name).unlink()
    (tiny_folder / name).mkdir()
    assert f"{tiny_folder / name}: it is a folder" in refusal(tiny_folder)
    (piped / name).unlink()
    os.mkfifo(piped / name)
    assert f"{piped / name}: it is a pipe or a device" in refusal(piped)


@pytest.mark.parametrize("name", ["config.json", "characters.json", "model.safetensors"])
def test_a_file_one_may_not_read_is_named(name: str) -> None:
    with tempfile.TemporaryDirectory() as place:  # case A32
        os.chmod(place, 0o755)
        folder = Path(place) / "model"
        write_tiny_model(folder)
        os.chmod(folder / name, 0)
        said = without_privileges(lambda: refusal(folder))
    assert said == f"cannot read {folder / name}: Permission denied"


def without_privileges(action: Callable[[], str]) -> str:
    """Do something as a person who may read only what everyone may; root would read it all."""
    if os.getuid() != 0:
        return action()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            os.write(writing, action().encode())
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading) as pipe:
        return pipe.read()


@pytest.mark.parametrize("name", ["characters.json", "model.safetensors"])
def test_a_missing_file_is_named(tiny_folder: Path, name: str) -> None:
    (tiny_folder / name).unlink()
    assert f"{tiny_folder / name} is missing" in refusal(tiny_folder)


def test_a_folder_without_a_config_is_no_model(tmp_path: Path) -> None:
    assert refusal(tmp_path) == (
        f"no model in {tmp_path}: no weights here, neither config.json nor ckpt.pt"
    )


@pytest.mark.parametrize("name", ["gpt2", "", "nowhere/at/all", "~nobody-of-this-name/x", "a\0b"])
def test_an_unknown_name_is_answered_with_what_can_be_given(name: str) -> None:
    with pytest.raises(UnknownModel) as refused:  # cases A29, E13
        find_model(name)
    assert f"no model {name!r}: give shakespeare or shakespeare-2017" in str(refused.value)
    assert "nothing is downloaded" in str(refused.value)


def test_a_file_of_the_folder_stands_for_the_folder(tiny_folder: Path) -> None:
    for name in ("config.json", "model.safetensors"):  # case A29
        assert find_model(str(tiny_folder / name)).path == tiny_folder
    assert find_model(f"{tiny_folder}/").path == tiny_folder
    with pytest.raises(UnknownModel, match="is a file; give the model's folder"):
        find_model(str(tiny_folder / "card.json"))


def test_a_tilde_and_blanks_in_a_path_are_understood(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tiny_model(tmp_path / "my model")  # case A29
    monkeypatch.setenv("HOME", str(tmp_path))
    assert find_model("~/my model").path == tmp_path / "my model"


def test_a_card_may_be_missing_but_not_damaged(tiny_folder: Path) -> None:
    source = find_model(str(tiny_folder))
    (tiny_folder / "card.json").write_text("[]")
    with pytest.raises(DamagedModel, match=r"card\.json is damaged: it is no JSON object"):
        read_card(source)
    (tiny_folder / "card.json").unlink()
    assert read_card(source) == {}


def test_a_file_is_written_whole_with_ordinary_rights_and_nothing_beside_it(
    tmp_path: Path,
) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"old")
    write_whole(file, b"new")
    mask = os.umask(0o022)
    os.umask(mask)
    assert file.read_bytes() == b"new"
    assert file.stat().st_mode & 0o777 == 0o666 & ~mask
    assert os.listdir(tmp_path) == ["file"]


def test_a_device_or_folder_is_not_written_over(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")  # as root, a rename would replace /dev/null itself
    (tmp_path / "folder").mkdir()
    for name, why in (("pipe", "it is a pipe or a device"), ("folder", "it is a folder")):
        with pytest.raises(CannotWrite, match=f"cannot write {tmp_path / name}: {why}"):
            write_whole(tmp_path / name, b"new")
    with pytest.raises(CannotWrite, match="No such file or directory"):
        write_whole(tmp_path / "nowhere" / "file", b"new")
    assert sorted(os.listdir(tmp_path)) == ["folder", "pipe"]


def test_discarding_a_model_leaves_what_others_put_there(tmp_path: Path) -> None:
    ours, shared = tmp_path / "ours", tmp_path / "shared"
    write_tiny_model(ours)
    write_tiny_model(shared)
    (shared / "notes.txt").write_text("mine")
    discard_model(ours)
    discard_model(shared)
    assert not ours.exists()
    assert os.listdir(shared) == ["notes.txt"]
