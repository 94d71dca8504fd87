"""The logit lens: the model's own head at every depth, ending in the model's own answer."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from conftest import TINY, TINY_2017, tiny_gpt
from torch.nn import functional
from traces import Broken, Without, a_token, live

from tui_gpt.analysis.lens import company, lens, lenses
from tui_gpt.analysis.output import output
from tui_gpt.config import GPTConfig
from tui_gpt.model.gpt import LayerNorm
from tui_gpt.records.analyses.stream import stream_stages
from tui_gpt.records.stages import find_stage

WIDE = replace(TINY, n_embd=64, n_head=4, n_layer=3, vocab_size=300, block_size=200)
"""Where kernels do round otherwise with other rows beside a row."""


@pytest.mark.parametrize("config", [TINY, TINY_2017, WIDE, replace(WIDE, tied=True)])
def test_the_last_row_is_the_models_own_answer_to_the_last_bit(config: GPTConfig) -> None:
    model = tiny_gpt(config)
    n_positions = min(150, config.block_size)
    trace = live(config, tuple(i % config.vocab_size for i in range(n_positions)), model)
    for position in (0, n_positions // 2, n_positions - 1):
        own = output(trace, position, a_token, 10).ranking
        assert lens(trace, model, a_token, position).points[-1].ranking == own
    assert [one.logit for one in (own.best if own else ())] == [
        one.logit for one in trace.prediction()
    ]


def test_every_row_is_the_final_layer_norm_and_the_head_on_the_stream_there() -> None:
    model = tiny_gpt(TINY)
    trace = live(TINY, model=model)
    assert isinstance(model.ln_f, LayerNorm)
    for position in range(8):
        for point in lens(trace, model, a_token, position, count=11).points:
            x = torch.from_numpy(trace.tensor(point.stage.id).values)[position]
            normed = functional.layer_norm(
                x, (8,), model.ln_f.weight, model.ln_f.bias, TINY.layer_norm_epsilon
            )
            logits = normed @ model.lm_head.weight.T
            probs = torch.softmax(logits, -1)
            assert point.ranking is not None
            assert point.ranking.entropy == pytest.approx(
                float(-(probs * probs.log()).sum()), abs=1e-5
            )
            for one in point.ranking.best:
                # sums of eight float32 products below 10, in another order
                assert one.logit == pytest.approx(float(logits[one.token.id]), abs=1e-5)
                assert one.prob == pytest.approx(float(probs[one.token.id]), abs=1e-5)


def test_after_2017_the_stream_is_normalised_already() -> None:
    model = tiny_gpt(TINY_2017)
    trace = live(TINY_2017, model=model)
    for point in lens(trace, model, a_token, 5, count=11).points:
        x = torch.from_numpy(trace.tensor(point.stage.id).values)[5]
        logits = model.lm_head.weight @ x
        assert point.ranking is not None
        for one in point.ranking.best:
            assert one.logit == pytest.approx(float(logits[one.token.id]), abs=1e-5)


def test_a_position_reads_the_same_alone_and_among_others() -> None:
    model = tiny_gpt(WIDE)
    trace = live(WIDE, tuple(range(100)), model)
    together = lenses(trace, model, a_token, tuple(range(100)))
    assert [one.position for one in together] == list(range(100))
    for position in (0, 63, 64, 99):
        assert lens(trace, model, a_token, position) == together[position]


def test_only_the_rows_that_are_asked_for_are_computed() -> None:
    model = tiny_gpt(WIDE)
    trace = live(WIDE, tuple(range(150)), model)
    rows = 0

    def counted(module: object, arguments: tuple[torch.Tensor], result: torch.Tensor) -> None:
        nonlocal rows
        rows += result.shape[1]

    model.lm_head.register_forward_hook(counted)
    lens(trace, model, a_token, 140)
    assert company(140, 150) == (128, 150)
    assert rows == 6 + 22  # six depths above the last one, and the last one's company


def test_equal_logits_name_the_lowest_id_at_every_depth() -> None:
    model = tiny_gpt(replace(TINY, vocab_size=8))  # case C14
    model.lm_head.weight.zero_()
    trace = live(model.config, (1, 2, 3), model)
    for point in lens(trace, model, a_token, 2, count=3).points:
        assert point.ranking is not None
        assert [one.token.id for one in point.ranking.best] == [0, 1, 2]
        assert [one.prob for one in point.ranking.best] == [0.125] * 3
        assert point.ranking.entropy == pytest.approx(math.log(8))


def test_a_hole_has_its_reason_and_the_other_depths_their_numbers(either_norm: GPTConfig) -> None:
    model = tiny_gpt(either_norm)
    trace = live(either_norm, model=model)
    whole = lens(trace, model, a_token, 4)
    depths = {
        stage.id: i for i, (stage, _) in enumerate(stream_stages(trace.run.stages, either_norm))
    }
    for stage in trace.run.stages:
        holed = Without(trace, stage.id)
        found = lens(holed, model, a_token, 4)
        for depth, (there, here) in enumerate(zip(whole.points, found.points, strict=True)):
            if depth == depths.get(stage.id):
                assert here.ranking is None
                assert here.missing == holed.reason
            elif stage.id not in depths:
                assert here == there
            else:
                assert here.ranking is not None
                assert not here.missing


def test_a_depth_whose_numbers_are_none_predicts_nothing() -> None:
    model = tiny_gpt(TINY)  # case C03
    trace = Broken(live(TINY, model=model), "blocks.0.resid_mid", (4, 2), math.nan)
    found = lens(trace, model, a_token, 4)
    assert [bool(point.ranking and point.ranking.best) for point in found.points] == [
        True, False, True, True, True,
    ]  # fmt: skip
    broken = found.points[1].ranking
    assert broken is not None
    assert (broken.entropy, broken.n_flagged) == (None, 11)
    assert find_stage(trace.run.stages, "blocks.0.resid_mid") == found.points[1].stage


def test_depths_are_as_many_as_the_stream_has() -> None:
    config = replace(TINY, n_layer=5)
    model = tiny_gpt(config)
    assert len(lens(live(config, model=model), model, a_token, 0).points) == 11
