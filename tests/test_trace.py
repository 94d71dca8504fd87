"""What a trace says of a run, live and recorded: measured once, the same wherever it is read."""

from __future__ import annotations

import gc
import json
import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
import torch
from conftest import TINY, TINY_2017, tiny_gpt, write_tiny_model
from numpy.typing import NDArray
from torch.nn import functional

from tui_gpt.analysis import summary as summaries_of
from tui_gpt.analysis.summary import summary
from tui_gpt.config import GPTConfig
from tui_gpt.errors import (
    DamagedModel,
    DamagedRecording,
    EmptyPrompt,
    PromptTooLong,
    UnknownStage,
    UnknownTokenId,
)
from tui_gpt.model.gpt import GPT
from tui_gpt.records.analyses.prediction import best_candidates
from tui_gpt.records.recording import Recording, save_recording
from tui_gpt.records.stages import find_stage, stage_table
from tui_gpt.records.tensors import StageTensor, merged, statistics
from tui_gpt.records.tokens import Token
from tui_gpt.records.trace import ModelFacts, Run, Trace
from tui_gpt.session import Session, recorded_session
from tui_gpt.trace.record import BLOCKS_KEPT, LiveTrace, Recorder

IDS = (3, 1, 4, 1, 5, 9, 2, 6)

FLOAT32 = 1e-5
"""Sums of a few float32 numbers below about 10, added in another order."""


def a_token(token_id: int) -> Token:
    return Token(token_id, bytes([0x61 + token_id % 26]))


def a_run(config: GPTConfig, ids: tuple[int, ...] = IDS) -> Run:
    tokens = tuple(a_token(token_id) for token_id in ids)
    facts = ModelFacts("tiny", config, 0, "folder")
    return Run(facts, "tiny prompt", tokens, (), stage_table(config, len(ids)))


def live(config: GPTConfig, ids: tuple[int, ...] = IDS, model: GPT | None = None) -> LiveTrace:
    return LiveTrace(a_run(config, ids), model or tiny_gpt(config), a_token)


def values(trace: Trace, stage_id: str) -> NDArray[np.float32]:
    return trace.tensor(stage_id).values.astype(np.float32, copy=False)


@pytest.fixture
def recorded(tmp_path: Path, either_norm: GPTConfig) -> tuple[LiveTrace, Path]:
    """A trace, and the file it was saved to."""
    trace, file = live(either_norm), tmp_path / "trace.safetensors"
    save_recording(file, trace, "0" * 64)
    return trace, file


@pytest.mark.parametrize("layer", [0, 1])
def test_the_stream_is_the_sum_of_what_was_written(layer: int) -> None:
    trace = live(TINY)
    read, attention, feed_forward, left = (
        values(trace, f"blocks.{layer}.{name}")
        for name in ("resid_pre", "attn_out", "mlp_out", "resid_post")
    )
    np.testing.assert_allclose(read + attention + feed_forward, left, rtol=0, atol=FLOAT32)


@pytest.mark.parametrize("layer", [0, 1])
def test_after_2017_the_norm_of_the_stream_is_the_stream(layer: int) -> None:
    model = tiny_gpt(TINY_2017)
    trace = live(TINY_2017, model=model)
    state = model.state_dict()
    for source, normed, norm in (
        ("resid_mid", "ln_1", "ln_1"),
        ("resid_post", "ln_2", "ln_2"),
    ):
        torchs = functional.layer_norm(
            torch.from_numpy(values(trace, f"blocks.{layer}.{source}")),
            (TINY_2017.n_embd,),
            state[f"h.{layer}.{norm}.weight"],
            state[f"h.{layer}.{norm}.bias"],
            TINY_2017.layer_norm_epsilon,
        )
        ours = values(trace, f"blocks.{layer}.{normed}")
        np.testing.assert_allclose(ours, torchs.numpy(), rtol=0, atol=FLOAT32)


def test_a_pattern_is_a_distribution_over_the_past(either_norm: GPTConfig) -> None:
    trace = live(either_norm)
    future = np.triu(np.ones((len(IDS), len(IDS)), bool), k=1)
    for layer in range(either_norm.n_layer):
        pattern = values(trace, f"blocks.{layer}.pattern")
        assert (pattern[:, future] == 0).all()
        # eight float32 numbers below 1
        np.testing.assert_allclose(pattern.sum(-1), 1, rtol=0, atol=1e-6)


