"""Pane 7: generation one token at a time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from tui_gpt.app.actions import Where
from tui_gpt.app.panes.pane import Picture, Scene, waiting
from tui_gpt.app.place.generation import GenerationPlace, beside_models
from tui_gpt.app.place.place import Place
from tui_gpt.app.work.questions import CheckCancelled, Question
from tui_gpt.errors import MissingStage
from tui_gpt.records.analyses.generation import CacheCheck, GenerationStep, Reshaped, Sampling, Walk
from tui_gpt.records.tokens import Token
from tui_gpt.records.trace import ModelFacts, Trace

if TYPE_CHECKING:
    from tui_gpt.session import Session
    from tui_gpt.views.panes.generate.step_facts import Side


@dataclass(frozen=True, slots=True)
class Companion:
    """A second model with the same prompt, cut into its own tokens."""

    facts: ModelFacts
    prompt: tuple[Token, ...]


@dataclass(frozen=True, slots=True)
class CompanionOf(Question[Companion]):
    """Another model, by name, and the prompt in its tokens."""

    beside: str
    prompt: str

    def arrived(self, place: Place, answer: object) -> Place:
        """Let the second model start, if it is still wanted."""
        generation = generation_place_of(place)
        if (
            not isinstance(answer, Companion)
            or self.beside != generation.beside
            or generation.other
        ):
            return place
        return replace(place, generation=_joined(generation, answer))

    def answer(
        self, trace: Trace, session: Session | None, check_cancelled: CheckCancelled
    ) -> Companion:
        """Find the model; see `Question.answer`."""
        other = _session(session, self.beside)
        return Companion(other.facts, other.adapt_run(trace.run, crop=True).tokens)


@dataclass(frozen=True, slots=True)
class StepOf(Question[GenerationStep]):
    """The token after a text."""

    beside: str
    """The second model; empty for the one that is open."""
    ids: tuple[int, ...]
    number: int
    sampling: Sampling
    cache: bool

    kept: ClassVar[bool] = False  # the text itself keeps its steps

    def arrived(self, place: Place, answer: object) -> Place:
        """Put the step, or why there is none, into the text it belongs to."""
        generation = generation_place_of(place)
        return replace(place, generation=generation.taken(self.ids, self.beside, answer))

    def answer(
        self, trace: Trace, session: Session | None, check_cancelled: CheckCancelled
    ) -> GenerationStep:
        """Take the step; see `Question.answer`."""
        stepper = _session(session, self.beside).stepper()
        return stepper.step(
            self.ids,
            self.number,
            sampling=self.sampling,
            cache=self.cache,
            check_cancelled=check_cancelled,
        )


@dataclass(frozen=True, slots=True)
class ReshapedOf(Question[Reshaped]):
    """The probabilities after a text under other options."""

    beside: str
    ids: tuple[int, ...]
    number: int
    sampling: Sampling

    def answer(
        self, trace: Trace, session: Session | None, check_cancelled: CheckCancelled
    ) -> Reshaped:
        """Reshape them; see `Question.answer`."""
        stepper = _session(session, self.beside).stepper()
        return stepper.what_if(self.ids, self.number, self.sampling)


@dataclass(frozen=True, slots=True)
class CheckOf(Question[CacheCheck]):
    """A step computed with and without kept keys and values."""

    beside: str
    ids: tuple[int, ...]

    def answer(
        self, trace: Trace, session: Session | None, check_cancelled: CheckCancelled
    ) -> CacheCheck:
        """Compute it both ways; see `Question.answer`."""
        return (
            _session(session, self.beside)
            .stepper()
            .check_cache(self.ids, check_cancelled=check_cancelled)
        )


class GeneratePane:
    """A text that grows, forward and back."""

    def draw(self, scene: Scene) -> Picture:
        """Draw the step of the place, and ask for it where it is not there."""
        if not scene.answers.ready:
            return waiting(scene, "Generate", "")
        from tui_gpt.views.panes.generate.pane import (  # numpy
            Sheet,
            generate_pane,
            generate_reading,
        )

        run, generation = scene.place.run, generation_place_of(scene.place)
        main = self._side(scene, generation, generation.walk, run.model, "")
        other, no_other = None, ""
        if generation.beside:
            question = CompanionOf(generation.beside, run.prompt)
            companion = scene.ask(question)
            no_other = scene.reason(question)
            if companion is not None:
                walk = generation.other or Walk(companion.prompt)
                other = self._side(scene, generation, walk, companion.facts, generation.beside)
        sheet = Sheet(
            main=main,
            other=other,
            beside=generation.beside,
            no_other=no_other,
            chosen=generation.choice,
            options=generation.values(),
            option=generation.option,
            running=generation.running,
        )
        size = {"width": scene.width, "height": scene.height, "palette": scene.palette}
        rows = generate_pane(sheet, **size)  # type: ignore[arg-type]  # a mixed dict
        return Picture(rows, generate_reading(sheet, scene.palette))

    def move(self, place: Place, down: int, right: int) -> Place:
        """Step and choose a candidate; or choose an option and change it."""
        generation = generation_place_of(place)
        if generation.option is not None:
            if right:
                return replace(place, generation=generation.at_option(right))
            models = lambda: beside_models(place.run.model.name)  # noqa: E731  # asked rarely
            return replace(place, generation=generation.changed(-down, models))
        if right == 1:
            return replace(place, generation=generation.forward())
        if right:
            return replace(place, generation=generation.at_step(generation.walk.at + right))
        step = generation.walk.shown
        if step is None or not down:
            return place
        from tui_gpt.views.panes.generate.candidate_rows import listed_candidates, place_of

        at = place_of(step) if generation.choice is None else generation.choice
        count = len(listed_candidates(step))
        return replace(place, generation=generation.choose(at + down, count))

    def page(self, place: Place) -> int:
        """Jump through the candidates."""
        return 5

    def columns(self, place: Place) -> int:
        """Go through the steps that were taken."""
        return len(generation_place_of(place).walk.branch.steps) + 1

    def where(self, place: Place) -> Where:
        """Name this pane, or its options."""
        return "generate" if generation_place_of(place).option is None else "options"

    def _side(
        self, scene: Scene, generation: GenerationPlace, walk: Walk, model: ModelFacts, beside: str
    ) -> Side:
        """Give one model's walk with what is known of its shown step."""
        from tui_gpt.views.panes.generate.step_facts import Side

        ids = tuple(token.id for token in walk.read)
        step, sampling = walk.shown, generation.sampling
        reason = ""
        if step is None:
            question = StepOf(beside, ids, walk.at, sampling, generation.cache)
            scene.ask(question)
            reason = scene.reason(question)
            if walk.at == 0 or reason:
                return Side(model.name, model.config, walk, reason=reason)
            # The step before stays in sight meanwhile: a blank screen would only flicker.
            walk, before = walk.back(), walk.back().shown
            assert before is not None
            return Side(model.name, model.config, walk, before.reshaped, on_its_way=True)
        reshaped = step.reshaped
        if sampling.is_greedy:
            reshaped = reshaped if step.chosen_by == "sampled" else None
        elif reshaped is None or reshaped.sampling != sampling:
            reshaped = scene.ask(ReshapedOf(beside, ids, walk.at, sampling))
        check = None if generation.running else scene.ask(CheckOf(beside, ids))
        return Side(model.name, model.config, walk, reshaped, check, reason)


def generation_place_of(place: Place) -> GenerationPlace:
    """Give the text that is written: at first nothing after the prompt."""
    return place.generation or GenerationPlace(Walk(place.run.tokens))


def with_candidate(place: Place) -> Place:
    """Take the chosen candidate in place of the token that was taken: a branch."""
    generation = generation_place_of(place)
    step = generation.walk.shown
    if step is None or generation.choice is None or generation.option is not None:
        return place
    from tui_gpt.views.panes.generate.candidate_rows import listed_candidates

    listed = listed_candidates(step)
    walk = generation.walk.choose(listed[min(generation.choice, len(listed) - 1)])
    return replace(place, generation=replace(generation, walk=walk, choice=None, running=False))


def _joined(generation: GenerationPlace, companion: Companion) -> GenerationPlace:
    """Let the second model start; both go back to their first step."""
    return replace(generation.at_step(0), other=Walk(companion.prompt))


def _session(session: Session | None, beside: str) -> Session:
    if session is None:
        raise MissingStage("the recording's model is not here, so it cannot write on")
    return session.beside(beside) if beside else session
