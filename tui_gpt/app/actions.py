"""Every action of the explorer, once: bindings, footer, help and tests are made from this.

A key means the same in every pane. No action hangs on a key that terminals, tmux or screen
take for themselves (Ctrl+A B H I J M Q S Z, Escape); those may only double another one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Where = Literal[
    "stages", "cells", "terms", "attention", "ffn", "stream", "output", "budget", "generate",
    "options",
]  # fmt: skip
"""What has the arrow keys: in pane 1 the stage list, the matrix or the explanation; elsewhere
the pane."""

WHERE: dict[Where, str] = {
    "stages": "While the stages have the arrow keys",
    "cells": "While the cells have them",
    "terms": "While the explanation has them",
    "attention": "In the attention pane",
    "ffn": "In the feed-forward pane",
    "stream": "In the stream pane",
    "output": "In the output pane",
    "budget": "In the budget pane",
    "generate": "In the generation pane",
    "options": "While its options have the arrow keys",
}
"""How the help says it."""

PANE_1: tuple[Where, ...] = ("stages", "cells", "terms")
PANE_7: tuple[Where, ...] = ("generate", "options")


@dataclass(frozen=True, slots=True)
class Action:
    """Something a person can do."""

    id: str
    """The method `action_<id>` of the main screen; arrows have one method, `action_move`."""
    keys: tuple[str, ...]
    """Textual's names, the one to show first."""
    label: str
    """Two words at most, for the footer."""
    help: str
    """One sentence."""
    where: tuple[Where, ...] = ()
    """Where it applies; empty: everywhere."""
    footer: bool = True
    """Shown in the footer while it applies, if there is room."""

    @property
    def is_arrow(self) -> bool:
        """True for what the arrow keys do, which depends on where they are."""
        return self.keys[0] in ("up", "down", "left", "right")


_UP, _DOWN = ("up", "k"), ("down", "j")
_LEFT, _RIGHT = ("left",), ("right",)

ACTIONS: tuple[Action, ...] = (
    Action("stage_up", _UP, "stage", "Choose the stage above.", ("stages",)),
    Action("stage_down", _DOWN, "stage", "Choose the stage below.", ("stages",)),
    Action("cell_up", _UP, "cell", "Read the cell above.", ("cells",)),
    Action("cell_down", _DOWN, "cell", "Read the cell below.", ("cells",)),
    Action("cell_left", _LEFT, "cell", "Read the cell to the left.", ("cells",)),
    Action("cell_right", _RIGHT, "cell", "Read the cell to the right.", ("cells",)),
    Action("line_up", _UP, "line", "Choose the line above.", ("terms",)),
    Action("line_down", _DOWN, "line", "Choose the line below.", ("terms",)),
    Action("side_left", _LEFT, "side", "Choose the term's input.", ("terms",)),
    Action("side_right", _RIGHT, "side", "Choose the term's weight.", ("terms",)),
    Action("query_up", _UP, "query", "Choose the query above.", ("attention",)),
    Action("query_down", _DOWN, "query", "Choose the query below.", ("attention",)),
    Action("key_left", _LEFT, "key", "Choose the key to the left.", ("attention",)),
    Action("key_right", _RIGHT, "key", "Choose the key to the right.", ("attention",)),
    Action("token_up", _UP, "token", "Choose the token above.", ("ffn",)),
    Action("token_down", _DOWN, "token", "Choose the token below.", ("ffn",)),
    Action("unit_left", _LEFT, "unit", "Choose the unit to the left.", ("ffn",)),
    Action("unit_right", _RIGHT, "unit", "Choose the unit to the right.", ("ffn",)),
    Action("depth_up", _UP, "depth", "Read the stream one sub-layer before.", ("stream",)),
    Action("depth_down", _DOWN, "depth", "Read the stream one sub-layer after.", ("stream",)),
    Action("step_back", _LEFT, "step", "Go one token back.", ("generate",)),
    Action("step_forward", _RIGHT, "step", "Go one token forward.", ("generate",)),
    Action("candidate_up", _UP, "candidate", "Choose a better candidate.", ("output", "generate")),
    Action(
        "candidate_down", _DOWN, "candidate", "Choose a worse candidate.", ("output", "generate")
    ),
    Action("option_left", _LEFT, "option", "Choose the option before.", ("options",)),
    Action("option_right", _RIGHT, "option", "Choose the option after.", ("options",)),
    Action("option_more", _UP, "change", "More of the option, or its next choice.", ("options",)),
    Action("option_less", _DOWN, "change", "Less of it, or the choice before.", ("options",)),
    Action(
        "run",
        ("space",),
        "run",
        "Let it write on by itself, 500 steps at most, or stop it.",
        PANE_7,
    ),
    Action("position_left", _LEFT, "position", "Choose the position before.", ("stream", "output")),
    Action(
        "position_right", _RIGHT, "position", "Choose the position after.", ("stream", "output")
    ),
    Action("field_up", _UP, "field", "Choose the field above.", ("budget",)),
    Action("field_down", _DOWN, "field", "Choose the field below.", ("budget",)),
    Action("less", _LEFT, "change", "Less of the field, or the choice before.", ("budget",)),
    Action("more", _RIGHT, "change", "More of the field, or the next choice.", ("budget",)),
    Action(
        "follow",
        ("f", "enter"),
        "follow",
        "Go to the chosen line's cell, or take the chosen candidate.",
        ("terms", "generate"),
    ),
    Action(
        "switch_zone",
        ("tab", "c"),
        "cells",
        "Give the arrow keys to the next part.",
        (*PANE_1, *PANE_7),
    ),
    Action("branch", ("B",), "branch", "Go to the next branch, or back to the trunk.", PANE_7),
    Action("reset", ("R",), "reset", "Drop what was written and start again.", PANE_7),
    Action("previous_head", ("left_square_bracket",), "head", "Show the previous head."),
    Action("next_head", ("right_square_bracket",), "head", "Show the next head."),
    Action("scores", ("s",), "scores", "Show scores, or the pattern.", ("attention",)),
    Action("section", ("x",), "section", "Show the budget's next section.", ("budget",)),
    Action("hold", ("v",), "compare", "Hold this shape, compare it with others.", ("budget",)),
    Action("prompt", ("p",), "prompt", "Type a prompt of your own."),
    Action("explain", ("e",), "explain", "Show where the cell's number comes from, or stop."),
    Action("pane", ("1", "2", "3", "4", "5", "6", "7"), "panes", "Show the pane of that number."),
    Action("model", ("m",), "model", "Choose another model."),
    Action("next_block", ("n",), "block", "Go to the same stage of the next block."),
    Action("previous_block", ("N",), "block", "Go to the same stage of the previous block."),
    Action("weights", ("w",), "weights", "Show the stage's parameters, one after the other."),
    Action("overview", ("o",), "overview", "Show the whole matrix, or single cells.", PANE_1),
    Action("turn", ("t",), "turn", "Make rows columns.", PANE_1),
    Action("robust", ("r",), "robust", "Scale to 99 of 100 values, or to all.", PANE_1),
    Action("shared", ("b",), "shared", "Take one scale for all blocks, or each its own.", PANE_1),
    Action("dense", ("d",), "dense", "Draw two rows a line, where colours allow it."),
    Action("back", ("u", "backspace"), "back", "Go back to where the last jump started."),
    Action("previous_stage", ("comma",), "stage", "Choose the stage above, from anywhere."),
    Action("next_stage", ("full_stop",), "stage", "Choose the stage below, from anywhere."),
    Action("first", ("home", "g"), "first", "Go to the first stage, or the row's first cell."),
    Action("last", ("end", "G"), "last", "Go to the last stage, or the row's last cell."),
    Action("page_up", ("pageup",), "page", "Go up by a screenful."),
    Action("page_down", ("pagedown",), "page", "Go down by a screenful."),
    Action("inspect", ("i",), "files", "Show how the model's files were read.", footer=False),
    Action("cancel", ("ctrl+g",), "cancel", "Stop loading and computing.", footer=False),
    Action("redraw", ("ctrl+l",), "redraw", "Draw the whole screen again.", footer=False),
    Action("help", ("question_mark",), "help", "Show every key and how to read the picture."),
    Action("quit", ("q", "ctrl+c"), "quit", "Leave; work in progress is dropped at once."),
)

