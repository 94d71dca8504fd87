"""Every number of a trace follows from the numbers it is said to follow from."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest
import torch
from conftest import TINY, TINY_2017, tiny_gpt
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from tui_gpt.analysis.explain import explain
from tui_gpt.config import GPTConfig
from tui_gpt.model.gpt import GPT
from tui_gpt.records.analyses.explanation import LISTED, CellRef, Explanation
from tui_gpt.records.stages import Stage, stage_table
from tui_gpt.records.tokens import Token
from tui_gpt.records.trace import ModelFacts, Run
from tui_gpt.trace.record import LiveTrace

CELLS = 200
"""Random cells of each stage kind of each model."""

MODELS: dict[str, GPTConfig] = {
    "pre-norm": replace(TINY, n_head=3, n_embd=12, n_inner=20, activation="gelu", qkv_bias=False),
    "post-norm": replace(TINY_2017, n_head=3, n_embd=12, n_inner=30),
    "gpt2": replace(TINY, n_head=4, n_embd=16, n_inner=64, vocab_size=97, tied=True),
    "no biases": replace(TINY, n_inner=7, bias=False, layer_norm_epsilon=0.1),
}

STAGE_NAMES = {
    "pre": tuple(dict.fromkeys(stage.name for stage in stage_table(TINY, 1))),
    "post": tuple(dict.fromkeys(stage.name for stage in stage_table(TINY_2017, 1))),
}

KINDS = [
    pytest.param(model, name, id=f"{model}-{name}")
    for model, config in MODELS.items()
    for name in STAGE_NAMES[config.norm]
]

DOUBLE = 1e-13
"""Relative error of sums of up to 64 float64 numbers, added in another order."""


@dataclass(frozen=True)
class Traced:
    """A model, its trace, and all its tensors."""

    model: GPT
    trace: LiveTrace
    weights: dict[str, NDArray[np.float32]]
    tensors: dict[str, NDArray[np.float32]]

    def explain(self, stage_id: str, *index: int) -> Explanation:
        return explain(self.trace, self.weights.__getitem__, stage_id, index)

    def at(self, cell: CellRef) -> float:
        """Look a cell up, without the code that is tested."""
        table = self.tensors if cell.stage is not None else self.weights
        return float(table[cell.stage or cell.parameter or ""][cell.index])


@cache
def traced(name: str) -> Traced:
    config = MODELS[name]
    model = tiny_gpt(config)
    ids = torch.randint(config.vocab_size, (16,), generator=torch.Generator().manual_seed(3))
    tokens = tuple(Token(token_id, b"x") for token_id in ids.tolist())
    run = Run(ModelFacts(name, config, 0, "folder"), "", tokens, (), stage_table(config, 16))
    trace = LiveTrace(run, model, lambda token_id: Token(token_id, b"x"))
    return Traced(
        model,
        trace,
        {key: tensor.numpy() for key, tensor in model.state_dict().items()},
        {
            stage.id: trace.tensor(stage.id).values.astype(np.float32, copy=False)
            for stage in run.stages
        },
    )


def sampled(case: Traced, name: str) -> Iterator[tuple[Stage, tuple[int, ...], Explanation]]:
    """Explain random cells of one stage kind, in whichever block."""
    draw = np.random.default_rng(11)
    stages = [stage for stage in case.trace.run.stages if stage.name == name]
    for _ in range(CELLS):
        stage = stages[draw.integers(len(stages))]
        index = tuple(int(draw.integers(size)) for size in stage.shape)
        yield stage, index, case.explain(stage.id, *index)


def in_double(case: Traced, stage: Stage) -> tuple[Tensor, Tensor]:
    """Compute a stage in float64 by torch from what it reads.

    Returns:
        Its values, and for each the sum of the magnitudes that went into it: rounding errors
        are a share of that.
    """
    config = case.model.config
    reads = [torch.from_numpy(case.tensors[source]).double() for source in stage.reads]
    weights = [
        torch.from_numpy(case.weights[parameter.name]).double() for parameter in stage.parameters
    ]
    match stage.name:
        case "tokens":
            values = torch.from_numpy(case.tensors["tokens"]).double()
        case "embed":
            values = weights[0][reads[0].long()]
        case "pos_embed" if weights:
            values = weights[0][:16]
        case "pos_embed":
            omega = 10000 ** (-torch.arange(0, config.n_embd, 2).double() / config.n_embd)
            angle = torch.arange(16).double()[:, None] * omega
            values = torch.stack((angle.sin(), angle.cos()), -1).flatten(1)
        case "resid_pre" | "resid_mid" | "resid_post":
            return torch.stack(reads).sum(0), torch.stack(reads).abs().sum(0)
        case "ln_1" | "ln_2" | "ln_final":
            (x,), width = reads, (config.n_embd,)
            gain, shift = weights[0], weights[1] if len(weights) > 1 else None
            epsilon = config.layer_norm_epsilon
            values = functional.layer_norm(x, width, gain, shift, epsilon)
            sigma = (x.var(-1, correction=0, keepdim=True) + epsilon).sqrt()
            # The mean is subtracted from x, so an error of the larger of the two stays.
            return values, x.abs().amax(-1, keepdim=True) / sigma * gain.abs() + values.abs()
        case "attn_scores":
            q, k = reads[0], reads[1].transpose(1, 2)
            root = math.sqrt(config.head_dim)
            return q @ k / root, q.abs() @ k.abs() / root
        case "pattern":
            values = reads[0].softmax(-1)
        case "z":
            return reads[0] @ reads[1], reads[0] @ reads[1].abs()
        case "mlp_post":
            if config.activation == "relu":
                values = reads[0].relu()
            else:
                form = "none" if config.activation == "gelu" else "tanh"
                values = functional.gelu(reads[0], approximate=form)
            return values, reads[0].abs()
        case "probs":
            values = reads[0].softmax(-1)
        case _:
            x = reads[0]
            if stage.name == "attn_out":
                x = x.transpose(0, 1).flatten(1)
            bias = weights[1] if len(weights) > 1 else torch.zeros(1).double()
            values = x @ weights[0].T + bias
            sizes = x.abs() @ weights[0].abs().T + bias.abs()
            if len(stage.shape) == 3:
                cut = (16, config.n_head, config.head_dim)
                return values.reshape(cut).transpose(0, 1), sizes.reshape(cut).transpose(0, 1)
            return values, sizes
    return values, values.abs()


@pytest.mark.parametrize(("model", "name"), KINDS)
def test_a_cell_is_explained_by_its_own_value_and_by_that_of_another_library_in_float64(
    model: str, name: str
) -> None:
    case = traced(model)
    reference = {
        stage.id: [part.numpy() for part in in_double(case, stage)]
        for stage in case.trace.run.stages
        if stage.name == name
    }
    for stage, index, found in sampled(case, name):
        value = case.tensors[stage.id][index]
        if name == "attn_scores" and index[2] > index[1]:
            assert found.value is None
            assert found.value_float64 is None
            continue
        assert found.value is not None
        assert found.value_float64 is not None
        assert np.float32(found.value).tobytes() == value.tobytes(), (stage.id, index)
        assert float(np.float32(found.value)) == found.value
        wide, size = (float(part[index]) for part in reference[stage.id])
        assert abs(found.value_float64 - wide) <= DOUBLE * max(1, size), (stage.id, index)
        # n rounding errors of half a unit in the last place, each a share of the magnitudes
        room = (max(found.n_terms, 8) + 2) * 2.0**-24
        assert abs(found.value_float64 - found.value) <= room * max(1, size), (stage.id, index)


@pytest.mark.parametrize(("model", "name"), KINDS)
def test_terms_remainder_and_bias_add_up_and_every_reference_holds_its_value(
    model: str, name: str
) -> None:
    case = traced(model)
    for stage, _, found in sampled(case, name):
        for operand in found.operands:
            if operand.cell is not None:
                there = case.at(operand.cell)
                assert operand.value == (None if there == -math.inf else there), operand
        if not found.has_terms:
            continue
        assert found.value is not None
        listed = sum(term.product for term in found.terms)
        scale = math.sqrt(case.model.config.head_dim) if name == "attn_scores" else 1.0
        for term in found.terms:
            assert case.at(term.input_cell) == term.input
            assert case.at(term.weight_cell) == term.weight
            assert term.product == term.input * term.weight / scale
        every = products_of(case, stage, found) / scale
        order = np.sort(np.abs(every))[::-1]
        sizes = [abs(term.product) for term in found.terms]
        assert sizes == order[:LISTED].tolist()  # the largest, the largest first
        size = np.abs(every).sum() + abs(found.bias)
        assert found.n_terms == len(every)
        assert abs(listed + found.remainder - every.sum()) <= DOUBLE * max(1, size)
        assert abs(listed + found.remainder + found.bias - found.value) <= 1e-5 * max(1, size)
        has_bias = len(stage.parameters) == 2
        assert has_bias or found.bias == 0
        assert [operand.role for operand in found.operands if operand.cell] == ["bias"] * has_bias


def products_of(case: Traced, stage: Stage, found: Explanation) -> NDArray[np.float64]:
    """Multiply the whole rows that the first term names a cell of, without the code tested."""
    first = found.terms[0]
    axis = {"z": 1}.get(stage.name, -1)
    if stage.name == "attn_out":
        inputs = case.tensors[stage.reads[0]][:, found.index[0]].ravel()
    else:
        inputs = case.tensors[stage.reads[0]][first.input_cell.index[:-1]]
    table = case.weights if first.weight_cell.parameter else case.tensors
    weights = table[first.weight_cell.parameter or first.weight_cell.stage or ""]
    place: list[int | slice] = list(first.weight_cell.index)
    place[axis] = slice(None)
    return inputs.astype(np.float64) * weights[tuple(place)].astype(np.float64)


def test_labels_name_the_feature_the_head_the_unit_or_the_key() -> None:
    case = traced("gpt2")
    for name, named in (
        ("q", r"feature {0}"),
        ("attn_scores", r"feature {0}"),
        ("z", r"key {0}"),
        ("mlp_pre", r"feature {0}"),
        ("mlp_out", r"unit {0}"),
    ):
        index = (3, 9, 2) if len(case.tensors[f"blocks.1.{name}"].shape) == 3 else (9, 2)
        for term in case.explain(f"blocks.1.{name}", *index).terms:
            assert term.label == named.format(term.input_cell.index[-1])
    for term in case.explain("logits", 9, 41).terms:
        assert term.label == f"feature {term.input_cell.index[1]}"
        assert term.weight_cell == CellRef.of_parameter("wte.weight", 41, term.input_cell.index[1])
    for term in case.explain("blocks.1.attn_out", 9, 2).terms:
        head, position, feature = term.input_cell.index
        assert position == 9
        assert term.label == f"L1H{head} feature {feature}"


def test_operands_are_named_as_the_contract_names_them() -> None:
    case, fixed = traced("gpt2"), traced("post-norm")

    def roles(found: Explanation) -> list[str]:
        return [operand.role for operand in found.operands]

    norm = ["x", "mean", "variance", "epsilon", "gamma", "beta"]
    assert roles(case.explain("blocks.0.ln_1", 3, 4)) == norm
    assert roles(traced("no biases").explain("blocks.0.ln_1", 3, 4)) == norm[:-1]
    assert roles(case.explain("blocks.0.pattern", 0, 3, 2)) == ["score", "row maximum", "row sum"]
    assert roles(case.explain("probs", 3, 2)) == ["logit", "row maximum", "row sum"]
    assert roles(case.explain("pos_embed", 3, 2)) == ["position", "table entry"]
    assert roles(case.explain("blocks.0.resid_pre", 3, 2)) == ["embed", "pos_embed"]
    assert roles(case.explain("blocks.1.resid_pre", 3, 2)) == ["resid_post"]
    assert roles(fixed.explain("blocks.1.resid_pre", 3, 2)) == ["ln_2"]
    assert roles(fixed.explain("blocks.1.resid_post", 3, 2)) == ["ln_1", "mlp_out"]
    position, frequency = fixed.explain("pos_embed", 3, 4).operands
    assert (position.value, frequency.value) == (3, 10000 ** (-4 / 12))
    root = case.explain("blocks.0.attn_scores", 0, 3, 2).operands[0]
    assert (root.role, root.value) == ("√D", 2)


def test_a_cell_of_the_future_says_so_and_which_positions_it_is_about() -> None:
    case = traced("gpt2")
    score = case.explain("blocks.1.attn_scores", 2, 3, 5)
    assert (score.value, score.value_float64, score.terms) == (None, None, ())
    assert score.reason is not None
    assert "key 5 lies in the future of query 3" in score.reason
    assert [(operand.role, operand.value) for operand in score.operands] == [
        ("query position", 3),
        ("key position", 5),
    ]
    pattern = case.explain("blocks.1.pattern", 2, 3, 5)
    assert (pattern.value, pattern.value_float64, pattern.reason) == (0, 0, score.reason)
    assert pattern.operands[0].value is None
    for name in ("attn_scores", "pattern"):
        assert case.explain(f"blocks.1.{name}", 2, 3, 3).reason is None
