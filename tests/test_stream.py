"""The residual stream by depth: lengths, likeness of positions, what each sub-layer wrote."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from conftest import TINY, TINY_2017
from traces import Broken, Without, live

from tui_gpt.analysis.stream import mean_cosine, stream
from tui_gpt.config import GPTConfig
from tui_gpt.files import DEFAULT_PROMPT
from tui_gpt.records.analyses.stream import StreamPoint
from tui_gpt.session import bundled_recording


def test_the_stream_of_a_pre_norm_model_is_read_after_each_addition() -> None:
    points = stream(live(TINY)).points
    assert [point.stage.id for point in points] == [
        "blocks.0.resid_pre", "blocks.0.resid_mid", "blocks.0.resid_post",
        "blocks.1.resid_mid", "blocks.1.resid_post",
    ]  # fmt: skip
    assert points[0].written is None
    writers = [point.written.stage.id for point in points if point.written is not None]
    assert writers == [
        "blocks.0.attn_out", "blocks.0.mlp_out", "blocks.1.attn_out", "blocks.1.mlp_out",
    ]  # fmt: skip


def test_the_stream_of_a_post_norm_model_is_read_after_each_layer_norm() -> None:
    points = stream(live(TINY_2017)).points
    assert [point.stage.id for point in points] == [
        "blocks.0.resid_pre", "blocks.0.ln_1", "blocks.0.ln_2", "blocks.1.ln_1", "blocks.1.ln_2",
    ]  # fmt: skip


def test_lengths_and_shares_are_those_of_the_recorded_vectors(either_norm: GPTConfig) -> None:
    trace = live(either_norm)
    before = None
    for point in stream(trace).points:
        vectors = trace.tensor(point.stage.id).values.astype(np.float64)
        assert point.norm is not None
        np.testing.assert_allclose(point.norm, np.sqrt((vectors**2).sum(-1)), rtol=1e-12)
        assert point.mean_norm == pytest.approx(point.norm.mean())
        if point.written is not None:
            wrote = trace.tensor(point.written.stage.id).values.astype(np.float64)
            assert before is not None
            assert point.written.share is not None
            shares = np.sqrt((wrote**2).sum(-1)) / before
            np.testing.assert_allclose(point.written.share, shares, rtol=1e-12)
            assert point.written.mean == pytest.approx(shares.mean())
        before = point.norm


def test_the_mean_cosine_is_that_of_all_pairs_of_different_positions() -> None:
    vectors = np.random.default_rng(1).normal(size=(7, 5))
    pairs = [
        vectors[i] @ vectors[j] / np.linalg.norm(vectors[i]) / np.linalg.norm(vectors[j])
        for i in range(7)
        for j in range(i)
    ]
    assert mean_cosine(vectors) == pytest.approx(np.mean(pairs), abs=1e-12)
    assert mean_cosine(np.array([[3.0, 4.0], [6.0, 8.0]])) == pytest.approx(1)
    assert mean_cosine(np.array([[3.0, 0.0], [0.0, 8.0]])) == pytest.approx(0)
    assert mean_cosine(np.array([[3.0, 0.0], [-1.0, 0.0]])) == pytest.approx(-1)


def test_one_position_and_vectors_of_length_0_have_no_angle_to_others() -> None:
    points = stream(live(TINY, (3,))).points  # case C01: a prompt of one token
    assert [point.cosine for point in points] == [None] * 5
    assert all(point.norm is not None and point.norm.shape == (1,) for point in points)
    assert mean_cosine(np.zeros((4, 3))) is None  # case C24
    assert mean_cosine(np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 0.0]])) == 1


def test_a_number_that_is_none_stays_where_it_is() -> None:
    trace = Broken(live(TINY), "blocks.0.resid_post", (2, 3), math.nan)  # case C25
    points = stream(trace).points
    broken = points[2]
    assert broken.norm is not None
    assert [i for i in range(8) if math.isnan(broken.norm[i])] == [2]
    assert broken.cosine is not None
    assert math.isnan(broken.cosine)
    assert points[3].norm is not None
    assert np.isfinite(points[3].norm).all()


@pytest.mark.parametrize("config", [TINY, TINY_2017, replace(TINY, n_layer=3)])
def test_a_hole_has_its_reason_and_no_number(config: GPTConfig) -> None:
    whole = stream(live(config))
    trace = live(config)
    for stage in trace.run.stages:
        holed = Without(trace, stage.id)
        before: StreamPoint | None = None
        for there, point in zip(whole.points, stream(holed).points, strict=True):
            if point.stage.id == stage.id:
                assert (point.norm, point.mean_norm, point.cosine) == (None, None, None)
                assert point.missing == holed.reason
            else:
                assert not point.missing
                assert np.array_equal(point.norm, there.norm)  # type: ignore[arg-type]  # both are there
            if point.written is not None:
                assert before is not None
                if stage.id in (before.stage.id, point.written.stage.id):
                    assert (point.written.share, point.written.mean) == (None, None)
                    assert point.written.missing == holed.reason
                else:
                    assert point.written.share is not None
            before = point


def test_a_recording_gives_its_stream_without_torch() -> None:
    path = bundled_recording("shakespeare", DEFAULT_PROMPT)
    assert path is not None
    probe = (
        "import sys; from pathlib import Path\n"
        "from tui_gpt.analysis.output import output\n"
        "from tui_gpt.analysis.stream import stream\n"
        "from tui_gpt.records.recording import Recording\n"
        "from tui_gpt.records.tokens import Token\n"
        "r = Recording(Path(sys.argv[1])); assert len(stream(r).points) == 5\n"
        "assert output(r, 3, lambda i: Token(i, b'')).ranking.best[0].rank == 1\n"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", probe, str(path)]).returncode == 0
