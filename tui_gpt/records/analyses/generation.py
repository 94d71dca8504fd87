"""Generation one token at a time: what decided each step, and the branches of a walk.

Two rules that hold everywhere. Among equal logits the lowest id wins. An end-of-text token is
a token like any other: it is chosen, shown and read on, and ends nothing, because the model
itself goes on after it; a run ends when its number of steps is reached or a person stops it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from tui_gpt.errors import UsageError
from tui_gpt.records.analyses.output import Ranked, Ranking
from tui_gpt.records.tokens import Token

ChosenBy = Literal["greedy", "sampled", "person"]

SAMPLE_SEED = 123

_ROUNDS, _SHORTEST = 3, 8
"""A loop goes round this often at least, over this many tokens at least."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How probabilities are reshaped before a token is drawn.

    Logits are divided by the temperature, the best k are kept, of those the fewest that reach
    the share p, and what is left is scaled to add up to 1. The draw depends on the seed and
    on the number of tokens before it alone, so going back and forth changes nothing.

    Raises:
        UsageError: A number is out of its range.
    """

    temperature: float = 0.0
    """0 is greedy: nothing is drawn, and k and p have nothing to do."""
    top_k: int | None = None
    top_p: float | None = None
    """Above 0, up to 1."""
    seed: int = SAMPLE_SEED

    def __post_init__(self) -> None:
        if not (math.isfinite(self.temperature) and self.temperature >= 0):
            raise UsageError(f"temperature {self.temperature} is not a number from 0 up")
        if self.top_k is not None and self.top_k < 1:
            raise UsageError(f"top-k {self.top_k} keeps nothing; give 1 or more")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise UsageError(f"top-p {self.top_p} is not above 0 and up to 1")

    @property
    def is_greedy(self) -> bool:
        """True where the highest logit is taken."""
        return self.temperature == 0


GREEDY = Sampling()


@dataclass(frozen=True, slots=True)
class Reshaped:
    """One step's probabilities after temperature, top-k and top-p."""

    sampling: Sampling
    probs: tuple[float, ...]
    """Of the step's ranked candidates, in their order; 0 for those that were cut."""
    n_kept: int
    """Tokens of the vocabulary that can still be drawn."""
    drawn: Ranked
    """What the seed draws."""
    drawn_prob: float
    """Its reshaped probability."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationStep:
    """One new token with everything that decided it."""

    step: int
    """Counted from 0, the first token after the prompt."""
    chosen: Ranked
    """The new token, with its logit and plain probability."""
    chosen_by: ChosenBy
    argmax_logits: int
    """The id of the highest logit, the lowest of equal ones."""
    argmax_probs: int | None
    """The id of the highest probability, found apart; None where none is a number."""
    ranking: Ranking
    """The best candidates, the entropy in nats, the margin."""
    reshaped: Reshaped | None
    """None for a greedy step."""
    window: tuple[int, int]
    """(first position read, number read), positions of the whole text from 0."""
    kept: int
    """Positions whose keys and values were at hand; 0 is a full pass."""
    computed: int
    """Positions that went through the blocks."""
    seconds: float
    """The pass took so long."""

    @property
    def token(self) -> Token:
        """The new token."""
        return self.chosen.token

    @property
    def cropped(self) -> bool:
        """True once tokens have fallen out of the window."""
        return self.window[0] > 0

    @property
    def cached(self) -> bool:
        """True where earlier positions were not computed again."""
        return self.kept > 0


@dataclass(frozen=True, slots=True)
class CacheCheck:
    """One step computed both ways."""

    runs: int
    """Each way so often; the times are the fastest."""
    cached_seconds: float
    cached_positions: int
    full_seconds: float
    full_positions: int
    difference: float
    """The largest difference of a logit."""
    same_choice: bool
    """Both rank the same token first."""


@dataclass(frozen=True, slots=True)
class Loop:
    """The end of a text that says the same again and again."""

    period: int
    """Tokens of one round."""
    rounds: int
    """Whole rounds so far."""
    for_ever: bool
    """The model reads exactly what it read a round ago, so a greedy run never leaves."""


def find_loop(ids: Sequence[int], block_size: int) -> Loop | None:
    """Find the shortest round that a text ends with, three times or more.

    Args:
        ids: The whole text.
        block_size: Tokens the model reads at once.
    """
    for period in range(1, len(ids) // _ROUNDS + 1):
        alike = 0
        for i in range(len(ids) - 1, period - 1, -1):
            if ids[i] != ids[i - period]:
                break
            alike += 1
        length = alike + period if alike else 0
        if length >= max(_ROUNDS * period, _SHORTEST):
            # The last T tokens and the T before the last round are the same, in the same places.
            return Loop(period, length // period, alike >= block_size)
    return None


@dataclass(frozen=True, slots=True)
class Branch:
    """One way through: the steps from the prompt on, those before the split shared."""

    steps: tuple[GenerationStep, ...] = ()
    parent: int | None = None
    """The branch it left; None for the trunk."""
    split: int = 0
    """The first step of its own, which a person chose."""


@dataclass(frozen=True, slots=True)
class Walk:
    """A prompt, the branches that grew from it, and the step that is looked at.

    Every move gives another walk; steps that were taken are never changed or lost.
    """

    prompt: tuple[Token, ...]
    branches: tuple[Branch, ...] = (Branch(),)
    current: int = 0
    at: int = 0
    """The step that is shown; one past the last while it is on its way."""

    @property
    def branch(self) -> Branch:
        """The branch that is walked on."""
        return self.branches[self.current]

    @property
    def shown(self) -> GenerationStep | None:
        """The step that is looked at; None while it is not there."""
        steps = self.branch.steps
        return steps[self.at] if self.at < len(steps) else None

    @property
    def read(self) -> tuple[Token, ...]:
        """The text before the new token of the step that is shown."""
        return (*self.prompt, *(step.token for step in self.branch.steps[: self.at]))

    def forward(self) -> Walk:
        """Go to the next step; stay while the shown one is on its way."""
        return self if self.shown is None else replace(self, at=self.at + 1)

    def back(self) -> Walk:
        """Go to the step before; stay at the first."""
        return replace(self, at=max(0, self.at - 1))

    def taken(self, branch: int, step: GenerationStep) -> Walk:
        """Put a new step at the end of a branch; one that does not follow is dropped."""
        steps = self.branches[branch].steps
        if step.step != len(steps):
            return self
        grown = replace(self.branches[branch], steps=(*steps, step))
        branches = (*self.branches[:branch], grown, *self.branches[branch + 1 :])
        return replace(self, branches=branches)

    def choose(self, candidate: Ranked) -> Walk:
        """Take another token at the step that is shown: a new branch, or one that did so."""
        step = self.shown
        if step is None or candidate.token.id == step.token.id:
            return self
        before = self.branch.steps[: self.at]
        for i, branch in enumerate(self.branches):
            if len(branch.steps) > self.at and branch.steps[: self.at] == before:
                other = branch.steps[self.at]
                if other.token.id == candidate.token.id:
                    return replace(self, current=i)
        chosen = replace(step, chosen=candidate, chosen_by="person", reshaped=None)
        grown = Branch((*before, chosen), self.current, self.at)
        return replace(self, branches=(*self.branches, grown), current=len(self.branches))

    def next_branch(self) -> Walk:
        """Go to the next branch, the trunk after the last, at a step that it has."""
        current = (self.current + 1) % len(self.branches)
        last = max(0, len(self.branches[current].steps) - 1)
        return replace(self, current=current, at=min(self.at, last))
