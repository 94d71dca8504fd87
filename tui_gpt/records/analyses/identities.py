"""What must hold between the recorded stages, and how nearly it does."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tui_gpt.records.stages import Stage


@dataclass(frozen=True, slots=True)
class Identity:
    """One thing that must hold at one stage."""

    stage: Stage
    """Where it belongs."""
    claim: str
    """In words, to be read after the stage's name: `has rows that sum to 1`."""
    reason: str
    """Where its tolerance comes from."""
    error: float | None
    """The largest absolute error; where the identity does not hold, the error of the cell that
    is furthest beyond its own tolerance. NaN where a cell is no number, infinite where one is
    finite on one side only. None where it could not be checked."""
    tolerance: float | None
    """What is allowed in that cell; 0 where no cell has an error."""
    index: tuple[int, ...] | None
    """That cell, in the stage's axes; the row where the claim is about rows."""
    unchecked: str = ""
    """Why it could not be checked."""

    def __post_init__(self) -> None:
        if bool(self.unchecked) != (self.error is None):
            raise ValueError(f"{self.stage.id}: an identity has an error, or a reason for none")

    @property
    def holds(self) -> bool | None:
        """True, False, or None where it could not be checked."""
        if self.error is None or self.tolerance is None:
            return None
        return self.error <= self.tolerance  # NaN is not


@dataclass(frozen=True, slots=True)
class Identities:
    """All identities of one trace, in stage order."""

    all: tuple[Identity, ...]

    @property
    def violated(self) -> tuple[Identity, ...]:
        """Those that do not hold, the first in stage order first."""
        return tuple(identity for identity in self.all if identity.holds is False)

    @property
    def unchecked(self) -> tuple[Identity, ...]:
        """Those that could not be checked."""
        return tuple(identity for identity in self.all if identity.holds is None)

    @property
    def worst(self) -> Identity | None:
        """The one that holds with the largest error; None where none holds."""
        holding = [identity for identity in self.all if identity.holds]
        return max(holding, key=_error, default=None)


def _error(identity: Identity) -> float:
    return -math.inf if identity.error is None else identity.error
