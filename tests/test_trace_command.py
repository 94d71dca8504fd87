"""`tui-gpt trace`: the numbers of both bundled models, what is refused, and what is recorded."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from commands import command
from conftest import TINY, tiny_gpt
from numpy.typing import NDArray

from tui_gpt.checkpoints.weights import save_model
from tui_gpt.files import BUNDLED_MODELS, DEFAULT_PROMPT, assets
from tui_gpt.records.recording import Recording
from tui_gpt.records.tensors import statistics
from tui_gpt.tokenization.characters import CharacterTokenizer

PRE_BLOCK = (
    "resid_pre", "ln_1", "q", "k", "v", "attn_scores", "pattern", "z", "attn_out", "resid_mid",
    "ln_2", "mlp_pre", "mlp_post", "mlp_out", "resid_post",
)  # fmt: skip
POST_BLOCK = (
    "resid_pre", "q", "k", "v", "attn_scores", "pattern", "z", "attn_out", "resid_mid", "ln_1",
    "mlp_pre", "mlp_post", "mlp_out", "resid_post", "ln_2",
)  # fmt: skip
STAGES = {
    "shakespeare": (PRE_BLOCK, ("ln_final", "logits", "probs")),
    "shakespeare-2017": (POST_BLOCK, ("logits", "probs")),
}
SHAPES = {
    "tokens": [19], "embed": [19, 64], "pos_embed": [19, 64], "resid_pre": [19, 64],
    "ln_1": [19, 64], "q": [4, 19, 16], "k": [4, 19, 16], "v": [4, 19, 16],
    "attn_scores": [4, 19, 19], "pattern": [4, 19, 19], "z": [4, 19, 16], "attn_out": [19, 64],
    "resid_mid": [19, 64], "ln_2": [19, 64], "mlp_pre": [19, 256], "mlp_post": [19, 256],
    "mlp_out": [19, 64], "resid_post": [19, 64], "ln_final": [19, 64], "logits": [19, 81],
    "probs": [19, 81],
}  # fmt: skip


@pytest.fixture(params=BUNDLED_MODELS)
def bundled(request: pytest.FixtureRequest) -> str:
    """Each bundled model in turn."""
    return str(request.param)


def trace(*arguments: str) -> Any:
    """Run `trace --format json` and read the answer."""
    outcome = command("trace", "--format", "json", *arguments)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.isascii()
    return outcome.json


def values(model: str, stage: str) -> NDArray[np.float32]:
    """Give a stage's values out of the JSON; null becomes NaN."""
    return np.array(trace("-m", model, "--stage", stage)["values"], dtype=np.float32)


def refusal(*arguments: str, code: int = 1) -> str:
    """Run `trace`, which must refuse with one line on standard error, and give that line."""
    outcome = command("trace", *arguments)
    assert outcome.code == code
    assert outcome.out == ""
    assert outcome.err.startswith("tui-gpt: ")
    assert outcome.err.count("\n") == 1
    assert "Traceback" not in outcome.err
    assert "\x1b" not in outcome.err
    return outcome.err


def test_the_default_prompt_is_nineteen_tokens(bundled: str) -> None:
    document = trace("-m", bundled)
    assert document == trace("-m", bundled, "-p", DEFAULT_PROMPT)
    assert document["prompt"] == "To be, or not to be"
    tokens = document["tokens"]
    assert "".join(token["text"] for token in tokens) == "To be, or not to be"
    assert [token["position"] for token in tokens] == list(range(19))
    assert tokens[0]["bytes"] == "54"


def test_stages_come_in_the_order_of_the_design_with_their_shapes(bundled: str) -> None:
    block, tail = STAGES[bundled]
    document = trace("-m", bundled)
    assert [stage["id"] for stage in document["stages"]] == [
        "tokens",
        "embed",
        "pos_embed",
        *(f"blocks.{layer}.{name}" for layer in (0, 1) for name in block),
        *tail,
    ]
    assert len(document["stages"]) == (36 if bundled == "shakespeare" else 35)
    for stage in document["stages"]:
        assert stage["shape"] == SHAPES[stage["id"].rpartition(".")[2]]
        assert len(stage["axes"]) == len(stage["shape"])


def test_the_parameters_of_the_stages_add_up_to_the_models(bundled: str) -> None:
    document = trace("-m", bundled)
    counts = [
        parameter["count"]
        for stage in document["stages"]
        for parameter in stage["parameters"]
        if not parameter["shared"]
    ]
    assert sum(counts) == document["model"]["parameters"]
    assert document["model"]["source"] == "bundled"
    assert document["model"]["name"] == bundled


