"""A trace as JSON and CSV: exact numbers, strict text, every key, whatever the values are."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from conftest import TINY
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

from tui_gpt.records.export.trace_csv import cell_rows
from tui_gpt.records.export.trace_csv import stage_rows as csv_stage_rows
from tui_gpt.records.export.trace_json import json_text, parameter_object, stage_rows, trace_object
from tui_gpt.records.float_format import shortest_float, shortest_floats
from tui_gpt.records.stages import find_stage, stage_table
from tui_gpt.records.tensors import StageSummary, StageTensor, statistics
from tui_gpt.records.tokens import Token
from tui_gpt.records.trace import Candidate, ModelFacts, Run

STAGES = stage_table(TINY, 3)
TOKENS = (Token(2, b"a"), Token(5, b"\xf0\x9f"), Token(9, b""))

floats = st.floats(width=32, allow_nan=False, allow_infinity=False)


def reread(document: dict[str, object]) -> Any:
    """Write a document and read it back, refusing what is not strict JSON in ASCII."""
    text = "".join(json_text(document))
    assert text.isascii()

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} in the output")

    return json.loads(text, parse_constant=refuse)


def some_run() -> Run:
    facts = ModelFacts("tiny", TINY, 1976, "folder")
    return Run(facts, "a…", TOKENS, ("cut",), STAGES)


@given(arrays.arrays(np.float32, st.integers(0, 20), elements=floats))
def test_every_float32_comes_back_exactly_from_its_shortest_text(
    values: NDArray[np.float32],
) -> None:
    texts = json.loads(json.dumps(shortest_floats(values)))
    assert np.array_equal(np.array(texts, dtype=np.float32), values)
    assert [shortest_float(float(value)) for value in values] == shortest_floats(values)


@pytest.mark.parametrize(
    ("value", "text"), [(0.1, "0.1"), (1 / 3, "0.33333334"), (16777216.0, "16777216.0")]
)
def test_a_float32_is_written_without_digits_that_were_never_measured(
    value: float, text: str
) -> None:
    assert json.dumps(shortest_floats(np.array([value], dtype=np.float32))) == f"[{text}]"


def test_a_trace_has_every_key_of_the_contract() -> None:
    found = statistics(StageTensor(STAGES[1], np.ones((3, 8), dtype=np.float32)))
    summaries = [StageSummary(stage, found) for stage in STAGES]
    candidate = Candidate(TOKENS[0], 1.5, 0.1)
    document = reread(trace_object(some_run(), summaries, [candidate]))
    assert set(document) == {
        "schema", "model", "prompt", "tokens", "notices", "stages", "prediction",
    }  # fmt: skip
    assert document["schema"] == 1
    assert document["model"] == {
        "name": "tiny",
        "config": TINY.to_dict(),
        "parameters": 1976,
        "source": "folder",
    }
    assert document["prompt"] == "a…"
    assert document["notices"] == ["cut"]
    assert set(document["stages"][1]) >= {
        "id", "layer", "shape", "axes", "operation", "formula", "topic", "reads", "parameters",
        "min", "max", "mean", "std", "masked",
    }  # fmt: skip
    assert document["stages"][1]["parameters"] == [
        {"name": "wte.weight", "shape": [11, 8], "count": 88, "shared": False}
    ]
    assert document["prediction"] == [
        {"id": 2, "text": "a", "bytes": "61", "logit": 1.5, "prob": 0.1}
    ]


def test_a_piece_of_a_character_has_bytes_and_no_text() -> None:
    document = reread(trace_object(some_run(), [], []))
    assert document["tokens"] == [
        {"position": 0, "id": 2, "text": "a", "bytes": "61"},
        {"position": 1, "id": 5, "text": None, "bytes": "f09f"},
        {"position": 2, "id": 9, "text": None, "bytes": ""},
    ]


def test_a_stage_that_could_not_be_recorded_has_null_statistics_and_says_why() -> None:
    missing = StageSummary(STAGES[1], None, "the tap was not offered it")
    described = reread(trace_object(some_run(), [missing], []))["stages"][0]
    assert [described[key] for key in ("min", "max", "mean", "std", "masked")] == [None] * 5
    assert described["missing"] == "the tap was not offered it"
    assert list(csv_stage_rows([missing]))[1][-5:] == (None,) * 5


def test_values_that_are_not_finite_are_null_and_counted() -> None:
    values = np.array([[1, np.nan], [np.inf, -2]], dtype=np.float32).repeat(4, axis=1)[[0, 1, 1]]
    tensor = StageTensor(STAGES[1], values)
    document = trace_object(some_run(), [StageSummary(STAGES[1], statistics(tensor))], [])
    document["values"] = stage_rows([tensor])
    reread_document = reread(document)
    described = reread_document["stages"][0]
    assert [described[key] for key in ("min", "max", "mean", "std")] == [-2.0, 1.0, None, None]
    assert described["not_finite"] == 12
    assert reread_document["values"][0] == [1.0] * 4 + [None] * 4
    assert reread_document["values"][2] == [None] * 4 + [-2.0] * 4


def test_masked_cells_are_null_in_json_and_empty_in_csv() -> None:
    stage = find_stage(STAGES, "blocks.0.attn_scores")
    tensor = StageTensor(stage, np.arange(18, dtype=np.float32).reshape(2, 3, 3))
    assert list(stage_rows([tensor]))[1] == [[9.0, None, None], [12.0, 13.0, None], [15, 16, 17]]
    rows = list(cell_rows(stage.axes, [tensor]))
    assert rows[0] == ("H", "Tq", "Tk", "value")
    assert rows[10:13] == [(1, 0, 0, 9.0), (1, 0, 1, None), (1, 0, 2, None)]


def test_slices_of_logits_become_one_array_and_count_on_in_csv() -> None:
    stage = find_stage(STAGES, "logits")
    values = np.arange(33, dtype=np.float32).reshape(3, 11)
    slices = [StageTensor(stage, values[:2]), StageTensor(stage, values[2:], 2)]
    assert reread({"values": stage_rows(slices)})["values"] == values.tolist()
    rows = list(cell_rows(stage.axes, slices))
    assert len(rows) == 34
    assert rows[-1] == (2, 10, 32.0)


def test_token_ids_stay_whole_numbers() -> None:
    tensor = StageTensor(STAGES[0], np.array([2, 5, 9]))
    assert (
        "".join(json_text({"values": stage_rows([tensor])})) == '{\n"values": [\n2,\n5,\n9\n]\n}\n'
    )
    assert list(cell_rows(("T",), [tensor])) == [("T", "value"), (0, 2), (1, 5), (2, 9)]


def test_parameters_of_one_and_two_axes_keep_their_shape() -> None:
    matrix = np.arange(6, dtype=np.float32).reshape(2, 3)
    document = reread({"parameter": parameter_object("w", matrix.shape, matrix)})
    assert document["parameter"] == {"name": "w", "shape": [2, 3], "values": matrix.tolist()}
    vector = reread({"parameter": parameter_object("b", (3,), matrix[0])})
    assert vector["parameter"]["values"] == [0.0, 1.0, 2.0]


def test_text_of_any_kind_stays_ascii_and_whole() -> None:
    text = "\x1b[2J \ud83d é∩🙂 [/] \r\n"
    assert reread({"prompt": text, "notices": [text]}) == {"prompt": text, "notices": [text]}


def test_an_empty_list_is_written_as_one() -> None:
    assert reread({"notices": [], "values": iter(())}) == {"notices": [], "values": []}