def test_the_pattern_times_the_values_is_the_head_output(either_norm: GPTConfig) -> None:
    trace = live(either_norm)  # case C26
    for layer in range(either_norm.n_layer):
        pattern, v, z = (values(trace, f"blocks.{layer}.{name}") for name in ("pattern", "v", "z"))
        np.testing.assert_allclose(pattern @ v, z, rtol=0, atol=FLOAT32)


def test_a_score_of_the_future_is_masked_and_no_other_cell_is(either_norm: GPTConfig) -> None:
    trace = live(either_norm)
    for stage in trace.run.stages:
        tensor = trace.tensor(stage.id)
        if stage.name == "attn_scores":
            assert tensor.masked is not None
            assert (tensor.masked == np.isneginf(tensor.values)).all()
            n = len(IDS)
            assert statistics(tensor).masked == either_norm.n_head * n * (n - 1) // 2
        else:
            assert tensor.masked is None
            assert tensor.present().size == tensor.values.size


def test_a_stage_run_again_is_bit_for_bit_that_of_one_full_pass(either_norm: GPTConfig) -> None:
    model = tiny_gpt(either_norm)
    recorder = Recorder()
    with torch.inference_mode():
        model(torch.tensor([IDS]), recorder)
    trace = live(either_norm, model=model)
    stages = list(trace.run.stages)
    for stage in (*stages, *reversed(stages)):  # in whatever order they are opened
        whole = recorder.seen[stage.name, stage.layer][0].numpy()
        assert np.array_equal(trace.tensor(stage.id).values, whole), stage.id


def test_a_cell_of_the_logits_reads_the_same_in_every_slice() -> None:
    # A wide head and more rows than are computed at once, where kernels do differ.
    config = replace(TINY, n_embd=64, n_head=4, vocab_size=81, block_size=200)
    trace = live(config, tuple(i % 81 for i in range(150)))
    for stage_id in ("logits", "probs"):
        whole = trace.tensor(stage_id).values
        assert whole.shape == (150, 81)
        for first, end in ((149, 150), (0, 1), (63, 65), (10, 140), (64, 128), (100, 150)):
            part = trace.tensor(stage_id, (first, end))
            assert part.first == first
            assert np.array_equal(part.values, whole[first:end]), (first, end)
    best = trace.prediction()[0]
    assert best.logit == trace.tensor("logits").values[149].max()


def test_a_trace_keeps_the_stream_at_the_borders_and_the_last_blocks_looked_at() -> None:
    config = replace(TINY, n_layer=4, block_size=256)
    n_positions, before = 256, tensor_cells()
    trace = live(config, tuple(i % 11 for i in range(n_positions)))
    borders = (config.n_layer + 1) * n_positions * config.n_embd
    weights = sum(parameter.numel() for parameter in trace._model.parameters())
    assert tensor_cells() - before == weights + borders + n_positions

    for layer in range(config.n_layer):
        trace.tensor(f"blocks.{layer}.pattern")
    assert list(trace._blocks) == [2, 3]
    trace.tensor("blocks.2.z")
    trace.tensor("blocks.0.z")
    assert list(trace._blocks) == [2, 0]
    assert len(trace._blocks) == BLOCKS_KEPT


def tensor_cells() -> int:
    """Count the numbers in all tensors that anything still holds, shared memory once."""
    gc.collect()
    storages = {
        thing.untyped_storage().data_ptr(): thing.untyped_storage().nbytes() // thing.itemsize
        for thing in gc.get_objects()
        if issubclass(type(thing), torch.Tensor) and thing.device.type == "cpu"
    }
    return sum(storages.values())


def test_a_pass_ends_where_the_caller_says_stop() -> None:
    calls = 0

    class Stopped(Exception):
        pass

    def check_cancelled() -> None:
        nonlocal calls
        calls += 1
        if calls == 10:
            raise Stopped

    with pytest.raises(Stopped):
        LiveTrace(a_run(TINY), tiny_gpt(), a_token, check_cancelled=check_cancelled)
    assert calls == 10


