"""The loader report: every parameter has one place in the files, and the report says which."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from commands import command
from foreign import (
    TIED,
    gpt2_state,
    nanogpt_state,
    with_prefix,
    write_folder,
    write_nanogpt,
    write_shards,
)
from rich.cells import cell_len

from tui_gpt.checkpoints.find import ModelSource, find_model
from tui_gpt.checkpoints.weights import load_weights
from tui_gpt.files import BUNDLED_MODELS
from tui_gpt.records.loader_report import LoaderReport
from tui_gpt.session import Session
from tui_gpt.views.commands.loader_report import report_lines


def report(source: ModelSource) -> LoaderReport:
    return Session(source).report()


def told(folder: Path | str, width: int = 80) -> str:
    lines = report_lines(report(find_model(str(folder))), width, "unicode")
    return "\n".join(line.plain for line in lines)


def test_every_parameter_is_listed_once_with_its_shape(tmp_path: Path) -> None:
    names = ("shakespeare", "shakespeare-2017", "untrained:shakespeare")
    folders = (
        write_folder(tmp_path / "gpt2"),
        write_shards(tmp_path / "shards", gpt2_state()),
        write_nanogpt(tmp_path / "ckpt.pt"),
    )
    for name in (*names, *map(str, folders)):
        source = find_model(name)
        listed = report(source)
        built = {key: tuple(x.shape) for key, x in load_weights(source).named_parameters()}
        assert {row.parameter: row.parameter_shape for row in listed.tensors} == built
        assert len(listed.tensors) == len(built)
        assert sum(math.prod(shape) for shape in built.values()) == source.n_parameters


def test_json_names_key_parameter_shape_and_turn(tmp_path: Path) -> None:
    state = with_prefix(gpt2_state(), "transformer.")
    state["transformer.h.0.attn.bias"] = torch.ones(1, 1, 16, 16, dtype=torch.bool).tril()
    folder = write_folder(tmp_path / "gpt2", state, attn_pdrop=0.1)
    outcome = command("models", "--inspect", str(folder), "--json")
    assert outcome.code == 0, outcome.err
    report = outcome.json
    assert report["schema"] == 1
    assert report["files"] == [str(folder / "model.safetensors")]
    assert (report["tied"], report["parameters"], report["kind"]) == (True, TIED, "huggingface")
    assert report["tokenizer"] == "none: ids only"
    assert any("dropout" in notice for notice in report["notices"])
    rows = {row["parameter"]: row for row in report["tensors"]}
    assert rows["h.1.attn.k.weight"] == {
        "key": "transformer.h.1.attn.c_attn.weight",
        "parameter": "h.1.attn.k.weight",
        "shape": [8, 24],
        "parameter_shape": [8, 8],
        "dtype": "float32",
        "transposed": True,
        "note": "columns 8…15; Conv1D keeps (inputs, outputs); without transformer.",
    }
    assert rows["wte.weight"]["note"] == "without transformer.; also the output head"
    assert not rows["ln_f.bias"]["transposed"]
    assert report["skipped"] == [
        {
            "key": "transformer.h.0.attn.bias",
            "shape": [1, 1, 16, 16],
            "dtype": "bool",
            "reason": "the causal mask, no weight",
        }
    ]


@pytest.mark.parametrize(
    ("dtype", "word"),
    [(torch.bfloat16, "bfloat16"), (torch.float16, "float16"), (torch.float64, "float64")],
)
def test_both_precisions_are_said(tmp_path: Path, dtype: torch.dtype, word: str) -> None:
    state = {key: tensor.to(dtype) for key, tensor in gpt2_state().items()}  # case A09
    folder = write_folder(tmp_path / "gpt2", state)
    assert f"stored as {word}, computed in float32" in told(folder)
    state["wpe.weight"] = state["wpe.weight"].float()
    mixed = told(write_folder(tmp_path / "mixed", state))
    assert f"\nwte.weight{' ' * 13}(11, 8)  {word}" in mixed


def test_the_files_really_read_are_listed_and_the_others_named(tmp_path: Path) -> None:
    folder = write_shards(tmp_path / "gpt2", gpt2_state())  # case A08
    (folder / "pytorch_model.bin").write_bytes(b"anything")
    text = told(folder, 200)
    assert "2 files read" in text
    assert str(folder / "model-00002-of-00002.safetensors") in text
    assert "also there and not read: pytorch_model.bin" in text


def test_what_is_no_number_is_named_first(tmp_path: Path) -> None:
    state = gpt2_state()
    state["h.1.ln_2.weight"][3] = math.nan
    state["wpe.weight"][0, 0] = -math.inf
    listed = report(find_model(str(write_folder(tmp_path / "gpt2", state))))
    assert listed.notices[:2] == ("wpe.weight holds infinity", "h.1.ln_2.weight holds NaN")
    assert {row.parameter: row.remark for row in listed.tensors}["h.1.ln_2.weight"] == "holds NaN"


def test_a_padded_table_says_which_rows_stand_for_nothing(tmp_path: Path) -> None:
    state = nanogpt_state(gpt2_state(vocab=50304))  # case A17
    text = told(write_nanogpt(tmp_path / "ckpt.pt", state, vocab_size=50304))
    assert "rows 50257…50303 stand for no token; also the output head" in text
    assert "ᵀ" not in text
    assert "h.0.attn.c_attn.weight    (24, 8) → q.weight (8, 8), rows 0…7" in text


def test_the_table_in_words(tmp_path: Path) -> None:
    text = told(write_folder(tmp_path / "gpt2", with_prefix(gpt2_state(), "transformer.")))
    assert "output head: tied to the token table" in text
    assert "28 tensors → 36 parameter tensors" in text
    assert "each key without transformer." in text
    assert "h.0.attn.c_attn.weight (8, 24) ᵀ → v.weight (8, 8), columns 16…23\n" in text
    assert "h.0.attn.c_proj.weight  (8, 8) ᵀ → (8, 8)\n" in text
    assert "h.0.attn.c_proj.bias      (8,)\n" in text


@pytest.mark.parametrize("width", [40, 60, 80, 160])
@pytest.mark.parametrize("glyphs", ["unicode", "ascii"])
def test_no_line_is_wider_than_asked(tmp_path: Path, width: int, glyphs: str) -> None:
    sources = [*BUNDLED_MODELS, "untrained:shakespeare", str(write_folder(tmp_path / "gpt2"))]
    for name in sources:
        for line in report_lines(report(find_model(name)), width, glyphs):  # type: ignore[arg-type]
            assert cell_len(line.plain) <= width
            assert glyphs == "unicode" or line.plain.isascii()


def test_a_refusal_prints_nothing_else(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "gpt2", n_layer=3)
    outcome = command("models", "--inspect", str(folder), "--json")
    assert (outcome.code, outcome.out) == (1, "")
    assert "has no h.2.ln_1.weight (8,)" in outcome.err


def test_names_from_a_file_are_inert(tmp_path: Path) -> None:
    state = {**gpt2_state(), "\x1b[2J[/]odd": torch.ones(1)}
    outcome = command("models", "--inspect", str(write_folder(tmp_path / "gpt2", state)))
    assert outcome.code == 1
    assert "\x1b" not in outcome.err
    assert "␛[2J[/]odd" in outcome.err
