"""The standing identities: they hold, one broken number is found where it is, holes stay holes."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from conftest import TINY, TINY_2017, tiny_gpt
from numpy.typing import NDArray
from torch import Tensor
from traces import IDS, Broken, Without, a_run, live, unhook

from tui_gpt.analysis.identities import identities
from tui_gpt.config import PRESETS, GPTConfig
from tui_gpt.files import DEFAULT_PROMPT
from tui_gpt.model.gpt import GPT
from tui_gpt.records.analyses.identities import Identities, Identity
from tui_gpt.records.analyses.stream import stream_stages
from tui_gpt.records.recording import Recording
from tui_gpt.records.stages import ActivationName, Stage, find_stage, stage_table
from tui_gpt.records.stages import stage_id as stage_id_of
from tui_gpt.records.tensors import StageTensor
from tui_gpt.records.trace import Candidate, Trace
from tui_gpt.session import Session, bundled_recording

TIED = replace(TINY, tied=True, n_layer=4)

SHAPES = pytest.mark.parametrize("config", [TINY, TINY_2017, TIED], ids=["pre", "2017", "tied"])


def red(found: Identities) -> set[str]:
    return {identity.stage.id for identity in found.violated}


def readers(stages: tuple[Stage, ...], stage_id: str) -> set[str]:
    return {stage.id for stage in stages if stage_id in stage.reads}


def telling_cell(trace: Trace, stage: Stage) -> tuple[int, ...]:
    """Choose a cell whose change no operation swallows.

    A unit that ReLU keeps off, the one key of the first query or a value that is not attended
    to may change and nothing follows from it.
    """
    if stage.name == "mlp_pre":
        values = trace.tensor(stage.id).values
        return tuple(int(i) for i in np.unravel_index(values.argmax(), values.shape))
    if stage.name == "attn_scores":
        pattern = trace.tensor(stage.id.replace("attn_scores", "pattern")).values
        place = np.abs(pattern - 0.5).argmin()
        return tuple(int(i) for i in np.unravel_index(place, pattern.shape))
    draw = np.random.default_rng(len(stage.id))
    if stage.name == "v":
        return (int(draw.integers(stage.shape[0])), 0, 2)  # the first query reads nothing else
    if stage.name == "pattern":
        return (int(draw.integers(stage.shape[0])), stage.shape[1] - 1, 2)
    return tuple(int(draw.integers(size)) for size in stage.shape)


@SHAPES
def test_every_stage_is_its_operation_on_the_stages_it_reads(config: GPTConfig) -> None:
    model = tiny_gpt(config)
    found = identities(live(config, model=model), model)
    assert not found.violated
    assert not found.unchecked
    stages = stage_table(config, 8)
    # each stage once, three more in every block, one more for logits and one for probs
    assert len(found.all) == len(stages) + 3 * config.n_layer + 2
    assert [identity.stage.id for identity in found.all if "operation" in identity.claim] == [
        stage.id for stage in stages
    ]
    worst = found.worst
    assert worst is not None
    assert worst.error is not None
    assert worst.error < 1e-6  # sums of eight float32 weights; the rest is bit for bit the same


@SHAPES
def test_one_broken_number_is_red_at_its_stage_and_its_readers_and_nowhere_else(
    config: GPTConfig,
) -> None:
    model = tiny_gpt(config)
    trace = live(config, model=model)
    for stage in trace.run.stages:
        by = 1 if stage.name == "tokens" else 1e-3  # ids are whole numbers
        cell = telling_cell(trace, stage)
        found = identities(Broken(trace, stage.id, cell, by), model)
        assert red(found) == {stage.id, *readers(trace.run.stages, stage.id)}, (stage.id, cell)
        first = found.violated[0]
        assert first.stage.id == stage.id
        if stage.name not in ("tokens", "pattern", "probs"):
            assert first.index == cell
            assert first.error == pytest.approx(by, rel=0.1)  # the number itself is rounded


@pytest.mark.parametrize("name", ["shakespeare", "shakespeare-2017"])
def test_the_bundled_models_and_their_recordings_are_in_order(name: str) -> None:
    session = Session.open(name)
    path = bundled_recording(name, DEFAULT_PROMPT)
    assert path is not None
    for trace in (session.trace(session.prepare(DEFAULT_PROMPT)), Recording(path)):
        found = session.identities(trace)
        assert not found.violated
        assert not found.unchecked
        stages = trace.run.stages
        for stage_id in ("blocks.0.q", "blocks.1.attn_out", "blocks.1.resid_post", "logits"):
            stage = find_stage(stages, stage_id)
            found = session.identities(Broken(trace, stage_id, telling_cell(trace, stage)))
            assert red(found) == {stage_id, *readers(stages, stage_id)}


def test_a_gpt2_shape_with_a_large_vocabulary_and_more_rows_than_fit_together() -> None:
    config = replace(PRESETS["gpt2"], n_layer=1, n_embd=96, n_inner=384, vocab_size=20_000)
    model = GPT(config)
    draw = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0.0, 0.02, generator=draw)
    model.requires_grad_(False).eval()
    trace = live(config, tuple(range(150)), model)
    found = identities(trace, model)
    assert not found.violated
    assert not found.unchecked
    found = identities(Broken(trace, "logits", (140, 19_999)), model)
    assert red(found) == {"logits", "probs"}
    assert found.violated[0].index == (140, 19_999)


def test_a_future_that_is_read_is_named(either_norm: GPTConfig) -> None:
    model = tiny_gpt(either_norm)
    trace = live(either_norm, model=model)
    found = identities(Broken(trace, "blocks.0.pattern", (1, 2, 5)), model)
    claims = {identity.claim for identity in found.violated if identity.stage.name == "pattern"}
    assert "has nothing above the diagonal" in claims
    assert "has rows that sum to 1" in claims
    found = identities(Broken(trace, "blocks.0.attn_scores", (1, 2, 5)), model)
    first = found.violated[0]
    assert first.claim == "has the future masked"
    assert first.error == math.inf
    assert red(found) == {"blocks.0.attn_scores", "blocks.0.pattern"}


def test_what_the_lens_ends_with_is_what_the_model_says(either_norm: GPTConfig) -> None:
    model = tiny_gpt(either_norm)
    trace = live(either_norm, model=model)

    def of_the_lens(found: Identities) -> Identity:
        return next(one for one in found.all if "logit lens" in one.claim)

    whole = of_the_lens(identities(trace, model))
    assert whole.holds
    assert whole.error == 0  # computed with the same rows beside it
    broken = of_the_lens(identities(Broken(trace, "logits", (3, 4)), model))
    assert broken.holds is None
    assert broken.unchecked == "logits already differs from its operation"


@SHAPES
def test_a_hole_is_not_checked_and_nothing_stands_in_its_place(config: GPTConfig) -> None:
    model = tiny_gpt(config)
    trace = live(config, model=model)
    last_stream, _ = stream_stages(trace.run.stages, config)[-1]
    for stage in trace.run.stages:
        holed = Without(trace, stage.id)
        found = identities(holed, model)
        assert not found.violated, stage.id
        unchecked = {one.stage.id for one in found.unchecked}
        expected = {stage.id, *readers(trace.run.stages, stage.id)}
        if stage == last_stream:  # the lens's last row reads it as well
            expected.add("logits")
        assert unchecked == expected, stage.id
        for one in found.unchecked:
            assert one.unchecked == holed.reason
            assert (one.error, one.tolerance, one.index) == (None, None, None)


@SHAPES
def test_a_stage_that_was_unhooked_leaves_a_hole_and_no_other_number(
    config: GPTConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = live(config)
    for stage in whole.run.stages:
        model = tiny_gpt(config)
        with monkeypatch.context() as patch:
            unhook(patch, model, stage)
            trace = live(config, model=model)
            found = identities(trace, model)
            assert not found.violated, stage.id
            mine = [one for one in found.all if one.stage.id == stage.id]
            assert all(one.holds is None for one in mine)
            assert all("was not recorded: the pass did not" in one.unchecked for one in mine)
            for other in whole.run.stages:
                if other.layer != stage.layer:
                    ours, theirs = trace.tensor(other.id).values, whole.tensor(other.id).values
                    assert np.array_equal(ours, theirs), (stage.id, other.id)


def test_one_token_has_all_identities(either_norm: GPTConfig) -> None:
    model = tiny_gpt(either_norm)  # case C01
    found = identities(live(either_norm, (3,), model), model)
    assert not found.violated
    assert not found.unchecked


def test_numbers_that_are_none_agree_with_each_other_but_do_not_sum_to_1() -> None:
    model = tiny_gpt(TINY)  # case C03
    assert model.ln_f is not None
    model.ln_f.weight[0] = math.nan
    found = identities(live(TINY, model=model), model)
    assert [(one.stage.id, one.claim) for one in found.violated] == [
        ("probs", "has rows that sum to 1 over the whole vocabulary")
    ]
    found = identities(Broken(live(TINY), "blocks.1.z", (0, 1, 2), math.nan), tiny_gpt(TINY))
    assert found.violated[0].stage.id == "blocks.1.z"
    assert found.violated[0].error == math.inf
    assert red(found) == {"blocks.1.z", "blocks.1.attn_out"}


def test_ids_that_no_model_has_are_found_and_not_looked_up() -> None:
    model = tiny_gpt(TINY)
    found = identities(Broken(live(TINY, model=model), "tokens", (2,), 100), model)
    assert red(found) == {"tokens"}
    assert [one.unchecked for one in found.unchecked] == [
        "tokens holds an id that the model does not have"
    ]


def test_the_work_can_be_stopped() -> None:
    class Stopped(Exception):
        pass

    def check_cancelled() -> None:
        raise Stopped

    model = tiny_gpt(TINY)
    with pytest.raises(Stopped):
        identities(live(TINY, model=model), model, check_cancelled=check_cancelled)


class Rounded:
    """A trace whose every operation was computed in float64 and rounded once, at its end."""

    def __init__(self, config: GPTConfig) -> None:
        self.run = a_run(config)
        self._seen: dict[str, NDArray[np.float32]] = {}

        def tap(name: ActivationName, layer: int | None, x: Tensor) -> Tensor:
            rounded = x if name == "tokens" else x.float()
            self._seen[stage_id_of(name, layer)] = rounded[0].numpy()
            return x if name == "tokens" else rounded.double()

        tiny_gpt(config).double()(torch.tensor([IDS]), tap)

    def tensor(self, stage_id: str, rows: tuple[int, int] | None = None) -> StageTensor:
        first, end = rows or (0, None)
        stage = find_stage(self.run.stages, stage_id)
        return StageTensor(stage, self._seen[stage_id][first:end], first)

    def prediction(self) -> tuple[Candidate, ...]:
        return ()


def test_a_run_whose_sums_were_rounded_otherwise_is_in_order_too(either_norm: GPTConfig) -> None:
    config = replace(either_norm, n_embd=64, n_head=4, n_inner=256, vocab_size=300)
    found = identities(Rounded(config), tiny_gpt(config))
    assert not found.violated
    assert not found.unchecked
    assert sum(1 for one in found.all if one.error) > len(found.all) // 2