def test_a_recording_gives_every_number_back_exactly(recorded: tuple[LiveTrace, Path]) -> None:
    trace, file = recorded
    recording = Recording(file)
    assert recording.run.tokens == trace.run.tokens
    assert recording.run.prompt == trace.run.prompt
    assert recording.run.stages == trace.run.stages
    assert recording.run.model.config == trace.run.model.config
    assert recording.run.model.source == "recording"
    assert recording.weights_sha256 == "0" * 64
    assert recording.prediction() == trace.prediction()
    for stage in trace.run.stages:
        live_tensor, read = trace.tensor(stage.id), recording.tensor(stage.id)
        assert read.values.dtype == live_tensor.values.dtype
        assert np.array_equal(read.values, live_tensor.values), stage.id
    part = recording.tensor("logits", (2, 5))
    assert part.first == 2
    assert np.array_equal(part.values, trace.tensor("logits").values[2:5])


def test_rows_mean_the_same_to_a_recording_and_to_a_live_trace(
    recorded: tuple[LiveTrace, Path],
) -> None:
    trace, file = recorded
    for answers in (trace, Recording(file)):
        assert answers.tensor("blocks.0.pattern", (1, 2)).values.shape == (2, 8, 8)


def test_a_recording_is_opened_without_torch(recorded: tuple[LiveTrace, Path]) -> None:
    probe = (
        "import sys; from pathlib import Path; from tui_gpt.records.recording import Recording; "
        "r = Recording(Path(sys.argv[1])); r.tensor('blocks.0.pattern'); r.prediction(); "
        "sys.exit(bool({'torch', 'tiktoken', 'textual', 'rich'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", probe, recorded[1]]).returncode == 0


def test_a_model_of_nan_has_no_best_token_and_can_still_be_recorded(tmp_path: Path) -> None:
    model = tiny_gpt()  # case C03
    assert model.ln_f is not None
    model.ln_f.weight[0] = math.nan
    trace, file = live(TINY, model=model), tmp_path / "nan.safetensors"
    save_recording(file, trace, "0" * 64)
    assert trace.prediction() == Recording(file).prediction() == ()
    whole = file.read_bytes()
    assert b"NaN" not in whole[8 : 8 + int.from_bytes(whole[:8], "little")]  # strict JSON


def test_a_missing_cut_or_foreign_recording_is_refused_by_name(
    tmp_path: Path, recorded: tuple[LiveTrace, Path]
) -> None:
    file = recorded[1]
    whole = file.read_bytes()
    for content in (b"", whole[:7], whole[:-5], whole + b"xy", b"no recording at all"):
        file.write_bytes(content)
        with pytest.raises(DamagedRecording, match="is damaged or no recording") as refused:
            Recording(file)
        assert str(file) in str(refused.value)
    write_tiny_model(tmp_path / "model")
    with pytest.raises(DamagedRecording, match="is a safetensors file but no recording"):
        Recording(tmp_path / "model" / "model.safetensors")
    for nothing in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(DamagedRecording, match="no recording at"):
            Recording(nothing)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"schema": 2}, "has recording schema 2; this program reads 1"),
        ({"tokens": None}, "its header cannot be read"),
        ({"tokens": [{"id": math.inf, "bytes": ""}]}, "its header cannot be read"),
        ({"tokens": [{"id": 1, "bytes": "zz"}]}, "its header cannot be read"),
        ({"model": {"name": "x"}}, "its header cannot be read"),
        ({"model": {"name": "x", "config": {"n_layer": 10**9}}}, "its header cannot be read"),
        ({"prediction": [{}]}, "its header cannot be read"),
        ({"missing": []}, "its header cannot be read"),
    ],
)
def test_a_recording_whose_header_makes_no_sense_is_refused(
    recorded: tuple[LiveTrace, Path], changes: dict[str, object], said: str
) -> None:
    file = recorded[1]
    rewrite_recording(file, changes, {})
    with pytest.raises(DamagedRecording, match=said) as refused:
        Recording(file)
    assert str(file) in str(refused.value)


