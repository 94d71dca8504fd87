"""Pane 6: where the parameters of a shape sit. It needs no numbers of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tui_gpt.app.actions import Where
from tui_gpt.app.panes.pane import Picture, Scene
from tui_gpt.app.place.place import Place
from tui_gpt.app.work.questions import CheckCancelled, Question
from tui_gpt.config import PRESETS, GPTConfig
from tui_gpt.errors import MissingStage
from tui_gpt.records.trace import Trace

if TYPE_CHECKING:
    from tui_gpt.app.place.budget import BudgetPlace
    from tui_gpt.records.budget.counts import StateDictCount
    from tui_gpt.session import Session


@dataclass(frozen=True, slots=True)
class TallyOf(Question["StateDictCount | None"]):
    """What is really in the open model's weight file; None where it has none."""

    def answer(
        self, trace: Trace, session: Session | None, check_cancelled: CheckCancelled
    ) -> StateDictCount | None:
        """Read the file's header; see `Question.answer`."""
        from tui_gpt.checkpoints.parameter_count import count_state_dict

        if session is None:
            raise MissingStage("the recording's model is not here")
        return count_state_dict(session.source)


class BudgetPane:
    """A shape's fields on keys, and what follows from them."""

    def draw(self, scene: Scene) -> Picture:
        """Draw the shape that is looked at; at first it is the open model's."""
        from tui_gpt.views.panes.budget.pane import Sheet, budget_pane, budget_reading

        shape = budget_place_of(scene.place)  # like the views, not imported for the first frame
        opened = shape.config == scene.place.run.model.config
        sheet = Sheet(
            name=shape.name,
            config=shape.config,
            batch=shape.batch,
            context=shape.context,
            fields=shape.values(),
            chosen=shape.field,
            section=shape.section,
            refused=shape.refused,
            held=shape.held,
            state_dict=scene.ask(TallyOf()) if opened else None,
        )
        rows = budget_pane(sheet, width=scene.width, height=scene.height, palette=scene.palette)
        return Picture(rows, budget_reading(sheet, scene.palette))

    def move(self, place: Place, down: int, right: int) -> Place:
        """Choose a field, or change the chosen one."""
        shape = budget_place_of(place)
        if down:
            return replace(place, budget=shape.at_field(down))
        if not right:
            return place
        return replace(place, budget=shape.changed(right, lambda: _named(place)))

    def page(self, place: Place) -> int:
        """Jump to the first and the last field."""
        from tui_gpt.app.place.budget import FIELDS

        return len(FIELDS)

    def columns(self, place: Place) -> int:
        """Leave Home and End without a meaning: values have no ends."""
        return 0

    def where(self, place: Place) -> Where:
        """Name this pane."""
        return "budget"


def budget_place_of(place: Place) -> BudgetPlace:
    """Give the shape that is looked at: the open model's, until it is changed."""
    from tui_gpt.app.place.budget import BudgetPlace

    model = place.run.model
    return place.budget or BudgetPlace.of(model.name, model.config)


def _named(place: Place) -> Mapping[str, GPTConfig]:
    """List what can be started from: the open model first."""
    from tui_gpt.session import known_models

    model = place.run.model
    bundled = {known.name: known.config for known in known_models()}
    return {model.name: model.config, **PRESETS, **bundled}
