"""What `trace` shows people: outside text that only draws, columns that fit, colours asked for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from commands import command
from conftest import TINY, tiny_gpt
from rich.cells import cell_len
from rich.text import Text

from tui_gpt.checkpoints.weights import save_model
from tui_gpt.records.stages import Axis, find_stage, stage_table
from tui_gpt.records.tensors import StageSummary, StageTensor, statistics
from tui_gpt.records.tokens import Token
from tui_gpt.records.trace import Candidate, ModelFacts, Run
from tui_gpt.tokenization.characters import CharacterTokenizer
from tui_gpt.views.commands.trace import bar, places, trace_table
from tui_gpt.views.commands.values import stage_values
from tui_gpt.views.profile import Glyphs, TerminalProfile

ODD_CHARACTERS = "\n\r\t\x07\x1b []/;:\\01235?abcdefghijmnrxPWNEDQUJCL日é"
"""A vocabulary that can spell what terminals obey and what markup readers read."""

TO_THE_TERMINAL = (
    "\x1b[31mred",
    "\x1b[2J",
    "\x1b]0;PWNED\x07",
    "\x1b]52;c;QUJD\x07",
    "\x1b]0;PWNED",
    "a\rb\nc\td",
)
TO_A_MARKUP_READER = ("[/]", "[b]x[/b]", "[/ab]", "[red]x", "\\[b]", ":a:")


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A tiny model that knows control characters and brackets."""
    folder = tmp_path_factory.mktemp("models") / "odd [b]\x1b[2J"
    folder.mkdir()
    config = replace(TINY, vocab_size=len(ODD_CHARACTERS), block_size=16)
    save_model(folder, tiny_gpt(config), CharacterTokenizer(ODD_CHARACTERS).to_json(), {})
    return str(folder)


@pytest.mark.parametrize("prompt", TO_THE_TERMINAL)
@pytest.mark.parametrize("asked", [(), ("--stage", "probs"), ("--format", "csv"), ("--ascii",)])
def test_no_control_character_of_a_prompt_or_name_reaches_the_terminal(
    odd: str, prompt: str, asked: tuple[str, ...]
) -> None:
    outcome = command("trace", "-m", odd, "-p", prompt, *asked)
    assert outcome.code == 0
    shown = (outcome.out + outcome.err).replace("\n", "")
    assert [char for char in shown if ord(char) < 0x20 or 0x7F <= ord(char) < 0xA0] == []


def test_escape_is_drawn_as_its_picture_and_kept_exactly_in_json(odd: str) -> None:
    shown = command("trace", "-m", odd, "-p", "\x1b[2J")
    assert "“␛[2J”" in shown.out
    document = command("trace", "-m", odd, "-p", "\x1b[2J", "--format", "json")
    assert "\x1b" not in document.out
    assert document.json["prompt"] == "\x1b[2J"
    assert document.json["tokens"][0]["text"] == "\x1b"


def test_control_characters_in_a_wrong_name_or_prompt_are_not_obeyed() -> None:
    for arguments in (("-m", "\x1b[2Jx"), ("-p", "\x1b[2J"), ("--prompt-file", "\x1b[2J")):
        outcome = command("trace", *arguments)
        assert (outcome.code, outcome.out) == (1, "")
        assert "\x1b" not in outcome.err


@pytest.mark.parametrize("prompt", TO_A_MARKUP_READER)
@pytest.mark.parametrize("asked", [(), ("--color", "256"), ("--stage", "blocks.0.pattern")])
def test_brackets_in_a_prompt_are_literal(odd: str, prompt: str, asked: tuple[str, ...]) -> None:
    outcome = command("trace", "-m", odd, "-p", prompt, *asked)
    assert outcome.code == 0
    assert f"“{prompt}”" in outcome.out
    assert "odd [b]␛[2J" in outcome.out


def test_line_ends_and_tabs_keep_a_token_on_its_row(odd: str, tmp_path: Path) -> None:
    file = tmp_path / "prompt.txt"
    file.write_bytes(b"a\r\nb\tc")
    outcome = command("trace", "-m", odd, "--prompt-file", str(file), "--stage", "tokens")
    assert "“a\\r\\nb\\tc”" in outcome.out
    rows = [line.split() for line in outcome.out.splitlines()[-6:]]
    assert [row[:2] for row in rows] == [
        ["0", "a"], ["1", "\\r"], ["2", "\\n"], ["3", "b"], ["4", "\\t"], ["5", "c"],
    ]  # fmt: skip