@pytest.mark.parametrize(
    "pattern",
    [
        np.zeros((2, 8, 7), np.float32),
        np.zeros((2, 8, 8), np.float64),
        np.zeros((2, 8, 8), np.int64),
        None,
    ],
)
def test_a_recorded_stage_of_another_shape_or_kind_is_refused_when_opened(
    recorded: tuple[LiveTrace, Path], pattern: NDArray[np.generic] | None
) -> None:
    file = recorded[1]
    rewrite_recording(file, {}, {"blocks.0.pattern": pattern})
    recording = Recording(file)
    recording.tensor("blocks.0.attn_scores")
    with pytest.raises(DamagedRecording, match=r"is damaged at blocks\.0\.pattern"):
        recording.tensor("blocks.0.pattern")


def rewrite_recording(
    file: Path, changes: dict[str, object], tensors: dict[str, NDArray[np.generic] | None]
) -> None:
    whole = file.read_bytes()
    length = int.from_bytes(whole[:8], "little")
    header = json.loads(json.loads(whole[8 : 8 + length])["__metadata__"]["tui-gpt"])
    state = {**safetensors.numpy.load(whole), **tensors}
    kept = {key: tensor for key, tensor in state.items() if tensor is not None}
    metadata = {"tui-gpt": json.dumps({**header, **changes})}
    file.write_bytes(safetensors.numpy.save(kept, metadata=metadata))


def a_tensor(name: str, cells: object) -> StageTensor:
    array = np.array(cells, np.float32)
    stage = find_stage(stage_table(TINY, 3), name)
    return StageTensor(replace(stage, shape=array.shape), array)


def test_statistics_leave_masked_cells_out() -> None:
    scores = a_tensor("blocks.0.attn_scores", [[[1, -math.inf], [2, 6]]])
    found = statistics(scores)
    assert (found.minimum, found.maximum, found.mean, found.masked) == (1, 6, 3, 1)
    assert found.not_finite == 0
    assert found.std == pytest.approx(math.sqrt(14 / 3))  # divided by n: (4 + 1 + 9) / 3


def test_statistics_survive_nan_and_infinity() -> None:
    found = statistics(a_tensor("embed", [[1, math.nan], [math.inf, 5]]))
    assert (found.minimum, found.maximum, found.not_finite) == (1, 5, 2)
    assert (found.mean, found.std) == (None, None)
    nothing = statistics(a_tensor("embed", [[math.nan]]))
    assert (nothing.minimum, nothing.maximum, nothing.mean) == (None, None, None)


def test_statistics_of_slices_add_up_to_those_of_the_whole() -> None:
    cells = np.random.default_rng(5).normal(3, 2, (7, 11)).astype(np.float32)
    whole = statistics(a_tensor("embed", cells))
    parts = [cells[:2], cells[2:3], cells[3:]]
    found = merged([statistics(a_tensor("embed", part)) for part in parts], [22, 11, 44])
    assert (found.minimum, found.maximum) == (whole.minimum, whole.maximum)
    assert found.mean == pytest.approx(whole.mean, rel=1e-12)  # float64 sums
    assert found.std == pytest.approx(whole.std, rel=1e-12)


def test_the_summary_of_sliced_logits_is_that_of_all_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trace = live(TINY)
    monkeypatch.setattr(summaries_of, "_SLICE_CELLS", 33)  # three rows at a time
    found = summary(trace, find_stage(trace.run.stages, "logits"))
    whole = statistics(trace.tensor("logits"))
    assert (found.minimum, found.maximum) == (whole.minimum, whole.maximum)
    assert found.mean == pytest.approx(whole.mean, rel=1e-12)  # float64 sums


def test_values_of_another_shape_than_the_stage_are_no_tensor_of_it() -> None:
    table = stage_table(TINY, 3)
    with pytest.raises(ValueError, match=r"embed has shape \(3, 8\) but the values are \(3, 7\)"):
        StageTensor(find_stage(table, "embed"), np.zeros((3, 7), np.float32))
    with pytest.raises(ValueError, match="from position 2"):
        StageTensor(find_stage(table, "logits"), np.zeros((2, 11), np.float32), 2)


