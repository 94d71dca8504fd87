"""Explaining at the edges: published figures, holes, numbers that are none, sizes, refusals."""

from __future__ import annotations

import math
import tracemalloc
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import CHARACTERS, TINY, TINY_2017, tiny_gpt
from numpy.typing import NDArray

from tui_gpt.analysis.explain import explain
from tui_gpt.config import PRESETS, GPTConfig
from tui_gpt.errors import MissingStage, UnknownCell, UnknownStage
from tui_gpt.records.analyses.explanation import CellRef, Explanation, Operand, Term
from tui_gpt.records.recording import Recording, save_recording
from tui_gpt.records.stages import Stage, find_stage, stage_table
from tui_gpt.records.tensors import StageTensor, Values
from tui_gpt.records.tokens import Token
from tui_gpt.records.trace import Candidate, ModelFacts, Run, Trace
from tui_gpt.session import Session
from tui_gpt.trace.record import LiveTrace

IDS = (3, 1, 4, 1, 5, 9, 2, 6)


def a_run(config: GPTConfig, n_positions: int = len(IDS)) -> Run:
    ids = (IDS * (n_positions // len(IDS) + 1))[:n_positions]
    tokens = tuple(Token(token_id, CHARACTERS[token_id].encode()) for token_id in ids)
    return Run(
        ModelFacts("tiny", config, 0, "folder"), "", tokens, (), stage_table(config, len(ids))
    )


def live(config: GPTConfig) -> tuple[LiveTrace, dict[str, NDArray[np.float32]]]:
    model = tiny_gpt(config)
    weights = {key: tensor.numpy() for key, tensor in model.state_dict().items()}
    return LiveTrace(a_run(config), model, lambda token_id: Token(token_id, b"x")), weights


def ones(stage: Stage) -> Values:
    """Fill a stage without any memory."""
    if stage.name == "tokens":
        return np.broadcast_to(np.int64(1), stage.shape)
    return np.broadcast_to(np.float32(1), stage.shape)


class Given:
    """A trace of numbers that a test made up, or that another trace has; some may be missing."""

    def __init__(
        self,
        run: Run,
        values: Mapping[str, Values] | None = None,
        *,
        behind: Trace | None = None,
        holes: tuple[str, ...] = (),
    ) -> None:
        self.run = run
        self._values = values or {}
        self._behind = behind
        self._holes = holes

    def tensor(self, stage_id: str, rows: tuple[int, int] | None = None) -> StageTensor:
        stage = find_stage(self.run.stages, stage_id)
        if stage_id in self._holes:
            raise MissingStage(f"{stage_id} was unhooked")
        if self._behind is not None:
            return self._behind.tensor(stage_id, rows)
        values = self._values.get(stage_id, ones(stage))
        if stage.name not in ("logits", "probs"):
            return StageTensor(stage, values)
        assert rows is not None, "an explanation reads one row of these"
        assert rows[1] - rows[0] == 1
        return StageTensor(stage, values[rows[0] : rows[1]], rows[0])

    def prediction(self) -> tuple[Candidate, ...]:
        return ()


@pytest.mark.parametrize(
    ("x", "mean", "variance", "normed"),
    [
        ((2, 4, 6, 8), 5, 5, (-1.3416, -0.4472, 0.4472, 1.3416)),  # figure W1
        ((4, 8, 12, 16), 10, 20, (-1.3416, -0.4472, 0.4472, 1.3416)),
        ((1, 1, 1, 50), 13.25, 450.1875, (-0.5774, -0.5774, -0.5774, 1.7321)),  # figure W2
    ],
)
def test_layer_norm_shows_the_numbers_of_the_course(
    x: tuple[float, ...], mean: float, variance: float, normed: tuple[float, ...]
) -> None:
    config = replace(TINY, n_head=1, n_embd=4, bias=False, layer_norm_epsilon=0.0)
    trace = Given(a_run(config, 1), {"blocks.0.resid_pre": np.array([x], np.float32)})
    for feature, published in enumerate(normed):
        found = explain(trace, lambda name: np.ones(4, np.float32), "blocks.0.ln_1", (0, feature))
        assert found.value_float64 == pytest.approx(published, abs=5e-5)  # printed to 4 places
        derived = {operand.role: operand.value for operand in found.operands}
        assert (derived["mean"], derived["variance"]) == (mean, variance)
        assert derived["x"] == x[feature]


def test_the_numbers_stand_in_the_formula() -> None:
    config = replace(TINY, n_head=1, n_embd=4, layer_norm_epsilon=0.25)
    x = {"blocks.0.resid_pre": np.array([[2, 4, 6, 8]], np.float32)}
    found = explain(
        Given(a_run(config, 1), x), lambda name: np.full(4, -2, np.float32), "blocks.0.ln_1", (0, 1)
    )
    assert found.formula == (
        "γ · (resid_pre − μ) / √(σ² + ε) + β = -2 · (4 − 5) / √(5 + 0.25) + (-2) = 1"
    )


@pytest.mark.parametrize("config", [TINY, TINY_2017], ids=["pre", "post"])
def test_what_is_missing_is_never_a_number_and_gives_its_reason(config: GPTConfig) -> None:
    whole, weights = live(config)
    for hole in whole.run.stages:
        trace = Given(whole.run, behind=whole, holes=(hole.id,))
        for stage in whole.run.stages:
            index = tuple(0 if axis == "H" else 1 for axis in stage.axes)
            if hole == stage or hole.id in stage.reads:
                with pytest.raises(MissingStage, match=rf"^{hole.id} was unhooked$"):
                    explain(trace, weights.__getitem__, stage.id, index)
            else:
                found = explain(trace, weights.__getitem__, stage.id, index)
                assert found == explain(whole, weights.__getitem__, stage.id, index)


@pytest.mark.parametrize("config", [TINY, TINY_2017, replace(TINY, activation="gelu")])
@pytest.mark.parametrize("broken", [math.nan, math.inf, -math.inf, 3e38])
def test_numbers_that_are_none_are_explained_like_all_others(
    config: GPTConfig, broken: float
) -> None:
    model = tiny_gpt(config)  # case C03
    model.wte.weight[1, 0] = broken
    model.lm_head.weight[3, 0] = broken
    weights = {key: tensor.numpy() for key, tensor in model.state_dict().items()}
    trace = LiveTrace(a_run(config), model, lambda token_id: Token(token_id, b"x"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for stage in trace.run.stages:
            for last in (0, 3):
                index = tuple({"H": 0, "T": 3, "Tq": 3, "Tk": 1}.get(a, last) for a in stage.axes)
                found = explain(trace, weights.__getitem__, stage.id, index)
                value = float(trace.tensor(stage.id).values[index])
                assert found.value is not None
                assert found.value_float64 is not None
                np.testing.assert_equal(found.value, value)
                if math.isnan(broken):  # it spreads in float64 as it does in float32
                    assert math.isnan(found.value_float64) == math.isnan(value), stage.id


def test_a_nan_leads_the_terms() -> None:
    config = replace(TINY, n_head=1, n_embd=12)
    x = np.arange(12, dtype=np.float32)[None]
    x[0, 3] = math.nan
    trace = Given(a_run(config, 1), {"blocks.0.ln_2": x})
    found = explain(
        trace,
        lambda name: np.ones((32, 12) if "weight" in name else 32, np.float32),
        "blocks.0.mlp_pre",
        (0, 0),
    )
    assert [term.label for term in found.terms[:3]] == ["feature 3", "feature 11", "feature 10"]
    assert found.remainder == 0 + 1  # features 0 and 1 are not listed, and not spoilt
    assert found.value_float64 is not None
    assert math.isnan(found.value_float64)


@pytest.mark.parametrize("preset", ["gpt2", "transformer-2017"])
def test_the_largest_stage_costs_no_more_than_a_row_of_it(preset: str) -> None:
    config = PRESETS[preset]
    trace = Given(a_run(config, config.block_size))
    shapes = {
        parameter.name: parameter.shape
        for stage in trace.run.stages
        for parameter in stage.parameters
    }

    def parameter(name: str) -> NDArray[np.float32]:
        return np.broadcast_to(np.float32(0.5), shapes[name])  # no memory behind it

    for stage in trace.run.stages[:36]:
        index = tuple(size - 1 for size in stage.shape)
        explain(trace, parameter, stage.id, index)
        tracemalloc.start()
        explain(trace, parameter, stage.id, index)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        # A dozen float64 rows: 3,072 units, or 1,024 keys.
        assert peak < 12 * 8 * config.n_inner, stage.id
    for name in ("logits", "probs"):
        tracemalloc.start()
        explain(trace, parameter, name, (config.block_size - 1, 5))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 4 * 8 * config.vocab_size, name


def test_a_recording_is_explained_as_the_trace_it_was_made_from(
    tmp_path: Path, tiny_folder: Path
) -> None:
    session, file = Session.open(str(tiny_folder)), tmp_path / "trace.safetensors"
    trace = session.trace(session.prepare("bad egg"))
    save_recording(file, trace, session.weights_sha256())
    recording = Recording(file)
    for stage in trace.run.stages:
        index = (0, 5, 2)[3 - len(stage.shape) :]
        assert session.explain(recording, stage.id, index) == session.explain(
            trace, stage.id, index
        )


@pytest.mark.parametrize(
    ("stage_id", "index", "said"),
    [
        ("embed", (8, 0), "embed has no T = 8; its 8 places are 0…7"),
        ("embed", (0, -1), "embed has no C = -1; its 8 places are 0…7"),
        ("blocks.1.pattern", (2, 0, 0), r"blocks\.1\.pattern has no H = 2; its 2 places are 0…1"),
        ("embed", (0,), "embed takes an index of 2, T,C; 0 has 1"),
        ("embed", (), "embed takes an index of 2, T,C; nothing has 0"),
        ("blocks.1.z", (0, 1, 2, 3), r"blocks\.1\.z takes an index of 3, H,T,D; 0,1,2,3 has 4"),
    ],
)
def test_an_index_that_the_stage_does_not_have_is_refused_with_both_numbers(
    stage_id: str, index: tuple[int, ...], said: str
) -> None:
    trace, weights = live(TINY)
    with pytest.raises(UnknownCell, match=f"^{said}$"):
        explain(trace, weights.__getitem__, stage_id, index)


def test_a_stage_that_is_not_there_is_refused() -> None:
    trace, weights = live(TINY_2017)
    with pytest.raises(UnknownStage, match="no stage 'ln_final'"):
        explain(trace, weights.__getitem__, "ln_final", (0, 0))


def a_term(product: float) -> Term:
    cell = CellRef.of_stage("blocks.0.ln_1", 0, 0)
    return Term("feature 0", product, 1.0, product, cell, cell)


def test_parts_of_an_explanation_that_contradict_each_other_are_refused() -> None:
    good = Explanation("embed", (0, 1), 1.0, 1.0, "1 = 1", ())
    assert not good.has_terms
    for changes, said in (
        ({"value": None}, "either both values are there or neither"),
        ({"value": None, "value_float64": None}, "needs a reason"),
        ({"formula": "1\n= 1"}, "the formula is not one line"),
        ({"n_terms": 3}, "0 terms listed of 3"),
        ({"terms": (a_term(1),)}, "1 terms listed of 0"),
        ({"bias": 0.5}, "a remainder or bias without products"),
        ({"terms": (a_term(1), a_term(-2)), "n_terms": 2}, "the terms are not in order"),
    ):
        with pytest.raises(ValueError, match=rf"embed\[0, 1\]: .*{said}"):
            replace(good, **changes)
    replace(good, terms=(a_term(math.nan), a_term(-2), a_term(1)), n_terms=3)
    with pytest.raises(ValueError, match="of a stage or of a parameter"):
        CellRef("embed", "wte.weight", (0, 0))
    with pytest.raises(ValueError, match=r"\(0, -1\) is no index of embed"):
        CellRef.of_stage("embed", 0, -1)
    with pytest.raises(ValueError, match="mean stands nowhere"):
        Operand("mean", None, None)


def test_the_cells_that_can_be_gone_to_are_named_once_in_reading_order() -> None:
    trace, weights = live(TINY)
    found = explain(trace, weights.__getitem__, "blocks.1.mlp_pre", (2, 5))
    assert found.cells[0] == CellRef.of_parameter("h.1.mlp.c_fc.bias", 5)
    assert found.cells[1:3] == (found.terms[0].input_cell, found.terms[0].weight_cell)
    assert len(found.cells) == len(set(found.cells)) == 1 + 2 * 8
