"""The main screen's keys, made from the registry of actions."""

from __future__ import annotations

from textual.binding import Binding, BindingType

from tui_gpt.app.actions import ACTIONS
from tui_gpt.app.panes import PANES
from tui_gpt.app.place.moves import MOVES

_ARROWS = (("up,k", -1, 0), ("down,j", 1, 0), ("left", 0, -1), ("right", 0, 1))


def bindings() -> list[BindingType]:
    """Bind every key that the registry names.

    All have priority, so that keys that arrive together are done in their order.
    """
    made: list[BindingType] = [
        Binding(
            ",".join(action.keys),
            f"go('{action.id}')" if action.id in MOVES else action.id,
            show=False,
            priority=True,
        )
        for action in ACTIONS
        if not action.is_arrow and action.id != "pane"
    ]
    made += [Binding(pane.key, f"pane('{pane.key}')", show=False, priority=True) for pane in PANES]
    # What the arrow keys mean depends on where they are; the pane knows.
    made += [
        Binding(keys, f"move({down}, {right})", show=False, priority=True)
        for keys, down, right in _ARROWS
    ]
    return made