@pytest.mark.parametrize("vocab_size", [8, 50_257])
def test_of_equal_logits_the_lowest_id_wins(vocab_size: int) -> None:
    equal = np.zeros(vocab_size, np.float32)  # case C14
    ranked = best_candidates(equal, equal, a_token, 5)
    assert [candidate.token.id for candidate in ranked] == [0, 1, 2, 3, 4]
    equal[3] = equal[6] = 1
    ranked = best_candidates(equal, equal, a_token, 3)
    assert [candidate.token.id for candidate in ranked] == [3, 6, 0]


def test_a_small_vocabulary_has_few_candidates() -> None:
    logits = np.array([1, 5, 3, 2, 4], np.float32)  # case C15
    ranked = best_candidates(logits, logits, a_token)
    assert [candidate.token.id for candidate in ranked] == [1, 4, 2, 3, 0]


def test_a_logit_that_is_no_number_is_never_the_best() -> None:
    logits = np.array([1, math.nan, 9], np.float32)  # case C03
    ranked = best_candidates(logits, logits, a_token)
    assert [candidate.token.id for candidate in ranked] == [2, 0]


def test_the_prediction_is_a_distribution_best_first(either_norm: GPTConfig) -> None:
    trace = live(either_norm)
    ranked = trace.prediction()
    assert len(ranked) == 10
    logits = [candidate.logit for candidate in ranked]
    assert logits == sorted(logits, reverse=True)
    probs = values(trace, "probs")[-1]
    assert probs.sum() == pytest.approx(1, abs=1e-6)  # eleven float32 numbers below 1
    assert [candidate.prob for candidate in ranked] == sorted(probs.tolist(), reverse=True)[:10]


def test_a_session_turns_a_prompt_into_numbers(tiny_folder: Path) -> None:
    session = Session.open(str(tiny_folder))
    run = session.prepare("bad egg")
    assert [token.text for token in run.tokens] == list("bad egg")
    assert run.model.n_parameters == 2_064
    trace = session.trace(run)
    assert trace.tensor("logits").values.shape == (7, 11)
    assert session.parameter("h.0.ln_1.bias").shape == (8,)
    with pytest.raises(UnknownStage, match=r"no parameter 'h\.9\.x'; there"):
        session.parameter("h.9.x")


def test_a_recording_leads_back_to_its_model_only_while_the_weights_are_the_same(
    tmp_path: Path, tiny_folder: Path
) -> None:
    session, file = Session.open(str(tiny_folder)), tmp_path / "trace.safetensors"
    save_recording(file, session.trace(session.prepare("bad")), session.weights_sha256())
    found = recorded_session(Recording(file))
    assert found is not None
    assert found.source.path == tiny_folder
    weights = tiny_folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\x00")
    assert recorded_session(Recording(file)) is None
    weights.unlink()
    assert recorded_session(Recording(file)) is None
    with pytest.raises(DamagedModel, match=r"cannot read .*model\.safetensors: No such file"):
        session.weights_sha256()


def test_a_prompt_longer_than_the_context_is_refused_or_its_end_kept(tiny_folder: Path) -> None:
    session = Session.open(str(tiny_folder))  # case B17
    assert len(session.prepare("a" * 16).tokens) == 16
    with pytest.raises(PromptTooLong, match="17 tokens but this model reads 16; cut at least 1"):
        session.prepare("b" + "a" * 16)
    run = session.prepare("b" + "a" * 15 + "c", crop=True)
    assert run.prompt == "a" * 15 + "c"
    assert run.notices == ("the prompt is 17 tokens and this model reads 16: the first 1 were cut",)


def test_an_empty_prompt_and_an_id_out_of_range_are_refused(tiny_folder: Path) -> None:
    session = Session.open(str(tiny_folder))
    with pytest.raises(EmptyPrompt, match="type at least one character"):
        session.prepare("")  # case B04
    with pytest.raises(EmptyPrompt):
        session.prepare_ids(())
    for token_id in (-1, 11):
        with pytest.raises(UnknownTokenId, match=f"token id {token_id} is not one of 0…10"):
            session.prepare_ids((0, token_id))
    assert session.prepare_ids((3, 2, 5)).prompt == "bad"
