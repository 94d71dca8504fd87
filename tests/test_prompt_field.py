"""The prompt field keeps what is typed or pasted, as it was, and never loses it."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from explorer import Explorer
from terminal import BACKSPACE, CTRL_C, CTRL_G, ENTER, LEFT, PASTE, PASTED

CTRL_R = "\x12"
ESCAPE = "\x1b"


@pytest.fixture(scope="module")
def shared() -> Iterator[Explorer]:
    """One program for all fields; torch is loaded."""
    with Explorer() as explorer:
        explorer.wait_until_loaded()
        yield explorer


@pytest.fixture
def field(shared: Explorer) -> Iterator[Explorer]:
    """The program with its default prompt, and the field open with all of it selected."""
    if "“To be, or not to be”" not in shared.title:
        shared.run_prompt("To be, or not to be")
    shared.open_prompt()
    yield shared
    if "Your prompt" in shared.text:
        shared.close_dialog()


def lines(explorer: Explorer) -> list[str]:
    """What the field holds, as it is drawn."""
    rows = [row.rstrip() for row in explorer.screen.display]
    first = next(i for i, row in enumerate(rows) if row == " Your prompt") + 1
    return [row[1:] for row in rows[first:] if row and "Enter run" not in row]


def refusal(explorer: Explorer) -> str:
    """What is said about the prompt, below the field."""
    joined = " ".join(" ".join(row.split()) for row in explorer.screen.display)
    return joined[joined.index("Your prompt") :]


def test_a_paste_of_three_lines_is_kept_whole_and_runs_nothing(field: Explorer) -> None:
    # case D19
    field.send(f"{PASTE}ROMEO:\rWhat light\nis this?{PASTED}")
    field.wait_for("is this?")
    field.settle()
    assert lines(field) == ["ROMEO:", "What light", "is this?"]
    assert "“To be, or not to be”" in field.title


def test_a_paste_without_brackets_is_kept_whole_and_runs_nothing(field: Explorer) -> None:
    # case D19
    field.send("ROMEO:\rWhat light\ris this?\r")
    field.wait_for("is this?")
    field.settle()
    assert lines(field) == ["ROMEO:", "What light", "is this?"]
    assert "“To be, or not to be”" in field.title


def test_a_line_and_its_enter_run_even_if_they_arrive_at_once(field: Explorer) -> None:
    # As they do when the link or the program was busy while a person typed.
    field.send(f"What light{ENTER}")
    field.wait_for("“What light”", most=5)


def test_the_cursor_goes_over_wide_characters_as_wholes(field: Explorer) -> None:
    field.send("日本")
    field.settle(quiet=0.1)
    field.send(LEFT)
    field.settle(quiet=0.1)
    field.send("x")
    field.settle(quiet=0.1)
    # pyte leaves the second cell of a wide character empty.
    assert "".join(lines(field)) == "日x本"


def test_what_is_typed_in_a_burst_is_applied_in_order(field: Explorer) -> None:
    field.send(f"abc{BACKSPACE}{BACKSPACE}xyz{BACKSPACE}{LEFT}!{LEFT}{BACKSPACE}w")
    field.settle()
    assert lines(field) == ["aw!y"]


def test_keys_typed_right_behind_p_land_in_the_field(shared: Explorer) -> None:
    shared.send("pqmn Let")
    shared.wait_for("Your prompt")
    shared.settle()
    assert lines(shared) == ["qmn Let"]
    shared.close_dialog()


def test_every_unknown_character_is_named_and_nothing_is_lost(field: Explorer) -> None:
    field.type("café ∩ x 🙂")
    field.send(ENTER)
    field.wait_for("never saw")
    said = refusal(field)
    assert "3 characters this model never saw (it knows 81)" in said
    assert "'é' at 3, '∩' at 5, '🙂' at 9" in " ".join(said.split())
    assert "“To be, or not to be”" in field.title
    assert "attention pattern" in field.panel[0]
    field.send(BACKSPACE * 7)
    field.type("e")
    assert lines(field)[0] == "cafe"
    field.send(ENTER)
    field.wait_for(lambda _: "“cafe”" in field.title)


def test_an_empty_prompt_asks_for_text(field: Explorer) -> None:
    field.send(BACKSPACE)
    field.settle(quiet=0.1)
    field.send(ENTER)
    field.wait_for("the prompt is empty; type at least one character")
    assert "“To be, or not to be”" in field.title


def test_a_prompt_that_is_too_long_says_both_numbers_and_can_run_its_end(field: Explorer) -> None:
    text = "The lady doth protest too much, methinks. " * 2
    assert len(text) == 84
    field.type(text)
    field.send(ENTER)
    field.wait_for("the prompt is 84 tokens but this model reads 64")
    assert "Ctrl+R" in refusal(field)
    field.send(CTRL_R)
    field.wait_for("the first 20 were cut")
    field.wait_for(lambda _: "(4, 64, 64)" in field.chosen)
    assert "84 tokens" in field.text
    assert "“t too much, methinks." in field.title  # what is left, from the 21st on
    field.run_prompt("To be")
    assert "were cut" not in field.text


@pytest.mark.parametrize(
    "hostile",
    ["a\x1b[31mred", "a\x1b[2Jb", "a\x1b]0;PWNED\x07b", "a\x1b]52;c;aGk=\x07b", "a\x1b]0;no end"],
    ids=["colour", "clear", "title", "clipboard", "no-end"],
)
def test_escape_sequences_in_a_paste_never_reach_the_terminal(
    field: Explorer, hostile: str
) -> None:
    before = len(field.received)
    field.send(f"{PASTE}{hostile}{PASTED}")
    field.settle()
    field.send(ENTER)
    field.settle()
    sent = bytes(field.received[before:])
    for sequence in (b"\x1b[31m", b"\x1b[2J", b"\x1b]", b"\x07"):
        assert sequence not in sent
    assert "“To be, or not to be”" in field.title


@pytest.mark.parametrize("markup", ["[/]", "[b]x[/b]", "[/path]", "[@click=app.exit]x"])
def test_square_brackets_are_shown_as_they_are(field: Explorer, markup: str) -> None:
    known = "/" not in markup and "@" not in markup and "=" not in markup
    field.type(markup)
    assert lines(field) == [markup]
    field.send(ENTER)
    field.wait_for(lambda _: "never saw" in field.text or f"“{markup}”" in field.title)
    assert known or lines(field)[0] == markup


def test_brackets_of_a_prompt_that_runs_are_drawn_everywhere(field: Explorer) -> None:
    field.type("[b]x[b]")
    field.send(ENTER)
    field.wait_for("“[b]x[b]”")
    field.wait_for(lambda _: any(row.startswith("0 [") for row in field.panel))
    assert any(row.startswith("2 ]") for row in field.panel)


@pytest.mark.parametrize("key", [ESCAPE, CTRL_G], ids=["Escape", "Ctrl-G"])
def test_the_field_closes_without_a_change(field: Explorer, key: str) -> None:
    field.type("something else")
    field.send(key)
    field.wait_for(lambda _: "Your prompt" not in field.text)
    assert "“To be, or not to be”" in field.title
    assert field.reading


def test_the_field_does_not_blink(field: Explorer) -> None:
    field.type("To be")
    field.settle(quiet=1.0)
    before = len(field.received)
    field.settle(quiet=3.0, most=3.0)
    assert len(field.received) == before


def test_ctrl_c_quits_from_the_field() -> None:
    with Explorer() as explorer:
        explorer.open_prompt()
        explorer.send(f"half a prompt{CTRL_C}")
        sent = time.monotonic()
        assert explorer.wait_for_exit() == 0
        assert time.monotonic() - sent < 1