def test_the_table_fits_eighty_columns_and_a_wide_one_says_the_operations(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for model in ("shakespeare", "shakespeare-2017"):
        monkeypatch.setenv("COLUMNS", "80")
        narrow = command("trace", "-m", model).out
        assert max(cell_len(line) for line in narrow.splitlines()) <= 80
        assert "softmax over the keys" not in narrow
        monkeypatch.setenv("COLUMNS", "120")
        wide = command("trace", "-m", model).out
        assert max(cell_len(line) for line in wide.splitlines()) <= 120
        assert wide.count("softmax over the keys") == 2


def test_a_stages_values_stand_under_their_tokens_to_four_places() -> None:
    lines = command("trace", "--stage", "blocks.1.attn_scores", "-p", "To be").out.splitlines()
    assert "blocks.1.attn_scores · query · key, scaled; the future masked" in lines
    assert "formula  q · kᵀ / √16" in lines
    assert "shape    (4, 5, 5)  head × query × key" in lines
    assert "masked   40 cells lie in the future, shown as ·" in lines
    head = lines.index("L1H3 · head 4 of 4")
    assert lines[head + 1].split() == ["0", "1", "2", "3", "4"]
    assert lines[head + 2].split() == ["T", "o", "␣", "b", "e"]
    assert lines[head + 3].split()[:2] == ["0", "T"]
    assert lines[head + 3].split()[3:] == ["·"] * 4
    assert lines[head + 7].split()[:2] == ["4", "e"]
    document = command(
        "trace", "--stage", "blocks.1.attn_scores", "-p", "To be", "--format", "json"
    )
    exact = document.json["values"][3][4]
    assert lines[head + 7].split()[2:] == [places(value) for value in exact]


@pytest.mark.parametrize("glyphs", ["unicode", "ascii"])
@pytest.mark.parametrize("width", [None, 40, 12, 1])
def test_columns_are_cut_into_groups_that_fit_and_none_is_lost(
    width: int | None, glyphs: Glyphs
) -> None:
    stage = find_stage(stage_table(TINY, 3), "probs")
    values = np.linspace(-200, 1, 33, dtype=np.float32).reshape(3, 11)
    names = ["日本", "\\n", "<id 9>"]

    def label(axis: Axis, place: int) -> str:
        return names[place] if axis == "T" else f"v{place}"

    tensor = StageTensor(stage, values)
    found = statistics(tensor)
    lines = [
        line.plain
        for line in stage_values([tensor], found, label, width=width, glyphs=glyphs)
        if line.plain
    ]
    margin = len("0 ") + 6 + 1
    if width is not None:
        assert max(cell_len(line) for line in lines) <= max(width, margin + 1 + 9)
    groups = len(lines) // 5
    assert len(lines) == groups * 5  # two lines of headings and three rows in each
    for row in range(3):
        rows = [lines[group * 5 + 2 + row] for group in range(groups)]
        numbers = " ".join(line[line.index(names[row]) + len(names[row]) :] for line in rows)
        assert numbers.split() == [places(value) for value in values[row].tolist()]
    assert " ".join(lines[1::5]).split() == [f"v{place}" for place in range(11)]


def test_only_what_a_terminal_is_asked_for_is_coloured() -> None:
    assert "\x1b" not in command("trace").out
    assert "\x1b" not in command("trace", "--color", "none").out
    plain = command("trace", "--color", "none").out
    for rung in ("16", "256", "truecolor"):
        coloured = command("--color", rung, "trace").out
        assert "\x1b[1m" in coloured
        assert Text.from_ansi(coloured).plain.split() == plain.split()


def test_ascii_output_has_no_character_from_128_on(odd: str) -> None:
    for asked in ((), ("--stage", "blocks.0.mlp_post"), ("--parameter", "h.0.ln_1.bias")):
        assert command("trace", "-m", odd, "-p", "日é", "--ascii", *asked).out.isascii()
    assert command("--ascii", "trace", "--format", "csv").out.isascii()


def test_a_number_is_never_wider_than_eleven_cells() -> None:
    assert [places(value) for value in (0.0, -0.0, None, 1 / 3, -1e-9, 99_999.9, 1e5, -3e38)] == [
        "0", "0", "-", "0.3333", "-0.0000", "99999.9000", "1.0000e+05", "-3.0000e+38",
    ]  # fmt: skip


def test_a_bar_grows_with_its_share_and_stays_inside_its_cells() -> None:
    assert bar(0.5, 10, "ascii") == "#####"
    assert bar(1.0, 10, "unicode") == "█" * 10
    assert bar(0.55, 10, "unicode") == "█████▌"
    for share in (0.0, -1.0, float("nan")):
        assert bar(share, 10, "unicode") == ""
    assert bar(float("inf"), 10, "unicode") == "█" * 10
    assert max(len(bar(share / 1000, 10, "unicode")) for share in range(1001)) == 10


def test_missing_stages_and_broken_numbers_say_so_in_the_table() -> None:
    stages = stage_table(replace(TINY, tied=True), 3)
    broken = StageTensor(stages[1], np.full((3, 8), np.nan, dtype=np.float32))
    summaries = [
        StageSummary(stages[1], statistics(broken)),
        StageSummary(stages[2], None, "the tap [b]was not offered it\x1b"),
        StageSummary(find_stage(stages, "logits"), None, "no"),
    ]
    token = Token(0, b"a")
    run = Run(ModelFacts("tiny", TINY, 1976, "folder"), "a", (token,), ("cut\x1b",), stages)
    candidate = Candidate(token, float("nan"), float("nan"))
    lines = [line.plain for line in trace_table(run, summaries, [candidate], TerminalProfile())]
    assert "notice: cut␛" in lines
    assert any(line.startswith("embed") and "24 not finite" in line for line in lines)
    assert any("missing: the tap [b]was not offered it␛" in line for line in lines)
    assert any(line.startswith("logits") and "shared" in line for line in lines)
    assert any("nan" in line for line in lines[-1:])
