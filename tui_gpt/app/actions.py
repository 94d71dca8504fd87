"""Every action of the explorer, once: bindings, footer, help and tests are made from this.

A key means the same in every pane. No action hangs on a key that terminals, tmux or screen
take for themselves (Ctrl+A B H I J M Q S Z, Escape); those may only double another one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Zone = Literal["stages", "cells"]
"""What the arrow keys move: the chosen stage, or the cell that is read."""


@dataclass(frozen=True, slots=True)
class Action:
    """Something a person can do."""

    id: str
    """The method `action_<id>` of the main screen."""
    keys: tuple[str, ...]
    """Textual's names, the one to show first."""
    label: str
    """Two words at most, for the footer."""
    help: str
    """One sentence."""
    zone: Zone | None = None
    """Where it applies; None: everywhere."""
    footer: bool = True
    """Shown in the footer while it applies."""


ACTIONS: tuple[Action, ...] = (
    Action("stage_up", ("up", "k"), "stage", "Choose the stage above.", "stages"),
    Action("stage_down", ("down", "j"), "stage", "Choose the stage below.", "stages"),
    Action("cell_up", ("up", "k"), "cell", "Read the cell above.", "cells"),
    Action("cell_down", ("down", "j"), "cell", "Read the cell below.", "cells"),
    Action("cell_left", ("left",), "cell", "Read the cell to the left.", "cells"),
    Action("cell_right", ("right",), "cell", "Read the cell to the right.", "cells"),
    Action(
        "switch_zone",
        ("tab", "c"),
        "cells",
        "Give the arrow keys to the cells, and back to the stages.",
    ),
    Action(
        "previous_stage",
        ("comma",),
        "stage",
        "Choose the stage above, from anywhere.",
        footer=False,
    ),
    Action(
        "next_stage",
        ("full_stop",),
        "stage",
        "Choose the stage below, from anywhere.",
        footer=False,
    ),
    Action("previous_head", ("left_square_bracket",), "head", "Show the previous head."),
    Action("next_head", ("right_square_bracket",), "head", "Show the next head."),
    Action("next_block", ("n",), "block", "Go to the same stage of the next block."),
    Action("previous_block", ("N",), "block", "Go to the same stage of the previous block."),
    Action("prompt", ("p",), "prompt", "Type a prompt of your own."),
    Action("model", ("m",), "model", "Choose another model."),
    Action(
        "dense",
        ("d",),
        "dense",
        "Show two rows of the matrix a line, where colours allow it.",
    ),
    Action("help", ("question_mark",), "help", "Show every key and how to read the picture."),
    Action("quit", ("q", "ctrl+c"), "quit", "Leave; work in progress is dropped at once."),
    Action(
        "first",
        ("home", "g"),
        "first",
        "Go to the first stage, or the row's first cell.",
        footer=False,
    ),
    Action(
        "last", ("end", "G"), "last", "Go to the last stage, or the row's last cell.", footer=False
    ),
    Action("page_up", ("pageup",), "page up", "Go up by a screenful.", footer=False),
    Action("page_down", ("pagedown",), "page down", "Go down by a screenful.", footer=False),
    Action("redraw", ("ctrl+l",), "redraw", "Draw the whole screen again.", footer=False),
)

_KEY_NAMES = {
    "up": "↑",
    "down": "↓",
    "left": "←",
    "right": "→",
    "tab": "Tab",
    "comma": ",",
    "full_stop": ".",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "question_mark": "?",
    "home": "Home",
    "end": "End",
    "pageup": "PgUp",
    "pagedown": "PgDn",
    "ctrl+c": "Ctrl+C",
    "ctrl+l": "Ctrl+L",
}


def key_name(key: str) -> str:
    """Write a key as people know it."""
    return _KEY_NAMES.get(key, key)


KEPT = 2
"""The last hints stay in the footer however little room there is: help and quit."""


def in_zone(zone: Zone) -> tuple[Action, ...]:
    """List the actions that apply while a zone has the arrow keys."""
    return tuple(action for action in ACTIONS if action.zone in (None, zone))


def hints(zone: Zone) -> tuple[tuple[str, str], ...]:
    """Give the footer: keys and label, neighbours with one label joined."""
    joined: list[tuple[str, str]] = []
    for action in in_zone(zone):
        if not action.footer:
            continue
        label = "stages" if action.id == "switch_zone" and zone == "cells" else action.label
        keys = key_name(action.keys[0])
        if joined and joined[-1][1] == label:
            keys = _beside(joined.pop()[0], keys)
        joined.append((keys, label))
    return tuple(joined)


def help_groups() -> tuple[tuple[str, tuple[Action, ...]], ...]:
    """Group the actions for the help: everywhere, and in each zone."""
    return (
        ("Keys", tuple(action for action in ACTIONS if action.zone is None)),
        ("While the stages have the arrow keys", _only("stages")),
        ("While the cells have them", _only("cells")),
    )


def help_lines(actions: Iterable[Action]) -> tuple[tuple[str, str], ...]:
    """Give actions for the help: all their keys, and their sentence."""
    return tuple(
        (" ".join(key_name(key) for key in action.keys), action.help) for action in actions
    )


def _only(zone: Zone) -> tuple[Action, ...]:
    return tuple(action for action in ACTIONS if action.zone == zone)


def _beside(before: str, key: str) -> str:
    """Join arrows without a blank and letters with one."""
    return f"{before}{key}" if not key.isascii() else f"{before} {key}"
