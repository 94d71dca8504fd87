"""The block plan and the transformer are written apart: here they are held together."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from families import FAMILIES
from torch import Tensor

from tui_gpt.config import LATER_SHAPES, GPTConfig
from tui_gpt.model.gpt import GPT
from tui_gpt.records.block_plan import ActivationName, Step, block_plan
from tui_gpt.records.budget.counts import budget
from tui_gpt.records.stages import Stage, count_parameters, stage_id, stage_table
from tui_gpt.trace.record import Recorder

N_POSITIONS = 9

SMALL = GPTConfig(n_layer=2, n_head=2, n_embd=8, n_inner=12, block_size=16, vocab_size=11)
CONFIGS = {
    "gpt2": SMALL,
    "no biases": replace(SMALL, bias=False),
    "no q k v biases, tied": replace(SMALL, qkv_bias=False, tied=True),
    "2017": replace(SMALL, norm="post", positions="sinusoidal", activation="relu"),
    "post-norm without biases": replace(SMALL, norm="post", bias=False),
    **{name: family.config for name, family in FAMILIES.items()},
}


@pytest.fixture(params=list(CONFIGS))
def config(request: pytest.FixtureRequest) -> GPTConfig:
    return CONFIGS[request.param]


def model_of(config: GPTConfig) -> GPT:
    torch.manual_seed(5)
    model = GPT(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape))
    return model.eval()


def ids_of(config: GPTConfig) -> Tensor:
    return torch.arange(N_POSITIONS)[None] * 3 % config.vocab_size


def test_the_pass_offers_just_the_stages_of_the_plan_in_its_order(config: GPTConfig) -> None:
    recorder = Recorder()
    with torch.no_grad():
        model_of(config)(ids_of(config), recorder)
    offered = [(stage_id(*key), tuple(x.shape[1:])) for key, x in recorder.seen.items()]
    planned = [(stage.id, stage.shape) for stage in stage_table(config, N_POSITIONS)]
    assert offered == planned


def test_the_parameters_are_those_of_the_plan(config: GPTConfig) -> None:
    planned = {
        parameter.name: parameter.shape
        for stage in stage_table(config, 1)
        for parameter in stage.parameters
    }
    state = model_of(config).state_dict()
    if config.tied:
        del state["lm_head.weight"]  # the token table under its second name
    assert {name: tuple(tensor.shape) for name, tensor in state.items()} == planned


def test_a_stage_changes_just_where_one_that_it_reads_does(config: GPTConfig) -> None:
    model, ids = model_of(config), ids_of(config)
    stages = {stage.id: stage for stage in stage_table(config, N_POSITIONS)}
    plain = Recorder()
    with torch.no_grad():
        model(ids, plain)
        for changed in stages.values():
            if changed.name == "tokens" or changed.layer == 1:
                continue
            held = _Held(plain, changed)
            model(ids, held)
            readers = {stage.id for stage in stages.values() if changed.id in stage.reads}
            assert held.moved == readers, changed.id


class _Held:
    """A tap that changes one stage, and hands on every other as it was before.

    So a stage moves only if it reads the changed one itself.
    """

    def __init__(self, plain: Recorder, changed: Stage) -> None:
        self._plain = plain
        self._changed = changed
        self.moved: set[str] = set()

    def __call__(self, name: ActivationName, layer: int | None, x: Tensor) -> Tensor:
        before = self._plain.seen[name, layer]
        if stage_id(name, layer) == self._changed.id:
            return before + torch.where(before.isfinite(), 0.25 + before * 0.1, 0)
        if not torch.equal(x, before):
            self.moved.add(stage_id(name, layer))
        return before


COUNTS = {
    "smollm2-135m": 134_515_008,
    "smollm2-360m": 361_821_120,
    "smollm2-1.7b": 1_711_376_384,
    "llama-3.2-1b": 1_235_814_400,
    "llama-2-7b": 6_738_415_616,
    "llama-3-8b": 8_030_261_248,
    "tinyllama-1.1b": 1_100_048_384,
    "mistral-7b": 7_241_732_096,
    "qwen2.5-0.5b": 494_032_768,
    "qwen3-0.6b": 596_049_920,
    "pythia-70m": 70_426_624,
    "pythia-160m": 162_322_944,
}


@pytest.mark.parametrize("name", list(COUNTS))
def test_a_named_shape_has_the_published_number_of_parameters(name: str) -> None:
    assert count_parameters(LATER_SHAPES[name]) == COUNTS[name]
    assert budget(LATER_SHAPES[name]).total == COUNTS[name]


def test_a_stage_is_added_by_one_step_of_the_plan() -> None:
    plan = block_plan(SMALL)
    invented = Step("rot_q", "copy", ("H", "T", "D"), ("q",), "an invented step", "q again")
    place = [step.name for step in plan.block].index("v") + 1
    longer = replace(plan, block=(*plan.block[:place], invented, *plan.block[place:]))
    stages = stage_table(SMALL, N_POSITIONS, longer)
    added = next(stage for stage in stages if stage.id == "blocks.1.rot_q")
    assert added.reads == ("blocks.1.q",)
    assert added.shape == (2, N_POSITIONS, 4)
    assert len(stages) == len(stage_table(SMALL, N_POSITIONS)) + SMALL.n_layer


def test_frequencies_of_a_rotation_follow_the_published_formula() -> None:
    config = LATER_SHAPES["llama-3-8b"]
    wanted = 500000.0 ** (-2 * np.arange(64) / 128)
    np.testing.assert_allclose(config.rotary_frequencies, wanted, rtol=1e-12)
