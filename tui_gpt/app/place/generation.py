"""Where a person stands in pane 7: a walk, the options, and what each key makes of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from tui_gpt.errors import TuiGPTError
from tui_gpt.files import BUNDLED_MODELS
from tui_gpt.records.analyses.generation import GREEDY, GenerationStep, Sampling, Walk
from tui_gpt.records.tokens import Token

SPEEDS = (1, 2, 5, 10, 20)
"""Steps a second of a run; the last is full speed, as fast as a screen can be read."""

RUN_STEPS = 500
"""A run pauses whenever it comes to a multiple of these."""

TEMPERATURES = (0.0, 0.25, 0.5, 0.7, 0.85, 1.0, 1.25, 1.5, 2.0, 5.0)
TOP_KS = (None, 1, 2, 3, 5, 10, 20, 50)
TOP_PS = (None, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)

OPTIONS = ("temperature", "top-k", "top-p", "seed", "speed", "cache", "beside")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class GenerationPlace:
    """A text being written, and how."""

    walk: Walk
    other: Walk | None = None
    """The second model's, once its prompt is cut."""
    beside: str = ""
    """The second model; empty for none."""
    choice: int | None = None
    """The candidate that the keys are at; None is at the token that was taken."""
    option: int | None = None
    """The option that has the arrow keys; None where the steps have them."""
    sampling: Sampling = GREEDY
    cache: bool = True
    speed: int = 2
    """Index into SPEEDS."""
    running: bool = False

    @property
    def wait(self) -> float:
        """Seconds between two steps of a run."""
        return 1 / SPEEDS[self.speed]

    @property
    def can_go_on(self) -> bool:
        """It writes itself, and the shown step is there to go on from."""
        return self.running and self.forward() is not self

    def values(self) -> list[tuple[str, str]]:
        """Give every option as (name, value) to show."""
        sampling = self.sampling
        shown = (
            f"{sampling.temperature:g}",
            "–" if sampling.top_k is None else str(sampling.top_k),
            "–" if sampling.top_p is None else f"{sampling.top_p:g}",
            str(sampling.seed),
            f"{SPEEDS[self.speed]}/s",
            "on" if self.cache else "off",
            self.beside or "–",
        )
        return list(zip(OPTIONS, shown, strict=True))

    def again(self, prompt: tuple[Token, ...]) -> GenerationPlace:
        """Start at a prompt, with the same options."""
        walk = Walk(prompt)
        return replace(self, walk=walk, other=None, choice=None, running=False)

    def forward(self) -> GenerationPlace:
        """Go one step on, both models, once both have taken the shown one."""
        if self.walk.shown is None or (self.other is not None and self.other.shown is None):
            return self
        other = None if self.other is None else self.other.forward()
        return replace(self, walk=self.walk.forward(), other=other, choice=None)

    def onward(self) -> GenerationPlace:
        """Go one step on by itself; a run nobody stops pauses, for every step is kept."""
        ahead = self.forward()
        return replace(ahead, running=ahead.walk.at % RUN_STEPS != 0)

    def at_step(self, at: int) -> GenerationPlace:
        """Go to a step that both models have taken, or the nearest; a run stops."""
        walks = [walk for walk in (self.walk, self.other) if walk is not None]
        last = min(len(walk.branch.steps) for walk in walks) - 1
        at = max(0, min(at, last))
        other = None if self.other is None else replace(self.other, at=at)
        walk = replace(self.walk, at=at)
        return replace(self, walk=walk, other=other, choice=None, running=False)

    def choose(self, candidate: int, count: int) -> GenerationPlace:
        """Bring the keys to a candidate."""
        return replace(self, choice=max(0, min(candidate, count - 1)))

    def next_branch(self) -> GenerationPlace:
        """Go to the next branch; the second model has none."""
        walk = self.walk.next_branch()
        return replace(self, walk=walk).at_step(walk.at)

    def run(self) -> GenerationPlace:
        """Let it run on by itself, or stop it."""
        return replace(self, running=not self.running)

    def switch(self) -> GenerationPlace:
        """Give the arrow keys to the options, or back to the steps."""
        return replace(self, option=0 if self.option is None else None)

    def at_option(self, step: int) -> GenerationPlace:
        """Choose another option."""
        option = max(0, min((self.option or 0) + step, len(OPTIONS) - 1))
        return replace(self, option=option)

    def changed(self, step: int, models: Callable[[], Sequence[str]]) -> GenerationPlace:
        """Change the chosen option by a step; at an end it stays.

        Args:
            step: 1 for more or the next, −1 for less or the one before.
            models: Gives the models that can stand beside this one.
        """
        sampling = self.sampling
        match OPTIONS[self.option or 0]:
            case "temperature":
                temperature = _next(TEMPERATURES, sampling.temperature, step)
                return replace(self, sampling=replace(sampling, temperature=temperature))
            case "top-k":
                top_k = _next(TOP_KS, sampling.top_k, step)
                return replace(self, sampling=replace(sampling, top_k=top_k))
            case "top-p":
                top_p = _next(TOP_PS, sampling.top_p, step)
                return replace(self, sampling=replace(sampling, top_p=top_p))
            case "seed":
                return replace(self, sampling=replace(sampling, seed=max(0, sampling.seed + step)))
            case "speed":
                return replace(self, speed=max(0, min(self.speed + step, len(SPEEDS) - 1)))
            case "cache":
                return replace(self, cache=not self.cache)
            case _:
                beside = _next(("", *models()), self.beside, step)
                return replace(self, beside=beside, other=None, running=False)

    def taken(self, ids: tuple[int, ...], beside: str, answer: object) -> GenerationPlace:
        """Take a step that was computed; one that does not belong here is dropped.

        Args:
            ids: The text before it.
            beside: The second model, if it is that one's.
            answer: The step, or why there is none; then a run stops.
        """
        if isinstance(answer, TuiGPTError):
            return replace(self, running=False)
        if not isinstance(answer, GenerationStep):
            return self
        if not beside:
            return replace(self, walk=_grown(self.walk, ids, answer))
        if beside == self.beside and self.other is not None:
            return replace(self, other=_grown(self.other, ids, answer))
        return self


def beside_models(name: str) -> tuple[str, ...]:
    """List what can stand beside a model: the other bundled ones, and its untrained twin."""
    others = [known for known in BUNDLED_MODELS if known != name]
    if name in BUNDLED_MODELS:
        others.append(f"untrained:{name}")
    return tuple(others)


def _grown(walk: Walk, ids: tuple[int, ...], step: GenerationStep) -> Walk:
    """Put a step where the text before it is the one it was computed for."""
    n_new = len(ids) - len(walk.prompt)
    for i, branch in enumerate(walk.branches):
        if len(branch.steps) == n_new and ids == (
            *(token.id for token in walk.prompt),
            *(taken.token.id for taken in branch.steps),
        ):
            return walk.taken(i, step)
    return walk


def _next(values: Sequence[T], value: T, step: int) -> T:
    at = values.index(value) if value in values else 0
    return values[max(0, min(at + step, len(values) - 1))]
