"""What one position proposes as the next token, and how sure of it the model is."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tui_gpt.records.stages import Stage
from tui_gpt.records.tokens import Token


@dataclass(frozen=True, slots=True)
class Ranked:
    """One vocabulary entry as the next token, with its place among all of them."""

    token: Token
    logit: float
    prob: float | None
    """Over the whole vocabulary, as the model computed it; None where it was not recorded."""
    rank: int | None
    """1 is the best; equal logits are ranked by rising id. None where the logit is NaN or +∞."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """One row of logits in order.

    A logit that is NaN or +∞ is flagged and has no place: nothing is said to be likely because
    of it. −∞ is a token that is ruled out, and comes last.
    """

    best: tuple[Ranked, ...]
    """Best first; empty where no logit can be ranked."""
    entropy: float | None
    """In nats, −Σ p ln p over the whole vocabulary; None where a probability is no number."""
    flagged: tuple[int, ...]
    """Ids whose logit is NaN or +∞, the lowest ones first."""
    n_flagged: int
    """How many there are in all."""

    @property
    def margin(self) -> float | None:
        """The gap between the two best logits; None where there are no two finite ones."""
        if len(self.best) < 2:
            return None
        gap = self.best[0].logit - self.best[1].logit
        return gap if math.isfinite(gap) else None


@dataclass(frozen=True, slots=True)
class NotFinite:
    """The first stage, in order, with a cell that is NaN or infinite where it may not be."""

    stage: Stage
    cells: int
    """How many of its cells are not finite."""
    index: tuple[int, ...]
    """The first of them, in the stage's axes."""


@dataclass(frozen=True, slots=True)
class Output:
    """The model's answer after one position."""

    position: int
    n_positions: int
    token: Token
    """The one at that position."""
    vocab_size: int
    ranking: Ranking | None
    """None where the logits could not be recorded."""
    came: Ranked | None
    """The token that really came next; None at the last position, or without logits."""
    missing: tuple[str, ...]
    """Why logits or probabilities could not be had; empty where both are there."""
    not_finite: NotFinite | None
    """Where the first NaN or infinity of the whole pass is, if this row has one."""

    @property
    def ceiling(self) -> float:
        """The entropy of a model that finds every token equally likely: ln V."""
        return math.log(self.vocab_size)
