"""`trace --explain`: the contract's keys, lines that fit, and what is refused."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import command
from conftest import TINY, tiny_gpt, write_tiny_model
from rich.cells import cell_len

from tui_gpt.checkpoints.weights import save_model
from tui_gpt.errors import MissingStage
from tui_gpt.files import BUNDLED_MODELS
from tui_gpt.records.analyses.explanation import CellRef, Explanation, Term
from tui_gpt.records.export.trace_json import explanation_object, json_text
from tui_gpt.records.tensors import StageTensor
from tui_gpt.session import Session
from tui_gpt.tokenization.characters import CharacterTokenizer
from tui_gpt.trace.record import LiveTrace
from tui_gpt.views.palette import palette
from tui_gpt.views.panes.pipeline.explanation import NARROWEST, explanation_rows
from tui_gpt.views.profile import Glyphs, TerminalProfile
from tui_gpt.views.rows import plain_text, width_of

KEYS = ["stage", "index", "value", "value_float64", "formula", "operands"]
TERM_KEYS = ["terms", "remainder", "bias", "n_terms"]
SUMS = {"q", "k", "v", "attn_scores", "z", "attn_out", "mlp_pre", "mlp_out", "logits"}

ODD_CHARACTERS = "\x1b[/]日\u200b\n\r\tabcé"
"""A vocabulary that terminals obey and markup readers read."""


def explained(*arguments: str) -> Any:
    """Run `trace --format json --explain` and give the whole document."""
    outcome = command("trace", "--format", "json", *arguments)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.isascii()
    return outcome.json


def refusal(*arguments: str, code: int) -> str:
    outcome = command("trace", *arguments)
    assert (outcome.code, outcome.out) == (code, "")
    assert outcome.err.count("\n") == 1
    return outcome.err


@pytest.mark.parametrize("model", BUNDLED_MODELS)
def test_every_stage_of_a_bundled_model_is_explained_as_the_contract_says(model: str) -> None:
    session = Session.open(model)
    stages = session.prepare("To be").stages
    for stage in (stage for stage in stages if stage.layer != 0):
        index = [3, 4, 2][3 - len(stage.shape) :]
        if stage.name in ("attn_scores", "pattern"):
            index = [3, 4, 1]
        asked = ("-m", model, "-p", "To be", "--stage", stage.id)
        document = explained(*asked, "--explain", ",".join(map(str, index)))
        found = document["explain"]
        terms = TERM_KEYS if stage.name in SUMS else []
        assert list(found) == [*KEYS, *terms, "reason"]
        assert (found["stage"], found["index"], found["reason"]) == (stage.id, index, None)
        value = document["values"]
        for place in index:
            value = value[place]
        assert found["value"] == value
        assert found["value_float64"] == pytest.approx(value, abs=1e-4, rel=1e-5)
        for operand in found["operands"]:
            assert list(operand) == ["role", "stage", "parameter", "index", "value"]
            assert (operand["index"] is None) == (operand["stage"] is operand["parameter"])
        if terms:
            check_sum(found)


def check_sum(found: Any) -> None:
    for term in found["terms"]:
        assert list(term) == [
            "label", "input", "weight", "product", "input_cell", "weight_cell",
        ]  # fmt: skip
        for cell in (term["input_cell"], term["weight_cell"]):
            assert list(cell) == ["stage", "parameter", "index"]
    products = [term["product"] for term in found["terms"]]
    assert len(products) == min(10, found["n_terms"])
    whole = sum(products) + found["remainder"] + found["bias"]
    assert abs(whole - found["value"]) <= 1e-5 * max(1, sum(map(abs, products)))


def test_a_masked_cell_is_null_and_says_why() -> None:
    found = explained("--stage", "blocks.1.attn_scores", "--explain", "0,3,5")["explain"]
    assert (found["value"], found["value_float64"]) == (None, None)
    assert "key 5 lies in the future of query 3" in found["reason"]
    assert list(found) == [*KEYS, "reason"]
    future = explained("--stage", "blocks.1.pattern", "--explain", "0,3,5")["explain"]
    assert (future["value"], future["value_float64"]) == (0, 0)
    assert future["reason"] == found["reason"]
    lines = command("trace", "--stage", "blocks.1.attn_scores", "--explain", "0,3,5").out
    assert "query 3 “b” · key 5 “,”" in lines
    assert "key 5 lies in the future of query 3" in lines
    assert "float32" not in lines


def test_numbers_are_the_shortest_of_their_kind() -> None:
    first = explained("--stage", "tokens", "--explain", "0")["explain"]
    assert (first["value"], first["operands"][0]["value"]) == (45, 0)
    assert isinstance(first["value"], int)
    found = explained("--stage", "blocks.0.ln_1", "--explain", "3,5")["explain"]
    epsilon = next(o for o in found["operands"] if o["role"] == "epsilon")
    assert epsilon["value"] == 1e-5
    for number in (found["value"], *(o["value"] for o in found["operands"])):
        assert number == float(str(np.float32(number)))


def test_what_is_not_finite_is_null_in_json_and_says_so() -> None:
    cell = CellRef.of_stage("blocks.0.ln_1", 0, 0)
    huge = Term("feature 0", 3e38, 3e38, 9e76, cell, cell)
    spoilt = Term("feature 1", math.nan, 1.0, math.nan, cell, cell)
    found = Explanation(
        "blocks.0.mlp_pre", (0, 0), math.inf, math.nan, "∞", (), (spoilt, huge), 0.0, 0.0, 2
    )
    written = explanation_object(found)
    assert (written["value"], written["value_float64"]) == (None, None)
    assert written["reason"] == "the value is inf, which is no number in JSON"
    assert '"product": null' in "".join(json_text({"explain": written}))


def test_the_table_shows_formula_values_operands_and_terms(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    asked = ("--stage", "blocks.1.attn_out", "--explain", "10,33")
    found = explained(*asked)["explain"]
    lines = command("trace", *asked).out.splitlines()
    assert lines[3] == "blocks.1.attn_out · position 10 “n” · feature 33"
    assert lines[4].startswith("z · W_O + b_O = ")
    assert lines[5].split() == ["float32", str(found["value"])]
    assert lines[6].split() == ["float64", str(found["value_float64"])]
    assert lines[7].split()[0] == "difference"
    assert lines[8].split() == ["bias", str(found["bias"]), "h.1.attn.c_proj.bias[33]"]
    assert lines[9] == "10 largest of 64 products: z × h.1.attn.c_proj.weight"
    for line, term in zip(lines[11:21], found["terms"], strict=True):
        assert line.startswith(term["label"])
        assert line.split()[3:6] == [f"{term[key]:#.3g}" for key in ("input", "weight", "product")]
    assert [line.split()[0] for line in lines[21:]] == ["54", "bias", "sum"]


@pytest.mark.parametrize("glyphs", ["unicode", "ascii"])
@pytest.mark.parametrize("width", [NARROWEST, 47, 55, 56, 80, 120])
def test_rows_have_the_promised_width_and_only_draw(
    tmp_path: Path, width: int, glyphs: Glyphs
) -> None:
    folder = tmp_path / "odd"
    folder.mkdir()
    config = replace(TINY, n_layer=12, vocab_size=len(ODD_CHARACTERS), n_inner=300)
    save_model(folder, tiny_gpt(config), CharacterTokenizer(ODD_CHARACTERS).to_json(), {})
    session = Session.open(str(folder))
    run = session.prepare(ODD_CHARACTERS[:8])
    trace = session.trace(run)
    for stage in (stage for stage in run.stages if stage.layer in (None, 11)):
        for index in (tuple(size - 1 for size in stage.shape), tuple(0 for _ in stage.shape)):
            rows = explanation_rows(
                session.explain(trace, stage.id, index),
                run,
                width=width,
                palette=palette(TerminalProfile("none", glyphs)),
                vocabulary=session.token,
            )
            text = "".join(map(plain_text, rows))
            assert {width_of(row) for row in rows} == {width}
            assert not [c for c in text if ord(c) < 0x20 or 0x7F <= ord(c) < 0xA0 or c == "\u200b"]
            assert glyphs == "unicode" or text.isascii()


def test_in_ascii_a_product_does_not_read_as_a_difference() -> None:
    out = command("trace", "--stage", "blocks.0.q", "--explain", "0,1,2", "--ascii").out
    formula = out.splitlines()[4]
    assert formula.startswith("ln_1 * W_Q + b = ")
    assert " - " not in formula


def test_a_bar_shows_the_sign_without_colour() -> None:
    for option, full, shaded in (("--ascii", "#", "-"), ("--color=none", "█", "▒")):
        out = command("trace", "--stage", "blocks.1.q", "--explain", "3,10,9", option).out
        for line in (line for line in out.splitlines() if line.startswith("feature ")):
            number, bar = line.split()[4:6]
            assert (full in bar) == (not number.startswith("-"))
            assert (shaded in bar) == number.startswith("-")


def test_a_narrow_table_keeps_the_numbers_of_its_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    asked = ("--stage", "blocks.1.attn_out", "--explain", "10,33")
    lines = command("trace", *asked).out.splitlines()
    for term in explained(*asked)["explain"]["terms"]:
        assert any(line.startswith(term["label"].replace("feature ", "f") + " ") for line in lines)


@pytest.mark.parametrize("hole", ["blocks.1.ln_1", "blocks.1.q"])
@pytest.mark.parametrize("form", ["table", "json"])
def test_what_is_missing_is_refused_with_its_reason(
    monkeypatch: pytest.MonkeyPatch, hole: str, form: str
) -> None:
    tensor = LiveTrace.tensor

    def unhooked(
        trace: LiveTrace, stage_id: str, rows: tuple[int, int] | None = None
    ) -> StageTensor:
        if stage_id == hole:
            raise MissingStage(f"{hole} was unhooked")
        return tensor(trace, stage_id, rows)

    monkeypatch.setattr(LiveTrace, "tensor", unhooked)
    asked = ("--stage", "blocks.1.q", "--explain", "0,1,2", "--format", form)
    assert refusal(*asked, code=1) == f"tui-gpt: {hole} was unhooked\n"


def test_the_chosen_cell_is_marked_wherever_it_stands(tiny_folder: Path) -> None:
    session = Session.open(str(tiny_folder))
    run = session.prepare("bad egg")
    trace = session.trace(run)
    for stage_id, index in (("blocks.0.ln_1", (2, 3)), ("blocks.1.q", (0, 2, 3))):
        found = session.explain(trace, stage_id, index)
        ink = palette(TerminalProfile("256"))
        for cell in (None, *found.cells):
            rows = explanation_rows(found, run, width=60, palette=ink, chosen=cell)
            marked = [segment for row in rows for segment in row if segment.style == ink.cursor]
            assert bool(marked) == (cell is not None)
            assert all(segment.text.strip() == segment.text for segment in marked)


def test_colour_uses_the_terminals_own_background() -> None:
    asked = ("trace", "--stage", "blocks.0.q", "--explain", "0,1,2")
    coloured = command(*asked, "--color", "truecolor").out
    assert "\x1b[1m" in coloured
    assert "\x1b[48" not in coloured
    assert "\x1b" not in command(*asked, "--color", "none").out


def test_lines_fit_the_terminal_down_to_forty_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    for columns, widest in (("20", 40), ("40", 40), ("63", 63), ("300", 100)):
        monkeypatch.setenv("COLUMNS", columns)
        for asked in (("blocks.1.attn_out", "9,2"), ("blocks.1.ln_2", "9,2"), ("probs", "9,2")):
            lines = command("trace", "--stage", asked[0], "--explain", asked[1]).out.splitlines()
            assert max(map(cell_len, lines[3:])) <= widest


def test_requests_that_make_no_sense_are_usage_errors() -> None:
    assert "give --stage too" in refusal("--explain", "1,2", code=2)
    assert "give --stage too" in refusal("--explain", "1,2", "--parameter", "wte.weight", code=2)
    at = ("--stage", "embed", "--explain")
    assert "no CSV" in refusal(*at, "1,2", "--format", "csv", code=2)
    for index in ("1,x", "", "1,,2", "1.5,2"):
        assert "expected whole numbers" in refusal(*at, index, code=2)


def test_an_index_outside_the_stage_is_refused_before_torch_with_both_numbers() -> None:
    at = ("--stage", "embed", "--explain")
    assert "embed has no T = 19; its 19 places are 0…18" in refusal(*at, "19,0", code=1)
    assert "embed has no T = -1; its 19 places are 0…18" in refusal(*at, "-1,0", code=1)
    assert "embed takes an index of 2, T,C; 1 has 1" in refusal(*at, "1", code=1)


def test_an_explanation_of_a_folder_names_its_tokens(tmp_path: Path) -> None:
    write_tiny_model(tmp_path / "tiny", TINY)
    out = command(
        "trace", "-m", str(tmp_path / "tiny"), "-p", "bad egg", "--stage", "blocks.0.z",
        "--explain", "0,6,1",
    ).out  # fmt: skip
    assert "position 6 “g”" in out
    assert "7 products: pattern × v" in out
    for key in ("key 0 “b”", "key 3 “␣”", "key 6 “g”"):
        assert key in out
