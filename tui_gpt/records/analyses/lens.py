"""The logit lens: what the model would answer if it stopped at each depth.

The final LayerNorm, with each row's own mean and variance, and the output head are applied to
the stream where it stands (nostalgebraist 2020). Post-norm models have no final LayerNorm.
"""

from __future__ import annotations

from dataclasses import dataclass

from tui_gpt.records.analyses.output import Ranking
from tui_gpt.records.stages import Stage


@dataclass(frozen=True, slots=True)
class LensPoint:
    """The answer at one depth."""

    stage: Stage
    """Where the stream was read, as in `stream_stages`."""
    ranking: Ranking | None
    """None where the stream could not be recorded there."""
    missing: str = ""
    """Why it could not."""


@dataclass(frozen=True, slots=True)
class Lens:
    """The answers of one position by depth; the last one is the model's own."""

    position: int
    points: tuple[LensPoint, ...]
    """2 · n_layer + 1."""
