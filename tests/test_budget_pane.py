"""Pane 6 on keys: every field, what is refused, what is held; it needs no numbers of a run."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest
from explorer import Explorer
from terminal import DOWN, LEFT, RIGHT, UP, Terminal

from tui_gpt.app.place.budget import FIELDS, VOCABULARIES, BudgetPlace, Field
from tui_gpt.config import PRESETS, GPTConfig
from tui_gpt.records.budget.counts import budget

GPT2 = PRESETS["gpt2"]


def at(field: Field, config: GPTConfig = GPT2) -> BudgetPlace:
    return replace(BudgetPlace.of("gpt2", config), field=FIELDS.index(field))


def stepped(draft: BudgetPlace, *steps: int) -> BudgetPlace:
    for step in steps:
        draft = draft.changed(step, lambda: PRESETS)
    return draft


@pytest.mark.parametrize(
    ("field", "step", "changes"),
    [
        ("n_layer", 1, {"n_layer": 13}),
        ("n_layer", -1, {"n_layer": 11}),
        ("n_embd", 1, {"n_embd": 1536, "n_inner": 6144}),
        ("n_embd", -1, {"n_embd": 384, "n_inner": 1536}),
        ("n_head", 1, {"n_head": 16}),
        ("n_head", -1, {"n_head": 8}),
        ("expansion", 1, {"n_inner": 3264}),
        ("expansion", -1, {"n_inner": 2880}),
        ("vocab_size", 1, {"vocab_size": 65536}),
        ("vocab_size", -1, {"vocab_size": 37000}),
        ("block_size", 1, {"block_size": 2048}),
        ("tied", 1, {"tied": False}),
        ("qkv_bias", -1, {"qkv_bias": False}),
        ("bias", 1, {"bias": False, "qkv_bias": False}),
        ("positions", 1, {"positions": "sinusoidal"}),
    ],
)
def test_a_key_changes_one_field(field: Field, step: int, changes: dict[str, object]) -> None:
    changed = stepped(at(field), step)
    assert changed.refused == ""
    assert changed.config == replace(GPT2, **changes)  # type: ignore[arg-type]  # its fields
    assert changed.name == "gpt2, changed"


def test_toggles_come_back() -> None:
    for field in ("tied", "qkv_bias", "bias", "positions"):
        assert stepped(at(field), 1, 1).config == GPT2
    bookish = replace(GPT2, qkv_bias=False)
    assert stepped(at("bias", bookish), 1, 1).config == bookish


def test_an_expansion_off_the_grid_goes_to_the_next_quarter() -> None:
    odd = at("expansion", replace(GPT2, n_inner=1535))
    assert stepped(odd, 1).expansion == 2
    assert stepped(odd, -1).expansion == 1.75
    assert stepped(at("expansion"), -1).values()[FIELDS.index("expansion")][1] == "3.75 = 2,880"


def test_presets_follow_each_other_and_keep_what_is_not_theirs() -> None:
    draft = replace(at("from"), batch=8, section="bytes")
    after = stepped(draft, 1)
    assert (after.name, after.config) == ("gpt2-medium", PRESETS["gpt2-medium"])
    assert (after.batch, after.section, after.context) == (8, "bytes", 1024)
    assert stepped(draft, -1).name == list(PRESETS)[-1]


@pytest.mark.parametrize(
    ("draft", "step", "words"),
    [
        (at("n_embd", PRESETS["gpt2-xl"]), -1, ""),
        (
            at("n_embd", replace(PRESETS["gpt2-xl"], n_embd=25)),
            -1,
            "n_embd 12 does not divide into n_head 25",
        ),
        (at("n_layer", replace(GPT2, n_layer=1)), -1, "n_layer is 0; it must be from 1 to 10,000"),
        (at("n_layer", replace(GPT2, n_layer=10_000)), 1, "n_layer is 10001"),
        (at("n_head", replace(GPT2, n_head=768)), 1, "n_embd 768 does not divide into n_head 1536"),
        (at("n_head", replace(GPT2, n_head=1)), -1, "n_head is 0"),
        (at("vocab_size", replace(GPT2, vocab_size=1)), -1, "vocab_size is 0"),
        (at("vocab_size", replace(GPT2, vocab_size=2**31 - 1)), 1, "it must be from 1 to 2,147"),
        (
            at("expansion", replace(GPT2, n_inner=192)),
            -1,
            "expansion 0 of n_embd 768 leaves 0 hidden units",
        ),
        (at("qkv_bias", replace(GPT2, bias=False)), 1, "bias is no"),
        (at("positions", replace(GPT2, n_embd=3, n_head=1)), 1, "n_embd 3 is odd"),
        (at("batch"), -1, "batch is 0"),
        (at("context"), 1, "context 2048 is longer than block_size 1024"),
        (
            replace(at("block_size"), context=1000),
            -1,
            "context 1000 is longer than block_size 512",
        ),
    ],
)
def test_an_impossible_shape_is_refused_and_the_last_good_one_stays(
    draft: BudgetPlace, step: int, words: str
) -> None:
    after = stepped(draft, step)
    assert words in after.refused
    if words:
        assert replace(after, refused="") == draft
        assert after.at_field(1).refused == ""


def test_no_sequence_of_keys_leads_to_a_shape_that_cannot_be_built() -> None:
    for config in PRESETS.values():
        for field in FIELDS:
            for step in (1, -1):
                draft = at(field, config)
                for _ in range(40):
                    draft = stepped(draft, step)
                    assert budget(draft.config).total > 0
                    assert draft.context <= draft.config.block_size


def test_vocabularies_grow() -> None:
    assert list(VOCABULARIES) == sorted(set(VOCABULARIES))


def test_a_shape_is_held_and_let_go() -> None:
    held = BudgetPlace.of("gpt2", GPT2).hold()
    assert (held.held, held.section) == (("gpt2", GPT2), "compare")
    assert held.hold().held is None


def test_the_pane_starts_from_the_open_model_and_counts_its_file() -> None:
    with Explorer() as explorer:
        explorer.send("6")
        explorer.wait_for("total")
        explorer.wait_for("‹shakespeare›")
        assert "114,560" in explorer.text
        explorer.send("x")
        explorer.wait_for("In the weight file")
        assert "37 tensors with 114,560 parameters: equal to" in explorer.text


def test_the_figures_of_the_texts_are_on_the_screen() -> None:
    with Explorer() as explorer:
        explorer.send("6")
        explorer.wait_for("total")
        explorer.press(RIGHT, quiet=0.1)
        explorer.wait_for("‹gpt2›")
        for figure in ("117M", "124,439,808", "163,037,184", "85,054,464", "7,087,872", "31.0 %"):
            assert figure in explorer.text  # K1, K6, K8
        explorer.press("x", quiet=0.1)
        for figure in ("≈84,934,656", "≈38,597,376", "27,648", "66.6 %", "768/12 = 64"):
            assert figure in explorer.text  # K2, K5, K7
        explorer.press("x", quiet=0.1)
        assert "497.8 MB 474.7 MiB" in explorer.text  # K4
        explorer.press("x", quiet=0.1)
        assert "205,852,672 bytes" in explorer.text
        explorer.press("x", quiet=0.1)
        for figure in ("1600/25 = 64", "1542M 1558M 1,557,611,200"):
            assert figure in explorer.text  # K8
        explorer.press("x", quiet=0.1)
        for _ in range(5):
            explorer.send(RIGHT)
        explorer.wait_for("‹gpt2-book›")
        for figure in ("163,009,536", "7,085,568", "23.7 %", "52.2 %"):
            assert figure in explorer.text  # K2, K3
        explorer.press("x", quiet=0.1)
        assert "47.4 % of all" in explorer.text
        assert "level at 1.9987·C" in explorer.text  # K7
        for _ in range(4):
            explorer.send(DOWN)
        explorer.settle(quiet=0.1)
        for _ in range(8):
            explorer.send(LEFT)
        explorer.wait_for("‹2 = 1,536›")
        assert "+1,536" in explorer.text  # K7
        explorer.press("x", quiet=0.1)
        assert "/ 1000^2 = " in explorer.text  # K4: two units from one number


def test_a_refusal_says_both_numbers_and_the_next_key_takes_it_away() -> None:
    with Explorer() as explorer:
        explorer.send("6")
        explorer.wait_for("total")
        for _ in range(3):
            explorer.send(DOWN)
        explorer.settle(quiet=0.1)
        for _ in range(10):
            explorer.send(RIGHT)
        explorer.wait_for("refused:")
        words = " ".join(row[:24].strip() for row in explorer.screen.display)
        assert "n_embd 64 does not divide into n_head 128; take a multiple of 128" in words
        assert "‹64 of 1›" in explorer.text
        explorer.press(LEFT, quiet=0.1)
        assert "refused" not in explorer.text
        assert "‹32 of 2›" in explorer.text


def test_two_shapes_are_compared_on_keys() -> None:
    with Explorer(size=(200, 60)) as explorer:
        explorer.send("6")
        explorer.wait_for("total")
        explorer.press(RIGHT, quiet=0.1)
        explorer.press("v", quiet=0.1)
        for _ in range(3):
            explorer.press(RIGHT, quiet=0.1)
        explorer.wait_for("‹gpt2-xl›")
        assert "+1,433,171,392" in explorer.text
        explorer.press("v", quiet=0.1)
        assert "+1,433,171,392" not in explorer.text


def test_it_works_before_any_numbers_are_there() -> None:
    without = "import sys; sys.modules['torch'] = None; from tui_gpt.cli import main; main()"
    command = (sys.executable, "-c", without, "explore", "-p", "O")
    with Terminal(command) as terminal:
        terminal.wait_for("attn_scores")
        terminal.send("6")
        terminal.wait_for("‹shakespeare›")
        terminal.send(RIGHT)
        terminal.wait_for("124,439,808")


def test_a_prompt_keeps_the_shape_and_another_model_starts_anew() -> None:
    with Explorer() as explorer:
        explorer.send("6")
        explorer.wait_for("total")
        explorer.press(DOWN, quiet=0.1)
        explorer.press(RIGHT, quiet=0.1)
        assert "‹3›" in explorer.text
        explorer.run_prompt("O Romeo")
        assert "‹3›" in explorer.text
        explorer.choose_model("shakespeare-2017")
        explorer.wait_for("110,336")
        explorer.press(UP, quiet=0.1)
        assert "‹shakespeare-2017›" in explorer.text


def test_a_key_costs_little_on_the_wire() -> None:
    with Explorer(env={"COLORTERM": ""}) as explorer:
        explorer.press("6")
        explorer.press(DOWN)
        assert explorer.press(RIGHT) <= 1_500
        assert explorer.press(DOWN) <= 500
