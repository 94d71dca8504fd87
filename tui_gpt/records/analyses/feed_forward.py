"""What the hidden units of one block do at each token: before and after the activation.

Axes: T position, F hidden unit. A unit fires as strongly as its `mlp_post` is large. It is
*off* where `mlp_post` is not above 0: a ReLU then passes on exactly 0, a GELU something
between 0 and −0.17. For all three activations that is the same as `mlp_pre` ≤ 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tui_gpt.config import Activation
from tui_gpt.records.stage_values import StageValues


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """An activation as a line through points, computed in float64 by its formula."""

    activation: Activation
    x: NDArray[np.float64]
    """(n,) rising; dense around 0, beyond that only the ends."""
    y: NDArray[np.float64]
    """(n,) the activation of each x."""

    def __post_init__(self) -> None:
        if self.x.shape != self.y.shape or self.x.ndim != 1:
            raise ValueError(f"a curve has one y for each x, not {self.y.shape} for {self.x.shape}")


@dataclass(frozen=True, slots=True, eq=False)
class FeedForward:
    """The hidden layer of one block."""

    layer: int
    pre: StageValues
    """(T, F), before the activation."""
    post: StageValues
    """(T, F), after it."""
    off_share: NDArray[np.float64] | None
    """(T,) in [0, 1]: the share of units that are off. NaN where a value is; None: no post."""
    off_overall: float | None
    """The same over all tokens."""
    n_silent: int | None
    """Units that are off at every token; None: no post, or NaN in it."""
    curve: Curve
    pre_range: tuple[float, float] | None
    """The least and the largest finite value; None where there is none."""
    post_range: tuple[float, float] | None

    @property
    def n_positions(self) -> int:
        """T."""
        return self.pre.stage.shape[0]

    @property
    def n_units(self) -> int:
        """F."""
        return self.pre.stage.shape[1]

    def units(self, position: int) -> NDArray[np.int64]:
        """List all units by how strongly they fire at a token, ties by lowest unit, NaN last.

        Returns:
            (F,), or (0,) where `post` is missing.
        """
        if self.post.tensor is None:
            return np.zeros(0, dtype=np.int64)
        return np.argsort(-self.post.tensor.values[position], kind="stable")

    def tokens(self, unit: int) -> NDArray[np.int64]:
        """List all positions by how strongly they fire a unit, ties by first position, NaN last.

        Returns:
            (T,), or (0,) where `post` is missing.
        """
        if self.post.tensor is None:
            return np.zeros(0, dtype=np.int64)
        return np.argsort(-self.post.tensor.values[:, unit], kind="stable")