def test_rows_of_the_pattern_sum_to_one_and_the_future_has_none_of_it(bundled: str) -> None:
    pattern = values(bundled, "blocks.1.pattern")
    assert pattern.shape == (4, 19, 19)
    assert np.abs(pattern.sum(axis=-1) - 1).max() < 1e-6
    assert not pattern[:, np.triu(np.ones((19, 19), dtype=bool), 1)].any()


def test_scores_are_null_above_the_diagonal_and_nowhere_else(bundled: str) -> None:
    document = trace("-m", bundled, "--stage", "blocks.1.attn_scores")
    for head in document["values"]:
        for query, row in enumerate(head):
            assert None not in row[: query + 1]
            assert set(row[query + 1 :]) <= {None}
    found = next(s for s in document["stages"] if s["id"] == "blocks.1.attn_scores")
    assert found["masked"] == 4 * 19 * 18 / 2


@pytest.mark.parametrize("layer", [0, 1])
def test_the_sublayers_outputs_added_to_the_stream_give_the_stream(layer: int) -> None:
    before, attention, mlp, after = (
        values("shakespeare", f"blocks.{layer}.{name}")
        for name in ("resid_pre", "attn_out", "mlp_out", "resid_post")
    )
    assert np.abs(before + attention + mlp - after).max() < 1e-5


@pytest.mark.parametrize("layer", [0, 1])
def test_in_the_2017_order_the_norm_of_the_sum_goes_on(layer: int) -> None:
    before, attention, middle, normed, mlp, after = (
        values("shakespeare-2017", f"blocks.{layer}.{name}")
        for name in ("resid_pre", "attn_out", "resid_mid", "ln_1", "mlp_out", "resid_post")
    )
    gain, shift = (
        np.array(
            trace("-m", "shakespeare-2017", "--parameter", f"h.{layer}.ln_1.{kind}")["parameter"][
                "values"
            ]
        )
        for kind in ("weight", "bias")
    )
    wide = middle.astype(np.float64)
    centred = wide - wide.mean(axis=-1, keepdims=True)
    by_hand = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5) * gain + shift
    assert np.abs(before + attention - middle).max() < 1e-5
    assert np.abs(by_hand - normed).max() < 1e-5
    assert np.abs(normed + mlp - after).max() < 1e-5


def test_the_prediction_is_the_ten_largest_logits_of_the_last_position(bundled: str) -> None:
    document = trace("-m", bundled, "--stage", "logits")
    last = np.array(document["values"][-1], dtype=np.float32)
    best = document["prediction"]
    order = np.argsort(-last, kind="stable")[:10]
    assert [candidate["id"] for candidate in best] == order.tolist()
    probs = values(bundled, "probs")[-1]
    for candidate in best:
        assert np.float32(candidate["logit"]) == last[candidate["id"]]
        assert np.float32(candidate["prob"]) == probs[candidate["id"]]


def test_every_value_in_json_and_csv_is_the_recorded_float32_and_so_are_its_statistics(
    bundled: str, tmp_path: Path
) -> None:
    file = tmp_path / "all.safetensors"
    outcome = command("trace", "-m", bundled, "-o", str(file))
    assert (outcome.code, outcome.out, outcome.err) == (0, "", "")
    recording = Recording(file)
    document = trace("-m", bundled)
    assert [stage["id"] for stage in document["stages"]] == [s.id for s in recording.run.stages]
    for described in document["stages"]:
        tensor = recording.tensor(described["id"])
        found = statistics(tensor)
        for key, number in (("min", found.minimum), ("max", found.maximum), ("std", found.std)):
            assert number is not None
            assert np.float32(described[key]) == np.float32(number)
    for stage_id in ("tokens", "blocks.0.z", "blocks.1.mlp_post", "logits"):
        recorded = recording.tensor(stage_id).values
        read = np.array(trace("-m", bundled, "--stage", stage_id)["values"], dtype=recorded.dtype)
        assert np.array_equal(read, recorded)
        text = command("trace", "-m", bundled, "--stage", stage_id, "--format", "csv").out
        cells = list(csv.reader(io.StringIO(text)))
        assert len(cells) == 1 + recorded.size
        assert np.array_equal(
            np.array([row[-1] for row in cells[1:]]).astype(recorded.dtype), recorded.ravel()
        )
    ids = [candidate.token.id for candidate in recording.prediction()]
    assert ids == [candidate["id"] for candidate in document["prediction"]]


