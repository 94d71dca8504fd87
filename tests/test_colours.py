"""Each rung of the colour ladder sends only what its terminals know, and can be read."""

from __future__ import annotations

import re

import pytest
from explorer import Explorer
from terminal import DOWN, TAB

SGR = re.compile(rb"\x1b\[([0-9;]*)m")

SIXTEEN = {*range(30, 38), *range(40, 48), *range(90, 98), *range(100, 108), 39, 49}
ATTRIBUTES = {0, 1, 2, 3, 4, 7}


def codes(explorer: Explorer) -> set[tuple[int, ...]]:
    """Every SGR code that was sent; extended colours as (38, 5) and (38, 2)."""
    found: set[tuple[int, ...]] = set()
    for sequence in SGR.findall(bytes(explorer.received)):
        numbers = [int(part or 0) for part in sequence.split(b";")]
        while numbers:
            first = numbers.pop(0)
            if first in (38, 48):
                kind = numbers.pop(0)
                del numbers[: 3 if kind == 2 else 1]
                found.add((first, kind))
            else:
                found.add((first,))
    return found


def look_around(explorer: Explorer) -> None:
    """Show a bit of everything: both scales, cells, prompt field, models, help."""
    explorer.press(DOWN * 2, quiet=0.2)
    explorer.press(TAB, quiet=0.1)
    for key, words in (("p", "Your prompt"), ("m", "Open a model")):
        explorer.send(key)
        explorer.wait_for(words)
        explorer.close_dialog()
    explorer.send("?")
    explorer.wait_for("How to use tui-gpt")
    explorer.press("\x1b[6~" * 4, quiet=0.2)


@pytest.mark.parametrize(
    ("env", "options", "extended", "sixteen"),
    [
        ({"COLORTERM": "truecolor"}, (), {(38, 2), (48, 2)}, False),
        ({"COLORTERM": ""}, (), {(38, 5), (48, 5)}, False),
        ({"TERM": "screen-256color", "COLORTERM": ""}, (), {(38, 5), (48, 5)}, False),
        ({"TERM": "screen", "COLORTERM": ""}, (), set(), True),
        ({}, ("--color", "16"), set(), True),
        ({"NO_COLOR": "1"}, (), set(), False),
        ({}, ("--color", "none"), set(), False),
        ({"NO_COLOR": "1"}, ("--color", "256"), {(38, 5), (48, 5)}, False),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, dict | tuple) else None,
)
def test_a_rung_sends_its_own_codes_only(
    env: dict[str, str],
    options: tuple[str, ...],
    extended: set[tuple[int, ...]],
    sixteen: bool,
) -> None:
    with Explorer(*options, env=env) as explorer:
        look_around(explorer)
        found = codes(explorer)
    assert {code for code in found if len(code) == 2} == extended
    plain = {code[0] for code in found if len(code) == 1}
    basic = plain & SIXTEEN - {39, 49}
    assert bool(basic) == sixteen
    assert plain <= ATTRIBUTES | (SIXTEEN if extended or sixteen else set())


@pytest.mark.parametrize(
    "env",
    [
        {"TERM": "screen", "COLORTERM": ""},
        {"TERM": "screen-256color", "COLORTERM": ""},
        {"TERM": "xterm-256color", "COLORTERM": ""},
        {"TERM": "xterm-256color", "COLORTERM": "truecolor"},
        {"NO_COLOR": "1"},
    ],
    ids=lambda env: " ".join(env.values()),
)
def test_glyphs_alone_tell_the_levels_apart(env: dict[str, str]) -> None:
    with Explorer(env=env) as explorer:
        assert explorer.panel[-1].startswith("0 ·░░▒▒▓▓██ 1 ")
        picture = "".join(row[5:] for row in explorer.panel[7:-1])
        assert {"·", "░", "▓"} <= set(picture)
        explorer.send(DOWN * 2)
        # Below 0 and above it, as far as this stage's values go.
        both_ways = re.compile(r"-\S+ ≡*═*─+╌+·+░+▒+▓*█* \d")
        explorer.wait_for(lambda _: both_ways.match(explorer.panel[-1]) is not None, most=5)


def test_ascii_sends_no_byte_from_128_on() -> None:
    with Explorer("--ascii") as explorer:
        assert explorer.panel[-1].startswith("0 .,:;+*%#@ 1 ")
        look_around(explorer)
        assert bytes(explorer.received).isascii()


def test_in_ascii_a_cut_is_marked_with_a_tilde() -> None:
    with Explorer("--ascii", size=(44, 12)) as explorer:
        assert any(row.endswith("~") for row in (*explorer.panel, explorer.reading))
        assert "?" not in explorer.text.replace("? help", "")


def test_a_locale_without_our_characters_gets_ascii() -> None:
    env = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": ""}
    with Explorer(env=env) as explorer:
        assert explorer.panel[-1].startswith("0 .,:;+*%#@ 1 ")
        assert bytes(explorer.received).isascii()
        assert b"\\u" not in explorer.received
