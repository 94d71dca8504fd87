"""The residual stream by depth: how long it is, how alike its positions are, who wrote how much.

Axes: T position.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tui_gpt.config import GPTConfig
from tui_gpt.records.block_plan import block_plan
from tui_gpt.records.stages import Stage, find_stage, stage_id


@dataclass(frozen=True, slots=True, eq=False)
class Written:
    """What one sub-layer wrote, against the stream it read from."""

    stage: Stage
    """`attn_out` or `mlp_out` of a block."""
    share: NDArray[np.float64] | None
    """(T,) |written| / |stream before|; infinite where something was written to a zero stream,
    NaN where nothing was. None where either could not be recorded."""
    missing: str = ""
    """Why there is no share."""

    @property
    def mean(self) -> float | None:
        """The mean share over the positions."""
        return None if self.share is None else float(self.share.mean())


@dataclass(frozen=True, slots=True, eq=False)
class StreamPoint:
    """The stream at one depth."""

    stage: Stage
    """Whose values the stream has here."""
    written: Written | None
    """By the sub-layer just above; None at the first point."""
    norm: NDArray[np.float64] | None
    """(T,) Euclidean length of each position's vector; None where it could not be recorded."""
    cosine: float | None
    """The mean cosine similarity of all pairs of different positions, vectors of length 0 left
    out; NaN where a vector is no numbers, None where there is no pair or no stage."""
    missing: str = ""
    """Why the stream is not known here."""

    @property
    def mean_norm(self) -> float | None:
        """The mean length over the positions."""
        return None if self.norm is None else float(self.norm.mean())


@dataclass(frozen=True, slots=True)
class Stream:
    """The stream from the first block's input to the last one's output."""

    config: GPTConfig
    n_positions: int
    points: tuple[StreamPoint, ...]
    """2 · n_layer + 1: what enters block 0, then after each attention and each feed-forward."""


def stream_stages(
    stages: tuple[Stage, ...], config: GPTConfig
) -> tuple[tuple[Stage, Stage | None], ...]:
    """List where the stream is looked at, in order, each with the sub-layer that wrote last.

    `resid_pre` of block 0, then what every block's plan names: pre-norm `resid_mid` and
    `resid_post`; post-norm, which normalises the stream itself, what `ln_1` and `ln_2` leave.

    Args:
        stages: The run's stage table.
        config: Its model's.
    """
    points: list[tuple[Stage, Stage | None]] = [
        (find_stage(stages, stage_id("resid_pre", 0)), None)
    ]
    for layer in range(config.n_layer):
        for name, written in block_plan(config).points:
            after, writer = (find_stage(stages, stage_id(it, layer)) for it in (name, written))
            points.append((after, writer))
    return tuple(points)
