"""What every pane offers the main screen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from rich.segment import Segment

from tui_gpt.app.actions import Where
from tui_gpt.app.place.place import Place
from tui_gpt.app.work.questions import Answers, Question
from tui_gpt.records.tokens import Token
from tui_gpt.views.palette import Palette
from tui_gpt.views.rows import Row, fitted
from tui_gpt.views.stage_text import wrapped
from tui_gpt.views.text import sanitize, transliterate

T = TypeVar("T")


@dataclass(slots=True)
class Scene:
    """All that a pane draws from; it collects what the pane would like to know besides."""

    place: Place
    answers: Answers
    vocabulary: Callable[[int], Token] | None
    """Gives the token of an id, where the model is at hand."""
    width: int
    """Cells of the body."""
    height: int
    """Lines of the body."""
    palette: Palette
    wanted: list[Question[object]] = field(default_factory=list)
    """Questions that were asked while drawing and have no answer yet, in order."""

    def ask(self, question: Question[T]) -> T | None:
        """Give the answer; None while it is on its way, or where there is none."""
        if question not in self.answers:
            self.wanted.append(question)  # type: ignore[arg-type]  # a list of any answers
        return self.answers.get(question)

    def reason(self, question: Question[T]) -> str:
        """Say why there is no answer; empty while it is on its way."""
        return self.answers.reason(question)


@dataclass(frozen=True, slots=True)
class Picture:
    """A drawn pane."""

    rows: list[Row]
    """`height` rows of `width` cells."""
    reading: Row
    """The line below the body: one number with all its digits."""


class Pane(Protocol):
    """One way to look at a run. It keeps where it is scrolled to, and nothing else."""

    def draw(self, scene: Scene) -> Picture:
        """Draw the place; what is not known yet, or missing with its reason, has no digit."""
        ...

    def move(self, place: Place, down: int, right: int) -> Place:
        """Say where an arrow key leads."""
        ...

    def page(self, place: Place) -> int:
        """Say how many steps down PgDn goes."""
        ...

    def columns(self, place: Place) -> int:
        """Say how many columns Home and End go through."""
        ...

    def where(self, place: Place) -> Where:
        """Name what has the arrow keys."""
        ...


def waiting(scene: Scene, title: str, reason: str) -> Picture:
    """Draw a pane that has no numbers: why, or nothing while they are on their way."""
    palette = scene.palette
    rows: list[Row] = [[Segment(f" {title}", palette.strong)]]
    text = transliterate(sanitize(f"missing: {reason}"), palette.profile.glyphs) if reason else ""
    rows += [[Segment(f" {line}", palette.problem)] for line in wrapped(text, scene.width - 2)]
    return Picture(fitted(rows, scene.width, scene.height, palette.plain), [])
