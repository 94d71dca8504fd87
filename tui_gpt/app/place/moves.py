"""What keys do to a place: each move is a function from one place to the next.

Keys that do more than move (open a dialog, follow a reference, leave) are methods of the main
screen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from tui_gpt.app.panes.pane import Pane
from tui_gpt.app.place.place import Place, Zone

if TYPE_CHECKING:
    from tui_gpt.app.place.budget import BudgetPlace
    from tui_gpt.app.place.generation import GenerationPlace

Move: TypeAlias = Callable[[Place, Pane], Place]


def _switch_zone(place: Place, pane: Pane) -> Place:
    """From the stages to the cells, to the explanation where there is one, and back."""
    if place.pane == "7":
        return _in_generate(place, lambda it: it.switch())
    order: tuple[Zone, ...] = (
        ("stages", "cells", "terms") if place.explained else ("stages", "cells")
    )
    at = order.index(place.zone) if place.zone in order else 0
    return replace(place, zone=order[(at + 1) % len(order)])


def _explain(place: Place, pane: Pane) -> Place:
    """Show the explanation in pane 1 and give it the keys; or take it away."""
    if place.explained and place.pane == "1":
        zone: Zone = "cells" if place.zone == "terms" else place.zone
        return replace(place, explained=False, zone=zone, line=0)
    return replace(place, pane="1", explained=True, zone="terms", parameter=None, line=0)


def _weights(place: Place, pane: Pane) -> Place:
    """Show the stage's first parameter, the next, then the stage again."""
    count = len(place.stage.parameters)
    shown = -1 if place.parameter is None else place.parameter
    following = shown + 1 if shown + 1 < count else None
    zone: Zone = "cells" if place.zone == "terms" else place.zone
    return replace(place, pane="1", parameter=following, explained=False, zone=zone, line=0)


def _end(place: Place, pane: Pane, *, last: bool) -> Place:
    """Go to an end of the stage list, or of the row."""
    if place.pane == "1" and place.zone != "cells":
        return place.at_stage(len(place.run.stages) - 1 if last else 0)
    columns = pane.columns(place)
    return pane.move(place, 0, columns if last else -columns)


def _in_budget(place: Place, change: Callable[[BudgetPlace], BudgetPlace]) -> Place:
    """Change the shape that is looked at, where it is looked at."""
    if place.pane != "6":
        return place
    from tui_gpt.app.panes.budget import budget_place_of  # not for the first frame

    return replace(place, budget=change(budget_place_of(place)))


def _in_generate(place: Place, change: Callable[[GenerationPlace], GenerationPlace]) -> Place:
    """Change the text that is written, where it is written."""
    if place.pane != "7":
        return place
    from tui_gpt.app.panes.generate import generation_place_of  # not for the first frame

    return replace(place, generation=change(generation_place_of(place)))


def _page(place: Place, pane: Pane, direction: int) -> Place:
    return pane.move(place, direction * pane.page(place), 0)


MOVES: Mapping[str, Move] = {
    "switch_zone": _switch_zone,
    "explain": _explain,
    "weights": _weights,
    "previous_stage": lambda place, pane: place.at_stage(place.index - 1),
    "next_stage": lambda place, pane: place.at_stage(place.index + 1),
    "previous_head": lambda place, pane: place.by_heads(-1),
    "next_head": lambda place, pane: place.by_heads(1),
    "previous_block": lambda place, pane: place.at_block(place.block - 1),
    "next_block": lambda place, pane: place.at_block(place.block + 1),
    "scores": lambda place, pane: replace(place, scores=not place.scores),
    "section": lambda place, pane: _in_budget(place, lambda d: d.next_section()),
    "hold": lambda place, pane: _in_budget(place, lambda d: d.hold()),
    "run": lambda place, pane: _in_generate(place, lambda it: it.run()),
    "branch": lambda place, pane: _in_generate(place, lambda it: it.next_branch()),
    "reset": lambda place, pane: _in_generate(place, lambda it: it.again(place.run.tokens)),
    "overview": lambda place, pane: replace(place, overview=not place.overview),
    "turn": lambda place, pane: replace(place, turned=not place.turned),
    "robust": lambda place, pane: replace(place, robust=not place.robust, shared=False),
    "shared": lambda place, pane: replace(place, shared=not place.shared, robust=False),
    "dense": lambda place, pane: replace(place, dense=not place.dense),
    "first": lambda place, pane: _end(place, pane, last=False),
    "last": lambda place, pane: _end(place, pane, last=True),
    "page_up": lambda place, pane: _page(place, pane, -1),
    "page_down": lambda place, pane: _page(place, pane, 1),
}
"""By the id of the action."""
