"""Hugging Face GPT-2 folders: every one that is sound opens with the numbers of plain algebra.

The other half are folders that are not: each is refused in one line that names the thing.
Cases A01 to A33.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from commands import command, process
from foreign import (
    IDS,
    TIED,
    UNTIED,
    algebra,
    gpt2_state,
    our_logits,
    with_prefix,
    write_config,
    write_folder,
    write_shards,
)
from test_checkpoints import LFS_POINTER, refusal, without_privileges

from tui_gpt.checkpoints.find import find_model
from tui_gpt.checkpoints.weights import load_weights
from tui_gpt.records.recording import Recording
from tui_gpt.session import Session, recorded_session

CLOSE = dict(rtol=0, atol=2e-5)
"""Float32 against float64, on logits of a few units."""


def close(logits: torch.Tensor, expected: torch.Tensor) -> bool:
    return torch.allclose(logits.double(), expected, **CLOSE)  # type: ignore[arg-type]


def test_a_folder_computes_what_its_tensors_say(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "gpt2")
    source = find_model(str(folder))
    assert (source.kind, source.path, source.n_parameters) == ("huggingface", folder, TIED)
    assert source.config.activation == "gelu_tanh"
    assert close(our_logits(folder), algebra(gpt2_state()))


@pytest.mark.parametrize("dtype", [torch.uint8, torch.bool, torch.float32])
def test_masks_in_old_files_are_no_weights(tmp_path: Path, dtype: torch.dtype) -> None:
    mask = torch.ones(16, 16).tril().to(dtype)[None, None]  # case A01
    buffers = {f"h.{i}.attn.bias": mask.clone() for i in range(2)}
    buffers |= {f"h.{i}.attn.masked_bias": torch.tensor(-1e4) for i in range(2)}
    old = write_folder(tmp_path / "old", {**gpt2_state(), **buffers})
    new = write_folder(tmp_path / "new")
    assert torch.equal(our_logits(old), our_logits(new))
    assert find_model(str(old)).n_parameters == TIED
    listed = command("budget", "-m", str(old), "--json").json
    assert listed["total"] == TIED


def test_a_mask_that_is_not_causal_is_refused(tmp_path: Path) -> None:
    state = gpt2_state()
    state["h.1.attn.bias"] = torch.ones(1, 1, 16, 16)
    said = refusal(write_folder(tmp_path / "open", state))
    assert "h.1.attn.bias is no causal mask" in said
    state["h.1.attn.bias"] = torch.ones(16, 8)
    said = refusal(write_folder(tmp_path / "odd", state))
    assert "h.1.attn.bias is (16, 8); GPT-2's mask is (1, 1, 16, 16)" in said


@pytest.mark.parametrize("prefix", ["", "transformer.", "module.", "model.", "module.transformer."])
def test_the_same_weights_under_another_prefix_are_the_same_model(
    tmp_path: Path, prefix: str
) -> None:
    folder = write_folder(tmp_path / "gpt2", with_prefix(gpt2_state(), prefix))  # case A02
    assert close(our_logits(folder), algebra(gpt2_state()))


def test_an_unknown_prefix_is_refused_with_the_key(tmp_path: Path) -> None:
    said = refusal(write_folder(tmp_path / "odd", with_prefix(gpt2_state(), "odd.")))
    assert "unsupported architecture" in said
    assert "odd.h.0.attn.c_attn.bias (24,)" in said


def test_one_tensor_under_two_names_is_refused(tmp_path: Path) -> None:
    state = {**gpt2_state(), **with_prefix(gpt2_state(), "transformer.")}
    said = refusal(write_folder(tmp_path / "both", state))
    assert "which are one tensor's name" in said


def test_a_head_that_is_not_in_the_file_is_the_table(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "gpt2")  # case A04
    source = find_model(str(folder))
    assert source.config.tied
    assert source.n_parameters == TIED
    model = load_weights(source)
    assert model.lm_head.weight is model.wte.weight


def test_a_head_of_its_own_is_used_whether_or_not_the_config_says_so(tmp_path: Path) -> None:
    head = torch.randn(11, 8, generator=torch.Generator().manual_seed(1))  # case A06
    state = {**gpt2_state(), "lm_head.weight": head}
    said = write_folder(tmp_path / "said", state, tie_word_embeddings=False)
    silent = write_folder(tmp_path / "silent", state)
    denied = write_folder(tmp_path / "denied", state, tie_word_embeddings=True)
    for folder in (said, silent, denied):
        assert find_model(str(folder)).n_parameters == UNTIED
        assert close(our_logits(folder), algebra(gpt2_state(), head=head))
    assert not any("differ" in notice for notice in find_model(str(said)).notices)
    for folder in (silent, denied):
        notices = Session.open(str(folder)).prepare_ids((1, 2)).notices
        assert any("lm_head.weight and wte.weight differ" in notice for notice in notices)


def test_a_head_that_repeats_the_table_is_counted_once(tmp_path: Path) -> None:
    state = {**gpt2_state(), "lm_head.weight": gpt2_state()["wte.weight"]}
    source = find_model(str(write_folder(tmp_path / "twice", state)))
    assert source.config.tied
    assert source.n_parameters == TIED
    untied = write_folder(tmp_path / "untied", state, tie_word_embeddings=False)
    assert find_model(str(untied)).n_parameters == UNTIED


def test_a_head_the_config_asks_for_is_not_invented(tmp_path: Path) -> None:
    said = refusal(write_folder(tmp_path / "gpt2", tie_word_embeddings=False))
    assert said.endswith("has no lm_head.weight (11, 8); the config asks for it")


@pytest.mark.parametrize("pickled", [False, True])
def test_shards_are_one_model(tmp_path: Path, pickled: bool) -> None:
    folder = write_shards(tmp_path / "shards", gpt2_state(), pickled=pickled)
    kind = "bin" if pickled else "safetensors"
    stem = "pytorch_model" if pickled else "model"
    index = folder / f"{stem}.{kind}.index.json"
    for asked in (folder, index, folder / f"{stem}-00002-of-00002.{kind}"):
        assert close(our_logits(asked), algebra(gpt2_state()))
        files = find_model(str(asked)).files
        assert files is not None
        assert len(files.paths) == 2


def test_weights_are_never_mixed_and_the_rest_is_named(tmp_path: Path) -> None:
    folder = write_shards(tmp_path / "gpt2", gpt2_state())  # case A08
    stale = {key: torch.zeros_like(tensor) for key, tensor in gpt2_state().items()}
    (folder / "model.safetensors").write_bytes(safetensors.torch.save(stale))
    source = find_model(str(folder))
    assert torch.equal(our_logits(folder), torch.zeros(1, 8, 11))  # the single file comes first
    assert source.files is not None
    assert source.files.paths == (folder / "model.safetensors",)
    assert source.notices[0] == (
        "read: model.safetensors; also there and not read: model.safetensors.index.json"
    )
    asked = folder / "model.safetensors.index.json"
    assert close(our_logits(asked), algebra(gpt2_state()))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda index: index.pop("weight_map"), "has no weight_map"),
        (lambda index: index["weight_map"].pop("wpe.weight"), "has wpe.weight, which"),
        (
            lambda index: index["weight_map"].update(odd="model-00001-of-00002.safetensors"),
            "has no odd;",
        ),
        (
            lambda index: index["weight_map"].update({"wpe.weight": "../../secret.safetensors"}),
            "which is no file of this folder",
        ),
        (
            lambda index: index["weight_map"].update({"wpe.weight": "run.bin"}),
            "which is no .safetensors file",
        ),
        (
            lambda index: index["weight_map"].update({"wpe.weight": "gone.safetensors"}),
            "gone.safetensors is missing",
        ),
        (lambda index: index.update(weight_map=7), "has no weight_map"),
    ],
)
def test_an_index_that_does_not_fit_is_refused(tmp_path: Path, change: Any, said: str) -> None:
    folder = write_shards(tmp_path / "gpt2", gpt2_state())
    file = folder / "model.safetensors.index.json"
    index = json.loads(file.read_text())
    change(index)
    file.write_text(json.dumps(index))
    assert said in refusal(folder)


def test_a_missing_shard_is_named(tmp_path: Path) -> None:
    folder = write_shards(tmp_path / "gpt2", gpt2_state())
    (folder / "model-00002-of-00002.safetensors").unlink()
    assert "model-00002-of-00002.safetensors is missing" in refusal(folder)
    (folder / "model.safetensors.index.json").unlink()
    with pytest.raises(Exception, match="is one shard of several"):
        find_model(str(folder / "model-00001-of-00002.safetensors"))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_other_precisions_are_computed_in_float32(tmp_path: Path, dtype: torch.dtype) -> None:
    state = {key: tensor.to(dtype) for key, tensor in gpt2_state().items()}  # case A09
    folder = write_folder(tmp_path / "gpt2", state)
    model = load_weights(find_model(str(folder)))
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
    assert close(model(IDS), algebra(state))
    assert command("trace", "-m", str(folder), "--ids", "1,2,3").code == 0


@pytest.mark.parametrize(
    ("cut", "said"),
    [
        (lambda whole: whole[:-5], "bytes found, {size} expected"),
        (lambda whole: b"", "0 bytes"),
        (lambda whole: whole[:7], "7 bytes"),
        (lambda whole: whole + b"xy", "bytes found, {size} expected"),
    ],
)
def test_a_file_that_is_not_whole_is_named_with_both_sizes(
    tmp_path: Path, cut: Any, said: str
) -> None:
    folder = write_folder(tmp_path / "gpt2")  # case A11
    file = folder / "model.safetensors"
    whole = file.read_bytes()
    file.write_bytes(cut(whole))
    found = refusal(folder)
    assert found.startswith(f"{file} is damaged or incomplete")
    assert said.format(size=len(whole)) in found


@pytest.mark.parametrize("name", ["model.safetensors", "pytorch_model.bin"])
def test_a_pointer_to_a_file_is_not_the_file(tmp_path: Path, name: str) -> None:
    folder = write_folder(tmp_path / "gpt2")  # case A12
    (folder / "model.safetensors").unlink()
    (folder / name).write_text(LFS_POINTER)
    assert "is a Git LFS pointer" in refusal(folder)
    assert "not downloaded" in refusal(folder)


@pytest.mark.parametrize(
    ("changes", "drop", "width", "count"),
    [
        ({"n_inner": None}, (), 32, TIED),
        ({}, ("n_inner",), 32, TIED),
        ({"n_inner": 24}, (), 24, 1704),
    ],
)
def test_the_feed_forward_width_is_the_configs(
    tmp_path: Path, changes: dict[str, Any], drop: tuple[str, ...], width: int, count: int
) -> None:
    state = gpt2_state(inner=width)  # case A21
    folder = write_folder(tmp_path / "gpt2", state, drop=drop, **changes)
    source = find_model(str(folder))
    assert (source.config.n_inner, source.n_parameters) == (width, count)
    assert close(our_logits(folder), algebra(state))


@pytest.mark.parametrize("name", ["gelu", "gelu_new", "gelu_pytorch_tanh", "relu"])
def test_each_activation_is_the_one_that_was_named(tmp_path: Path, name: str) -> None:
    folder = write_folder(tmp_path / "gpt2", activation_function=name)  # case A22
    assert close(our_logits(folder), algebra(gpt2_state(), activation=name))


@pytest.mark.parametrize("epsilon", [1e-12, 1e-3, 0.5])
def test_the_epsilon_is_the_configs(tmp_path: Path, epsilon: float) -> None:
    folder = write_folder(tmp_path / "gpt2", layer_norm_epsilon=epsilon)
    assert close(our_logits(folder), algebra(gpt2_state(), epsilon=epsilon))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"activation_function": "swoosh"}, "activation_function is 'swoosh'"),
        ({"activation_function": ["gelu"]}, "activation_function is ['gelu']"),
        ({"scale_attn_weights": False}, "scale_attn_weights is False, which is not computed"),
        ({"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx is True"),
        ({"add_cross_attention": True}, "add_cross_attention is True"),
        ({"pruned_heads": {"0": [1]}}, "pruned_heads is {'0': [1]}"),
        ({"quantization_config": {"bits": 4}}, "quantization_config is {'bits': 4}"),
        ({"model_type": "mamba"}, "unsupported architecture 'mamba'"),  # case A24
        ({"n_layer": 3}, "has no h.2.ln_1.weight (8,)"),  # case A25
        ({"n_layer": 1}, "has h.1."),
        ({"n_embd": 12}, "wte.weight is (11, 8) but the config asks for (11, 12)"),
        ({"vocab_size": 10}, "wte.weight is (11, 8) but the config asks for (10, 8)"),  # case A33
        ({"n_positions": 20}, "wpe.weight is (16, 8) but the config asks for (20, 8)"),
        ({"n_inner": 24}, "h.0.mlp.c_fc.weight is (8, 32) but the config asks for (8, 24)"),
        ({"n_head": 3}, "n_embd 8 does not divide into n_head 3"),
        ({"n_head": 0}, "n_head is 0"),
        ({"n_layer": 10**9}, "n_layer is 1000000000"),
        ({"n_layer": 9999}, "has no h.2.ln_1.weight (8,)"),
        ({"n_layer": True}, "n_layer is True"),
        ({"n_embd": "8"}, "n_embd is '8'"),
        ({"n_embd": 8.0}, "n_embd is 8.0"),
        ({"hidden_size": 12}, "n_embd is 8 and hidden_size is 12"),
        ({"n_ctx": 8}, "n_positions is 16 and n_ctx is 8"),
        ({"layer_norm_epsilon": "1e-5"}, "layer_norm_epsilon is '1e-5'"),
        ({"layer_norm_epsilon": None}, "layer_norm_epsilon is None"),
        ({"layer_norm_epsilon": -1}, "layer_norm_epsilon is -1"),
        ({"layer_norm_epsilon": float("nan")}, "layer_norm_epsilon is nan"),
        ({"tie_word_embeddings": "no"}, "tie_word_embeddings is 'no'"),
    ],
)
def test_what_the_config_asks_for_is_honoured_or_refused_by_name(
    tmp_path: Path, changes: dict[str, Any], said: str
) -> None:
    assert said in refusal(write_folder(tmp_path / "gpt2", **changes))


def test_attention_in_another_order_changes_nothing_in_float32(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "gpt2", reorder_and_upcast_attn=True)
    assert close(our_logits(folder), algebra(gpt2_state()))
    assert any("reorder_and_upcast_attn" in remark for remark in find_model(str(folder)).remarks)


@pytest.mark.parametrize("size", ["n_layer", "n_head", "n_embd", "vocab_size", "n_positions"])
def test_no_size_is_ever_assumed(tmp_path: Path, size: str) -> None:
    said = refusal(write_folder(tmp_path / "gpt2", drop=(size,)))  # case A27
    assert f"has no {size}" in said
    assert "768" not in said


def test_other_names_of_sizes_are_understood(tmp_path: Path) -> None:
    aliases: dict[str, Any] = {
        "hidden_size": 8,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "n_ctx": 16,
    }
    folder = write_folder(  # case A27
        tmp_path / "gpt2", drop=("n_embd", "n_layer", "n_head", "n_positions"), **aliases
    )
    assert close(our_logits(folder), algebra(gpt2_state()))


def test_what_the_config_leaves_out_is_said(tmp_path: Path) -> None:
    silent = ("model_type", "architectures", "activation_function", "layer_norm_epsilon")
    folder = write_folder(tmp_path / "gpt2", drop=silent, attn_pdrop=0.1, alibi=True)
    remarks = " / ".join(find_model(str(folder)).remarks)
    for said in ("no model_type", "gelu_new is used", "1e-05 is used", "dropout", "alibi"):
        assert said in remarks
    assert close(our_logits(folder), algebra(gpt2_state()))


@pytest.mark.parametrize("model_type", ["mamba", "gpt2"])
def test_another_architecture_is_refused_as_such(tmp_path: Path, model_type: str) -> None:
    llama = {"model.layers.0.self_attn.q_proj.weight": torch.ones(8, 8)}  # case A24
    neo = {"transformer.h.0.attn.attention.k_proj.weight": torch.ones(8, 8)}
    state = {**gpt2_state(), **(llama if model_type == "mamba" else neo)}
    folder = write_folder(tmp_path / "other", state, model_type=model_type)
    outcome = command("trace", "-m", str(folder), "--ids", "1")
    assert (outcome.code, outcome.out) == (1, "")
    assert "unsupported architecture" in outcome.err


def test_a_three_layer_file_with_a_two_layer_config_is_refused(tmp_path: Path) -> None:
    said = refusal(write_folder(tmp_path / "gpt2", gpt2_state(n_layer=3)))  # case A25
    assert "has h.2.attn.c_attn.bias (24,), which the config has no place for" in said


def test_a_config_is_read_as_utf_8_in_any_locale(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "gpt2")  # case A28
    text = json.dumps(
        {**json.loads((folder / "config.json").read_text()), "_name_or_path": "modèle"},
        ensure_ascii=False,
    )
    (folder / "config.json").write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert "config.json calls the model modèle" in find_model(str(folder)).remarks
    environ = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    outcome = process(
        "trace", "-m", str(folder), "--ids", "1,2", "--format", "json", environ=environ
    )
    assert outcome.code == 0, outcome.err


def test_paths_are_understood_as_people_write_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_folder(tmp_path / "my model")  # case A29
    monkeypatch.setenv("HOME", str(tmp_path))
    for asked in (
        "~/my model",
        "~/my model/",
        *(str(folder / name) for name in os.listdir(folder)),
    ):
        assert find_model(asked).path == folder
    (tmp_path / "empty").mkdir()
    assert "no weights here" in refusal(tmp_path / "empty")
    assert "no such file or folder" in refusal(tmp_path / "missing")
    (folder / "model.safetensors").unlink()
    assert "no weights here" in refusal(folder)
    (folder / "readme.txt").write_text("hello")
    assert "is a file; give the model's folder" in refusal(folder / "readme.txt")


def test_weights_alone_are_not_enough(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "gpt2")
    (folder / "config.json").unlink()
    for asked in (folder, folder / "model.safetensors"):
        assert "has no config.json beside it" in refusal(asked)


@pytest.mark.parametrize("metadata", [None, {}, {"format": "pt"}])
def test_metadata_may_be_missing(tmp_path: Path, metadata: dict[str, str] | None) -> None:
    folder = write_folder(tmp_path / "gpt2", metadata=metadata)  # case A31
    assert close(our_logits(folder), algebra(gpt2_state()))


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "pytorch_model.bin"])
def test_what_is_no_file_is_refused_at_once(tmp_path: Path, name: str) -> None:
    folder = write_folder(tmp_path / "gpt2")  # case A32
    torch.save(gpt2_state(), folder / "pytorch_model.bin")
    if name == "pytorch_model.bin":
        (folder / "model.safetensors").unlink()
    piped = tmp_path / "piped"
    shutil.copytree(folder, piped)
    (folder / name).unlink()
    (folder / name).mkdir()
    assert f"{folder / name}: it is a folder" in refusal(folder)
    (piped / name).unlink()
    os.mkfifo(piped / name)
    assert f"{piped / name}: it is a pipe or a device" in refusal(piped)
    assert "is a pipe or a device" in refusal(piped / name)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "pytorch_model.bin"])
def test_a_file_without_permission_is_named(name: str) -> None:
    with tempfile.TemporaryDirectory() as place:  # case A32
        os.chmod(place, 0o755)
        folder = write_folder(Path(place) / "model")
        if name == "pytorch_model.bin":
            (folder / "model.safetensors").unlink()
            torch.save(gpt2_state(), folder / name)
        os.chmod(folder / name, 0)
        said = without_privileges(lambda: refusal(folder))
        os.chmod(folder, 0)
        locked = without_privileges(lambda: refusal(folder))
        os.chmod(folder, 0o700)
    assert said == f"cannot read {folder / name}: Permission denied"
    assert "Permission denied" in locked


def test_added_tokens_have_rows_of_their_own(tmp_path: Path) -> None:
    state = gpt2_state(vocab=14)  # case A33
    folder = write_folder(tmp_path / "more", state, vocab_size=14)
    assert find_model(str(folder)).n_parameters == TIED + 3 * 8
    write_config(folder)
    assert "wte.weight is (14, 8) but the config asks for (11, 8)" in refusal(folder)


def test_only_character_models_are_checked_against_a_text(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "gpt2")
    (tmp_path / "text").write_text("To be")
    outcome = command("train", "--check", str(tmp_path / "text"), str(folder))
    assert (outcome.code, outcome.out) == (2, "")
    assert "--check is for character models" in outcome.err


def test_every_number_of_a_folder_can_be_explained(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "gpt2")
    for stage, cell in (("blocks.1.k", "1,2,3"), ("blocks.0.mlp_out", "2,7"), ("logits", "2,10")):
        given = ("trace", "-m", str(folder), "--ids", "1,2,3", "--stage", stage, "--explain", cell)
        said = command(*given, "--format", "json").json["explain"]
        assert said["value"] == pytest.approx(said["value_float64"], abs=1e-5)


def test_a_recording_of_one_leads_back_to_it(tmp_path: Path) -> None:
    folder = write_shards(tmp_path / "gpt2", gpt2_state())
    file = tmp_path / "pass.safetensors"
    assert command("trace", "-m", str(folder), "--ids", "1,2", "-o", str(file)).code == 0
    session = recorded_session(Recording(file))
    assert session is not None
    assert session.source.path == folder
    write_config(folder, activation_function="relu")  # the same weights, another model
    assert recorded_session(Recording(file)) is None


def test_a_bin_file_is_read_like_any_other(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "gpt2")
    (folder / "model.safetensors").unlink()
    torch.save(with_prefix(gpt2_state(), "transformer."), folder / "pytorch_model.bin")
    for asked in (folder, folder / "pytorch_model.bin"):
        assert close(our_logits(asked), algebra(gpt2_state()))
    (folder / "weights.pt").write_bytes((folder / "pytorch_model.bin").read_bytes())
    assert close(our_logits(folder / "weights.pt"), algebra(gpt2_state()))


def test_a_header_of_odd_length_is_still_read(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "gpt2")
    file = folder / "model.safetensors"
    whole = file.read_bytes()
    length = int.from_bytes(whole[:8], "little")
    header = whole[8 : 8 + length].rstrip() + b" "
    header += b" " * (len(header) % 2 == 0)
    file.write_bytes(len(header).to_bytes(8, "little") + header + whole[8 + length :])
    assert close(our_logits(folder), algebra(gpt2_state()))
