"""One step of generation: from a row of logits to a token, with all that decided it.

Greedy takes the highest logit. Otherwise the probabilities are reshaped and one token is
drawn, in float64 and from a generator that belongs to this one step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from tui_gpt.analysis.output import ranking
from tui_gpt.errors import NothingToChoose
from tui_gpt.model.generate import Reader, Reading
from tui_gpt.model.gpt import GPT
from tui_gpt.records.analyses.generation import (
    GREEDY,
    CacheCheck,
    GenerationStep,
    Reshaped,
    Sampling,
)
from tui_gpt.records.analyses.output import Ranked, Ranking
from tui_gpt.records.analyses.prediction import best_ids
from tui_gpt.records.tokens import Token

N_SHOWN = 40
"""Candidates kept with each step, as many as a tall terminal shows."""

_LONG = 0.1
"""Seconds of a pass that is not measured twice."""


class Stepper:
    """Takes steps with one model; what it keeps makes them faster and changes nothing."""

    def __init__(self, model: GPT, token: Callable[[int], Token], *, top: int = N_SHOWN) -> None:
        """Begin with an empty cache.

        Args:
            model: Any GPT.
            token: Gives the token of an id.
            top: Candidates to keep with each step; fewer where the vocabulary is smaller.
        """
        self._reader = Reader(model)
        self._size = model.config.block_size
        self._token = token
        self._top = top

    def steps(
        self, prompt: Sequence[int], *, sampling: Sampling = GREEDY, cache: bool = True
    ) -> Iterator[GenerationStep]:
        """Take one step after the other, each when it is asked for, without an end.

        Args:
            prompt: Token ids, one or more; longer than the context is read from its end.
            sampling: How tokens are chosen.
            cache: Keep keys and values while the window stands still.
        """
        ids = list(prompt)
        while True:
            step = self.step(ids, len(ids) - len(prompt), sampling=sampling, cache=cache)
            yield step
            ids.append(step.token.id)

    def step(
        self,
        ids: Sequence[int],
        number: int,
        *,
        sampling: Sampling = GREEDY,
        cache: bool = True,
        check_cancelled: Callable[[], None] = lambda: None,
    ) -> GenerationStep:
        """Choose the token after a text.

        Args:
            ids: The whole text.
            number: Of the step, counted from 0.
            sampling: How the token is chosen.
            cache: Use and keep keys and values.
            check_cancelled: Called within the pass; what it raises ends it.

        Raises:
            NothingToChoose: No logit is a number, or a NaN leaves nothing to draw from.
        """
        reading = self._reader.read(ids, cache=cache, check_cancelled=check_cancelled)
        ranked = ranking(reading.logits, reading.probs, self._token, self._top)
        if not ranked.best or ranked.best[0].logit == -np.inf:
            raise NothingToChoose(number, "no logit is a number")
        reshaped = None
        if not sampling.is_greedy:
            reshaped = self._reshape(reading, ranked, sampling, len(ids), number)
        chosen = ranked.best[0] if reshaped is None else reshaped.drawn
        first = max(0, len(ids) - self._size)
        return GenerationStep(
            step=number,
            chosen=chosen,
            chosen_by="greedy" if reshaped is None else "sampled",
            argmax_logits=ranked.best[0].token.id,
            argmax_probs=_highest(reading.probs),
            ranking=ranked,
            reshaped=reshaped,
            window=(first, len(ids) - first),
            kept=reading.kept,
            computed=reading.computed,
            seconds=reading.seconds,
        )

    def what_if(
        self, ids: Sequence[int], number: int, sampling: Sampling, *, cache: bool = True
    ) -> Reshaped:
        """Reshape the probabilities after a text, without taking a step; see `step`."""
        reading = self._reader.read(ids, cache=cache)
        ranked = ranking(reading.logits, reading.probs, self._token, self._top)
        return self._reshape(reading, ranked, sampling, len(ids), number)

    def check_cache(
        self,
        ids: Sequence[int],
        *,
        runs: int = 3,
        check_cancelled: Callable[[], None] = lambda: None,
    ) -> CacheCheck:
        """Read a text from kept keys and values, and once more as a whole, and compare.

        Args:
            ids: The whole text.
            runs: Times to measure each; a pass that takes long is measured once.
            check_cancelled: Called within each pass; what it raises ends it.
        """
        with_cache: list[Reading] = []
        without: list[Reading] = []
        while not without or (len(without) < runs and without[0].seconds < _LONG):
            if 1 < len(ids) <= self._size:  # so that all but the last token are kept
                self._reader.read(ids[:-1], cache=True, check_cancelled=check_cancelled)
            with_cache.append(self._reader.read(ids, cache=True, check_cancelled=check_cancelled))
            without.append(self._reader.read(ids, cache=False, check_cancelled=check_cancelled))
        cached, full = with_cache[-1], without[-1]
        apart = np.abs(cached.logits.astype(np.float64) - full.logits)
        return CacheCheck(
            len(without),
            min(reading.seconds for reading in with_cache),
            cached.computed,
            min(reading.seconds for reading in without),
            full.computed,
            float(apart.max()),
            best_ids(cached.logits, 1) == best_ids(full.logits, 1),
        )

    def _reshape(
        self, reading: Reading, ranked: Ranking, sampling: Sampling, n_before: int, number: int
    ) -> Reshaped:
        if ranked.n_flagged:
            raise NothingToChoose(
                number,
                f"the logit of id {ranked.flagged[0]} is NaN or infinite, so there are no "
                "probabilities to draw by",
            )
        ids, probs = reshape(reading.logits, sampling)
        place = _draw(probs, np.random.default_rng([sampling.seed, n_before]))
        drawn = ids[place]
        by_id = dict(zip(ids, probs.tolist(), strict=True))
        return Reshaped(
            sampling,
            tuple(by_id.get(one.token.id, 0.0) for one in ranked.best),
            len(ids),
            Ranked(
                self._token(drawn),
                float(reading.logits[drawn]),
                float(reading.probs[drawn]),
                place + 1,
            ),
            float(probs[place]),
        )


def reshape(
    logits: NDArray[np.float32], sampling: Sampling
) -> tuple[list[int], NDArray[np.float64]]:
    """Apply temperature, top-k and top-p, in this order.

    Args:
        logits: (V,), without NaN.
        sampling: With a temperature above 0.

    Returns:
        The ids that are left, best first, and their probabilities, which add up to 1.
    """
    ids = best_ids(logits, min(sampling.top_k or logits.size, logits.size))
    scaled = logits[ids].astype(np.float64)
    with np.errstate(over="ignore"):  # a tiny temperature sends all but the best to −∞
        probs = np.exp((scaled - scaled[0]) / sampling.temperature)
    probs /= probs.sum()
    if sampling.top_p is not None and sampling.top_p < 1:
        enough = int(np.searchsorted(np.cumsum(probs), sampling.top_p)) + 1
        ids, probs = ids[:enough], probs[:enough] / probs[:enough].sum()
    return ids, probs


def _draw(probs: NDArray[np.float64], generator: np.random.Generator) -> int:
    """Draw a place, each as often as its probability says."""
    ends = np.cumsum(probs)
    place = int(np.searchsorted(ends, generator.random() * ends[-1], side="right"))
    return min(place, int(np.flatnonzero(probs)[-1]))


def _highest(probs: NDArray[np.float32]) -> int | None:
    """Give the id of the highest probability, the lowest of equal ones."""
    return None if np.isnan(probs).any() else int(probs.argmax())