def test_a_parameter_is_printed_as_it_is_stored(bundled: str) -> None:
    stored = safetensors.numpy.load_file(assets() / "models" / bundled / "model.safetensors")
    for name in ("wte.weight", "h.1.attn.q.bias"):
        printed = trace("-m", bundled, "--parameter", name)["parameter"]
        assert printed["shape"] == list(stored[name].shape)
        assert np.array_equal(np.array(printed["values"], dtype=np.float32), stored[name])


def test_csv_of_the_stages_has_one_row_each(bundled: str) -> None:
    rows = list(csv.DictReader(io.StringIO(command("trace", "-m", bundled, "--format", "csv").out)))
    described = trace("-m", bundled)["stages"]
    assert [row["id"] for row in rows] == [stage["id"] for stage in described]
    assert [float(row["mean"]) for row in rows] == [stage["mean"] for stage in described]


def test_what_is_asked_for_and_is_not_there_is_answered_with_what_is(bundled: str) -> None:
    stage = refusal("-m", bundled, "--stage", "blocks.2.pattern")
    assert "no stage 'blocks.2.pattern'" in stage
    assert "tokens, embed, pos_embed" in stage
    assert "attn_scores, pattern, z" in stage
    assert "from 0 to 1" in stage
    parameter = refusal("-m", bundled, "--parameter", "h.2.ln_1.weight")
    assert "no parameter 'h.2.ln_1.weight'" in parameter
    assert "h.1.ln_1.weight" in parameter
    model = refusal("-m", "gpt2")
    assert "no model 'gpt2'" in model
    assert "shakespeare or shakespeare-2017" in model


def test_an_empty_prompt_asks_for_text() -> None:
    assert "the prompt is empty" in refusal("-p", "")
    assert "the prompt is empty" in refusal("--ids", "")


def test_every_unknown_character_is_listed_with_its_position() -> None:
    message = refusal("-p", "aé∩b🙂")
    assert "3 characters" in message
    assert "'é' at 1, '∩' at 2, '🙂' at 4" in message


def test_a_prompt_that_is_too_long_is_refused_with_both_numbers_or_cropped_with_a_notice() -> None:
    text = "a" + "b" * 64
    message = refusal("-p", text)
    assert "65 tokens" in message
    assert "64" in message
    assert "--crop" in message
    document = trace("-p", text, "--crop")
    assert [token["text"] for token in document["tokens"]] == ["b"] * 64
    assert len(document["notices"]) == 1
    assert "65 tokens" in document["notices"][0]
    assert "the first 1 were cut" in document["notices"][0]
    assert "notice: the prompt is 65 tokens" in command("trace", "-p", text, "--crop").out
    assert "notice: the prompt is 65 tokens" in (
        command("trace", "-p", text, "--crop", "--format", "csv").err
    )


def test_requests_that_contradict_themselves_are_usage_errors(tmp_path: Path) -> None:
    assert "not both" in refusal("--stage", "embed", "--parameter", "wte.weight", code=2)
    assert "not several" in refusal("-p", "a", "--ids", "1", code=2)
    taken_for_output = refusal("--format", "json", "-o", str(tmp_path / "trace.json"), code=2)
    assert "a recording, a .safetensors file" in taken_for_output
    assert list(tmp_path.iterdir()) == []


def test_a_recording_that_cannot_be_written_is_one_message_and_no_file(tmp_path: Path) -> None:
    assert "cannot write" in refusal("-o", str(tmp_path / "nowhere" / "r.safetensors"))
    assert list(tmp_path.iterdir()) == []


def test_an_id_outside_the_vocabulary_is_refused_with_the_range() -> None:
    assert "token id 81 is not one of 0…80" in refusal("--ids", "3,81")
    assert "token id -1 is not one of 0…80" in refusal("--ids", "-1")


def test_ids_and_text_give_the_same_trace() -> None:
    by_text = trace("-p", "To be")
    ids = ",".join(str(token["id"]) for token in by_text["tokens"])
    assert trace("--ids", ids) == by_text


def test_a_folder_is_traced_under_its_own_name_and_config(tmp_path: Path) -> None:
    folder = tmp_path / "wide epsilon"
    folder.mkdir()
    config = replace(TINY, layer_norm_epsilon=0.5)
    save_model(folder, tiny_gpt(config), CharacterTokenizer("\n abcdefghi").to_json(), {})
    model = trace("-m", str(folder), "-p", "abc")["model"]
    assert model == {
        "name": str(folder),
        "config": config.to_dict(),
        "parameters": 2064,
        "source": "folder",
    }
