"""The values of one stage, with what is masked and what they add up to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tui_gpt.records.stages import Stage

Values: TypeAlias = NDArray[np.float32] | NDArray[np.int64]
"""Token ids are whole numbers, every other stage is float32."""


@dataclass(frozen=True, slots=True)
class StageTensor:
    """What a forward pass computed at one stage.

    Raises:
        ValueError: The values do not have the stage's shape.
    """

    stage: Stage
    values: Values
    """In the stage's shape, except that logits and probs may hold some positions only."""
    first: int = 0
    """The first position held, along the T axis of logits and probs; 0 everywhere else."""

    def __post_init__(self) -> None:
        whole = self.stage.shape
        held = self.values.shape
        if self.stage.name in ("logits", "probs"):
            fits = held[1:] == whole[1:] and 0 <= self.first <= self.first + held[0] <= whole[0]
        else:
            fits = held == whole and self.first == 0
        if not fits:
            raise ValueError(
                f"{self.stage.id} has shape {whole} but the values are {held} "
                f"from position {self.first}"
            )

    @property
    def masked(self) -> NDArray[np.bool_] | None:
        """Mark the cells that have no value: what a query may not see. None: no cell is."""
        if self.stage.kind != "scores":
            return None
        return np.broadcast_to(unseen(self.stage), self.values.shape)

    def present(self) -> Values:
        """Give the values that are not masked, in one row."""
        masked = self.masked
        return self.values.ravel() if masked is None else self.values[~masked]


def unseen(stage: Stage) -> NDArray[np.bool_]:
    """Mark what a query may not see, in scores and pattern: (Tq, Tk), True for hidden keys."""
    n_queries, n_keys = stage.shape[1:]
    query = np.arange(n_keys - n_queries, n_keys)[:, None]
    key = np.arange(n_keys)
    hidden: NDArray[np.bool_] = key > query
    return hidden if stage.window is None else hidden | (key <= query - stage.window)


@dataclass(frozen=True, slots=True)
class Statistics:
    """Four numbers over the cells of a tensor that are not masked.

    None where no cell is, or where a cell that is not finite makes the number meaningless.
    """

    minimum: float | None
    maximum: float | None
    mean: float | None
    std: float | None
    """Divided by n."""
    masked: int
    """Cells without a value."""
    not_finite: int
    """Cells that are NaN or infinite; the extremes are those of the others."""


@dataclass(frozen=True, slots=True)
class StageSummary:
    """One stage and what its values add up to."""

    stage: Stage
    statistics: Statistics | None
    """None where the stage could not be recorded."""
    missing: str | None = None
    """Why it could not."""


def statistics(tensor: StageTensor) -> Statistics:
    """Compute a tensor's statistics in float64."""
    present = tensor.present()
    return statistics_of(present, masked=tensor.values.size - present.size)


def statistics_of(values: Values, *, masked: int = 0) -> Statistics:
    """Compute the statistics of any array in float64.

    Args:
        values: Those that count, in any shape.
        masked: How many others there are.
    """
    present = values.astype(np.float64)
    finite = present[np.isfinite(present)]
    broken = present.size - finite.size
    return Statistics(
        minimum=float(finite.min()) if finite.size else None,
        maximum=float(finite.max()) if finite.size else None,
        mean=float(finite.mean()) if finite.size and not broken else None,
        std=float(finite.std()) if finite.size and not broken else None,
        masked=masked,
        not_finite=broken,
    )


def merged(parts: list[Statistics], counts: list[int]) -> Statistics:
    """Put the statistics of slices of one tensor together.

    Args:
        parts: Of each slice.
        counts: The cells that are not masked in each slice.
    """
    total = sum(counts)
    broken = sum(part.not_finite for part in parts)
    lows = [part.minimum for part in parts if part.minimum is not None]
    highs = [part.maximum for part in parts if part.maximum is not None]
    mean: float | None = None
    std: float | None = None
    moments = [
        (part.mean, part.std, n)
        for part, n in zip(parts, counts, strict=True)
        if part.mean is not None and part.std is not None
    ]
    if total and not broken:
        mean = sum(m * n for m, _, n in moments) / total
        variance = sum((s * s + (m - mean) ** 2) * n for m, s, n in moments) / total
        std = float(np.sqrt(variance))
    return Statistics(
        minimum=min(lows, default=None),
        maximum=max(highs, default=None),
        mean=mean,
        std=std,
        masked=sum(part.masked for part in parts),
        not_finite=broken,
    )
