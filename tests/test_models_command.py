"""`tui-gpt models`: what can be opened by name, with weights or from a seed."""

from __future__ import annotations

from pathlib import Path

from commands import command
from rich.cells import cell_len

from tui_gpt.checkpoints.find import find_model
from tui_gpt.files import BUNDLED_MODELS


def test_the_array_describes_every_bundled_model_the_default_first() -> None:
    outcome = command("models", "--json")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.isascii()
    described = [model for model in outcome.json if model["kind"] == "bundled"]
    assert [model["name"] for model in described] == list(BUNDLED_MODELS)
    for model in described:
        source = find_model(model["name"])
        assert model == {
            "schema": 1,
            "name": source.name,
            "kind": "bundled",
            "path": str(source.path),
            "parameters": source.n_parameters,
            "config": source.config.to_dict(),
        }
        assert (Path(model["path"]) / "model.safetensors").is_file()


def test_the_counts_are_those_of_two_blocks_of_sixty_four() -> None:
    counts = {
        model["name"]: model["parameters"]
        for model in command("models", "--json").json
        if model["kind"] == "bundled"
    }
    assert counts == {"shakespeare": 114_560, "shakespeare-2017": 110_336}


def test_every_path_and_name_that_is_listed_can_be_opened() -> None:
    for model in command("models", "--json").json:
        if model["kind"] == "untrained":
            continue
        by_name = command("trace", "-m", model["name"], "-p", "a", "--format", "json").json
        by_path = command("trace", "-m", model["path"], "-p", "a", "--format", "json").json
        assert by_name["stages"] == by_path["stages"]
        assert by_name["model"]["config"] == model["config"]


def test_the_untrained_shapes_come_after_them_with_their_counts_and_no_path() -> None:
    untrained = command("models", "--json").json[len(BUNDLED_MODELS) :]
    assert {model["kind"] for model in untrained} == {"untrained"}
    assert all(model["path"] is None and model["schema"] == 1 for model in untrained)
    assert {model["name"]: model["parameters"] for model in untrained} == {
        "untrained:gpt2": 124_439_808,
        "untrained:gpt2-medium": 354_823_168,
        "untrained:gpt2-large": 774_030_080,
        "untrained:gpt2-xl": 1_557_611_200,
        "untrained:gpt2-chapter": 163_037_184,
        "untrained:gpt2-book": 163_009_536,
        "untrained:transformer-2017": 37_858_304,
        "untrained:shakespeare": 114_560,
        "untrained:shakespeare-2017": 110_336,
    }


def test_the_text_says_what_tells_the_two_apart() -> None:
    outcome = command("models")
    assert (outcome.code, outcome.err) == (0, "")
    lines = outcome.out.splitlines()
    assert lines[0] == "shakespeare · 114,560 parameters · bundled · the default"
    assert lines[2] == "  pre-norm · learned positions · tanh GELU · untied head · all biases"
    assert "shakespeare-2017 · 110,336 parameters · bundled" in lines
    assert "  post-norm · sinusoidal positions · ReLU · untied head · all biases" in lines
    assert "untrained:PRESET · random numbers from a seed (--seed N, default 123)" in lines
    assert max(cell_len(line) for line in lines if not line.startswith("  /")) <= 100
    assert command("models", "--ascii").out.isascii()
    assert "\x1b" not in outcome.out
    assert "\x1b[1m" in command("models", "--color", "16").out
