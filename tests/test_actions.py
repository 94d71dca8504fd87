"""Every action is in one registry, can be reached, and is explained."""

from __future__ import annotations

from pathlib import Path

import pytest
from explorer import Explorer
from terminal import DOWN

from tui_gpt.app.actions import (
    ACTIONS,
    WHERE,
    Action,
    Where,
    applying,
    help_groups,
    help_lines,
    hints,
    key_name,
)
from tui_gpt.app.main_screen import MainScreen
from tui_gpt.app.panes import PANES
from tui_gpt.app.place.moves import MOVES

README = Path(__file__).parent.parent / "README.md"

TAKEN = {f"ctrl+{letter}" for letter in "abhijmqsz"} | {"escape"}
"""Keys that terminals, tmux and screen keep, or cannot tell from others."""


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.id)
def test_an_action_can_be_done_with_a_key_that_arrives(action: Action) -> None:
    assert set(action.keys) - TAKEN
    if action.is_arrow:
        assert hasattr(MainScreen, "action_move")  # the pane says what an arrow means
    else:
        assert action.id in MOVES or hasattr(MainScreen, f"action_{action.id}")
    assert action.help.endswith(".")
    assert len(action.label.split()) <= 2


@pytest.mark.parametrize("where", WHERE)
def test_a_key_does_one_thing_in_each_place(where: Where) -> None:
    keys = [key for action in applying(where) for key in action.keys]
    assert len(keys) == len(set(keys))


def test_a_key_means_the_same_in_every_pane() -> None:
    meaning: dict[str, str] = {}
    for action in ACTIONS:
        if not action.is_arrow:
            for key in action.keys:
                assert meaning.setdefault(key, action.id) == action.id


def test_there_is_a_digit_for_every_pane() -> None:
    (digits,) = [action.keys for action in ACTIONS if action.id == "pane"]
    assert digits == tuple(pane.key for pane in PANES)


def test_no_action_is_defined_twice_or_left_out_of_the_help() -> None:
    ids = [action.id for action in ACTIONS]
    assert len(ids) == len(set(ids))
    assert {action.id for _, actions in help_groups() for action in actions} == set(ids)


def test_the_footer_joins_keys_of_one_label_and_names_the_other_zone() -> None:
    assert hints("stages")[0] == ("↑↓", "stage")
    assert ("[ ]", "head") in hints("stages")
    assert ("Tab", "cells") in hints("stages")
    assert ("1-7", "panes") in hints("stages")
    assert hints("cells")[0] == ("↑↓←→", "cell")
    assert ("Tab", "stages") in hints("cells")
    assert hints("output")[:2] == (("↑↓", "candidate"), ("←→", "position"))
    assert hints("cells")[-1] == ("q", "quit")


def test_the_help_on_screen_shows_every_action() -> None:
    with Explorer() as explorer:
        explorer.send("?")
        explorer.wait_for("How to use tui-gpt")
        seen: set[str] = set()
        for _ in range(110):
            explorer.press(DOWN, quiet=0.03)
            seen |= {" ".join(row.split()) for row in explorer.screen.display}
        for action in ACTIONS:
            keys = " ".join(key_name(key) for key in action.keys)
            assert f"{keys} {action.help}" in seen
        explorer.send("?")
        explorer.wait_for(lambda _: bool(explorer.reading))


def test_the_readme_lists_the_keys_of_the_registry() -> None:
    readme = README.read_text("utf-8")
    for keys, sentence in help_lines(help_groups()[0][1]):
        assert f"| {keys} | {sentence} |" in readme
    for pane in PANES:
        assert f"| {pane.key} {pane.title} | " in readme
