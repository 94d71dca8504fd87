"""The panes on the screen: each shows the numbers of one place, and the place is kept."""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import safetensors.torch
from explorer import Explorer
from terminal import DOWN, LEFT, RIGHT, TAB, UP

from tui_gpt.files import assets
from tui_gpt.records.float_format import shortest_float
from tui_gpt.records.recording import Recording
from tui_gpt.session import Session


@pytest.fixture
def explorer() -> Iterator[Explorer]:
    """A program of its own for each test, at the pattern of block 0."""
    with Explorer() as explorer:
        explorer.wait_until_loaded()
        yield explorer


@pytest.fixture(scope="module")
def recording() -> Recording:
    return Recording(assets() / "recordings" / "shakespeare.safetensors")


def test_every_pane_has_its_digit_and_keeps_the_place(explorer: Explorer) -> None:
    at = explorer.reading
    for digit, words in (
        ("2", "mean entropy"),
        ("3", "mlp_post"),
        ("4", "stream by depth"),
        ("5", "The next token after"),
        ("1", "softmax over the keys"),
    ):
        explorer.send(digit)
        explorer.wait_for(words)
    explorer.wait_for(lambda _: explorer.reading == at)


def test_the_attention_pane_reads_what_the_recording_holds(
    explorer: Explorer, recording: Recording
) -> None:
    explorer.press("2")
    pattern = recording.tensor("blocks.0.pattern").values
    explorer.press(UP + UP + LEFT)
    words = explorer.reading.split()
    query, key = int(words[words.index("query") + 1]), int(words[words.index("key") + 1])
    assert words[-1] == str(shortest_float(pattern[0, query, key]))
    explorer.press("s")
    scores = recording.tensor("blocks.0.attn_scores").values
    assert explorer.reading.split()[-1] == str(shortest_float(scores[0, query, key]))


def test_the_output_pane_names_the_best_token_and_its_probability(
    explorer: Explorer, recording: Recording
) -> None:
    explorer.send("5")
    best = recording.prediction()[0]
    explorer.wait_for(f"{best.prob:.4f}")
    for _ in range(3):
        explorer.press(LEFT)
    assert "came next" in explorer.text


def test_the_identities_of_the_bundled_model_hold(explorer: Explorer) -> None:
    explorer.send("4")
    explorer.wait_for("identities hold")


def test_a_cell_is_explained_and_its_operands_are_followed_and_left_again(
    explorer: Explorer,
) -> None:
    explorer.press("1")
    at = explorer.reading
    explorer.send("e")
    explorer.wait_for("row maximum")
    assert at == explorer.reading
    explorer.send("f")
    explorer.wait_for("√D")
    assert "asks key" in explorer.reading
    explorer.press(RIGHT)
    explorer.send("f")
    explorer.wait_for("feature")
    explorer.press("u")
    explorer.send("u")
    explorer.wait_for("row maximum")
    assert explorer.reading == at


def test_a_term_leads_to_the_weight_it_is_multiplied_by(explorer: Explorer) -> None:
    explorer.press(".")  # z
    explorer.press(".")  # attn_out
    explorer.send("e")
    explorer.wait_for("largest of 64 products")
    explorer.press(DOWN + RIGHT)
    explorer.send("f")
    explorer.wait_for("parameters of block 1")
    explorer.wait_for(lambda _: "c_proj.weight[" in explorer.reading)
    name, _, value = explorer.reading.strip().rpartition("  ")
    parameter, _, index = name.strip().rstrip("]").partition("[")
    values = Session.open("shakespeare").parameter(parameter)
    row, column = (int(part) for part in index.split(","))
    assert value == str(shortest_float(values[row, column]))


def test_the_parameters_of_a_stage_open_one_after_the_other(explorer: Explorer) -> None:
    explorer.press(",,,")  # k
    explorer.send("w")
    explorer.wait_for("h.0.attn.k.weight")
    explorer.press("w")
    assert ".bias" in explorer.text
    explorer.press("w")
    assert "linear map, split into heads" in explorer.text


def test_a_stage_without_parameters_says_so(explorer: Explorer) -> None:
    explorer.press("w")
    assert "pattern owns no parameters" in explorer.text


def test_rows_become_columns_and_back(explorer: Explorer) -> None:
    explorer.press(",")
    explorer.press(TAB)
    before, at = explorer.text, explorer.reading
    explorer.press("t")
    assert explorer.text != before
    assert explorer.reading == at
    explorer.press("t")
    assert explorer.text == before


def test_the_overview_shows_all_of_a_matrix_and_says_how(explorer: Explorer) -> None:
    explorer.press(".....")  # mlp_pre, (19, 256)
    explorer.press("o")
    explorer.wait_for("each cell the largest of")
    explorer.press("o")
    assert "each cell the largest of" not in explorer.text


def test_the_scale_can_leave_outliers_out_or_span_all_blocks(explorer: Explorer) -> None:
    explorer.press(".....")
    explorer.send("r")
    explorer.wait_for("holds 99 of 100 values")
    explorer.send("b")
    explorer.wait_for("one scale for all blocks")
    assert "99 of 100" not in explorer.text
    explorer.press("b")


@pytest.mark.parametrize(
    ("key", "index", "stage"),
    [("ln_f.weight", (0,), "ln_final[0, 0]"), ("h.1.mlp.c_fc.bias", (7,), "blocks.1.mlp_pre")],
)
def test_a_nan_in_the_weights_is_said_on_every_pane(
    tmp_path: Path, key: str, index: tuple[int, ...], stage: str
) -> None:
    folder = tmp_path / "nan"
    shutil.copytree(assets() / "models" / "shakespeare", folder)
    state = safetensors.torch.load_file(folder / "model.safetensors")
    state[key][index] = math.nan
    safetensors.torch.save_file(state, folder / "model.safetensors")
    with Explorer("-m", str(folder)) as explorer:
        explorer.wait_for(f"not finite: {stage}")
        explorer.send("5")
        explorer.wait_for("no prediction")
        assert f"not finite: {stage}" in explorer.text


def test_a_nan_in_a_row_that_no_token_uses_flags_that_logit_alone(tmp_path: Path) -> None:
    folder = tmp_path / "nan"
    shutil.copytree(assets() / "models" / "shakespeare", folder)
    state = safetensors.torch.load_file(folder / "model.safetensors")
    state["lm_head.weight"][80, 3] = math.nan
    safetensors.torch.save_file(state, folder / "model.safetensors")
    with Explorer("-m", str(folder)) as explorer:
        explorer.send("5")
        explorer.wait_for("id 80")
        assert "1 logit is NaN" in explorer.text