KEPT = 2
"""The last hints stay in the footer however little room there is: help and quit."""

_KEY_NAMES = {
    "up": "↑",
    "down": "↓",
    "left": "←",
    "right": "→",
    "tab": "Tab",
    "space": "Space",
    "enter": "Enter",
    "backspace": "Backspace",
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
    "ctrl+g": "Ctrl+G",
    "ctrl+l": "Ctrl+L",
}

_NEXT_ZONE = {
    "stages": "cells",
    "cells": "stages",
    "terms": "stages",
    "generate": "options",
    "options": "steps",
}
"""What the footer calls `switch_zone`: where it leads."""


def key_name(key: str) -> str:
    """Write a key as people know it."""
    return _KEY_NAMES.get(key, key)


def applying(where: Where) -> tuple[Action, ...]:
    """List the actions that apply while something has the arrow keys."""
    return tuple(action for action in ACTIONS if not action.where or where in action.where)


def hints(where: Where) -> tuple[tuple[str, str], ...]:
    """Give the footer: keys and label, neighbours with one label joined."""
    joined: list[tuple[str, str]] = []
    for action in applying(where):
        if not action.footer:
            continue
        label = _NEXT_ZONE[where] if action.id == "switch_zone" else action.label
        if action.id == "follow" and where == "generate":
            label = "take"
        keys = key_name(action.keys[0])
        if action.id == "pane":
            keys = f"{action.keys[0]}-{action.keys[-1]}"
        if joined and joined[-1][1] == label:
            keys = _beside(joined.pop()[0], keys)
        joined.append((keys, label))
    return tuple(joined)


def help_groups() -> tuple[tuple[str, tuple[Action, ...]], ...]:
    """Group the actions for the help: those that apply everywhere, then by where they do."""
    groups = [("Keys", tuple(action for action in ACTIONS if not action.is_arrow))]
    for where, heading in WHERE.items():
        arrows = tuple(action for action in ACTIONS if action.is_arrow and where in action.where)
        if arrows:
            groups.append((heading, arrows))
    return tuple(groups)


def help_lines(actions: Iterable[Action]) -> tuple[tuple[str, str], ...]:
    """Give actions for the help: all their keys, and their sentence."""
    return tuple(
        (" ".join(key_name(key) for key in action.keys), action.help) for action in actions
    )


def _beside(before: str, key: str) -> str:
    """Join arrows without a blank and letters with one."""
    return f"{before}{key}" if not key.isascii() else f"{before} {key}"
