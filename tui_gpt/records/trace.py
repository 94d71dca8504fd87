"""What a forward pass left behind: the protocol that live traces and recordings share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from tui_gpt.config import GPTConfig
from tui_gpt.records.stages import Stage
from tui_gpt.records.tokens import Token

if TYPE_CHECKING:
    from tui_gpt.records.tensors import StageTensor

N_CANDIDATES = 10
"""Candidates in a prediction, fewer where the vocabulary is smaller."""


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """Which model a trace belongs to."""

    name: str
    """As it was asked for."""
    config: GPTConfig
    n_parameters: int
    """A tied head counted once."""
    source: str
    """Where the weights came from: `bundled`, `folder`, `untrained` or `recording`."""


@dataclass(frozen=True, slots=True)
class Run:
    """One prompt through one model, before any number of it is known.

    This is all that the first frame needs; no tensor library is needed to build it.
    """

    model: ModelFacts
    prompt: str
    """The text, or the ids where there is no vocabulary."""
    tokens: tuple[Token, ...]
    notices: tuple[str, ...]
    """What was cropped, replaced or read in a way that a person should know of."""
    stages: tuple[Stage, ...]

    @property
    def is_ids_only(self) -> bool:
        """True where the model has no vocabulary; the prompt is its ids with commas between."""
        named = (token for token in self.tokens if token.bytes or token.unused)
        return bool(self.tokens) and next(named, None) is None


@dataclass(frozen=True, slots=True)
class Candidate:
    """One vocabulary entry proposed as the next token."""

    token: Token
    logit: float
    prob: float
    """Over the whole vocabulary."""


class Trace(Protocol):
    """The numbers of one run."""

    @property
    def run(self) -> Run:
        """What was run."""
        ...

    def tensor(self, stage_id: str, rows: tuple[int, int] | None = None) -> StageTensor:
        """Give the values of one stage.

        Args:
            stage_id: An id of the stage table.
            rows: For logits and probs, the positions wanted, (first, end); None is all.

        Raises:
            UnknownStage: The model has no such stage.
            MissingStage: It has, but the stage could not be recorded.
        """
        ...

    def prediction(self) -> tuple[Candidate, ...]:
        """List the best candidates after the last position, best first, ties by lowest id.

        Empty where logits or probabilities could not be recorded, or are no numbers.
        """
        ...
