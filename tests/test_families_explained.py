"""Any cell of any family: explained from its operands, and every identity holds."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from families import FAMILIES, ours_of, reference_of

from tui_gpt.analysis.explain import explain
from tui_gpt.analysis.identities import identities
from tui_gpt.config import GPTConfig
from tui_gpt.model.gpt import GPT
from tui_gpt.records.stages import stage_table
from tui_gpt.records.tokens import Token
from tui_gpt.records.trace import ModelFacts, Run
from tui_gpt.trace.record import LiveTrace

CELLS = 200
N_POSITIONS = 24


def trace_of(config: GPTConfig, model: GPT) -> LiveTrace:
    ids = np.random.default_rng(2).integers(0, config.vocab_size, N_POSITIONS)
    tokens = tuple(Token(int(i), b"t") for i in ids)
    stages = stage_table(config, N_POSITIONS)
    run = Run(ModelFacts("tiny", config, 0, ""), "", tokens, (), stages)
    return LiveTrace(run, model, lambda i: Token(i, b"t"))


@pytest.mark.parametrize("name", list(FAMILIES))
def test_every_cell_is_explained_by_its_operands(name: str) -> None:
    family = FAMILIES[name]
    model = ours_of(family, reference_of(family))
    trace = trace_of(family.config, model)
    weights = {key: tensor.numpy() for key, tensor in model.state_dict().items()}
    random = np.random.default_rng(1)
    for stage in trace.run.stages:
        if stage.layer == 1:
            continue
        for _ in range(CELLS // 4 if stage.layer is None else CELLS // 2):
            index = tuple(int(random.integers(0, size)) for size in stage.shape)
            found = explain(trace, weights.__getitem__, stage.id, index)
            if found.value is None:
                assert found.value_float64 is None
                assert found.reason
                continue
            assert found.value_float64 is not None
            scale = 1 + abs(found.value) + sum(abs(term.product) for term in found.terms)
            assert math.isclose(found.value, found.value_float64, rel_tol=0, abs_tol=3e-6 * scale)
            if found.terms:
                total = sum(term.product for term in found.terms) + found.remainder + found.bias
                assert math.isclose(total, found.value_float64, rel_tol=0, abs_tol=1e-9 * scale)


@pytest.mark.parametrize("name", list(FAMILIES))
def test_every_identity_holds(name: str) -> None:
    family = FAMILIES[name]
    model = ours_of(family, reference_of(family))
    with torch.no_grad():
        found = identities(trace_of(family.config, model), model)
    for identity in found.all:
        assert identity.holds, identity


def test_a_feature_behind_the_rotated_ones_stays() -> None:
    family = FAMILIES["pythia"]
    model = ours_of(family, reference_of(family))
    trace = trace_of(family.config, model)
    found = explain(trace, lambda key: model.state_dict()[key].numpy(), "blocks.0.rot_q", (1, 5, 6))
    assert "which is not rotated" in found.formula
    assert found.value == found.value_float64


def test_a_key_outside_the_window_says_so() -> None:
    family = FAMILIES["window"]
    model = ours_of(family, reference_of(family))
    trace = trace_of(family.config, model)
    weights = {key: tensor.numpy() for key, tensor in model.state_dict().items()}
    scores = explain(trace, weights.__getitem__, "blocks.0.attn_scores", (0, 10, 3))
    assert scores.value is None
    assert scores.reason == (
        "key 3 lies outside the window of query 10: a position reads itself and 6 before it"
    )
    assert explain(trace, weights.__getitem__, "blocks.0.attn_scores", (0, 10, 4)).value is not None
    pattern = explain(trace, weights.__getitem__, "blocks.0.pattern", (0, 10, 3))
    assert (pattern.value, pattern.value_float64) == (0.0, 0.0)


def test_a_query_head_reads_the_key_head_of_its_group() -> None:
    family = FAMILIES["grouped"]
    model = ours_of(family, reference_of(family))
    trace = trace_of(family.config, model)
    found = explain(trace, lambda key: model.state_dict()[key].numpy(), "blocks.0.z", (3, 8, 2))
    cells = {term.weight_cell.index[0] for term in found.terms if term.weight_cell is not None}
    assert cells == {1}  # four query heads share two key heads
