"""`tui-gpt budget`: the texts' numbers in print and in JSON, at once, and what it refuses."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from commands import TUI_GPT, command, process
from conftest import TINY, write_tiny_model
from test_layers import imported_after

from tui_gpt.checkpoints.find import find_model
from tui_gpt.config import PRESETS
from tui_gpt.files import BUNDLED_MODELS

HEAVY = {"torch", "tiktoken", "numpy", "textual"}


def printed(*arguments: str) -> str:
    outcome = command("budget", *arguments)
    assert (outcome.code, outcome.err) == (0, "")
    assert all(len(line) <= 80 for line in outcome.out.splitlines())
    return outcome.out


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (
            ["gpt2-chapter"],
            "38,597,376 786,432 7,087,872 3,072 1,771,776 590,592 2,362,368 2,360,064 "
            "85,054,464 1,536 163,037,184 124,439,808 652.1|MB",
        ),  # K1, K4
        (
            ["gpt2-book"],
            "7,085,568 85,026,816 163,009,536 124,412,160 47.4|% 52.2|% 652,038,144 621.83|MiB "
            "4,722,432 2,360,064 66.6|% 1.9987",
        ),  # K2, K4, K7
        (["gpt2-xl", "--untied", "--no-qkv-bias"], "1,637,792,000 1,557,380,800 4.9|%"),  # K3
        (["gpt2-book"], "23.7|%"),  # K3
        (
            [],
            "497,759,232 497.8|MB 474.7|MiB 248.9|MB 237.4|MiB ≈84,934,656 ≈38,597,376 "
            "≈123,532,032 85,054,464 27,648 31.0|% 117M 124M 163M 66.6|%",
        ),  # K4, K5, K6, C21, C22
        (["gpt2-book", "--expansion", "2"], "+1,536 1.9987 n_inner|1,536"),  # K7
        (
            ["gpt2-xl"],
            "6.23|GB 5.80|GiB 768/12|=|64 1024/16|=|64 1280/20|=|64 1600/25|=|64 117M 345M 762M "
            "1542M 124M 355M 774M 1558M 124,439,808 354,823,168 774,030,080 1,557,611,200",
        ),  # K8, C19, C22
        (
            ["--batch", "2", "--context", "4"],
            "(2,|4) (2,|4,|768) (4,|768)|broadcast (2,|4,|50257) 12|rows|of|one|shape",
        ),  # K9
        (["--batch", "8"], "1,646,821,376 nobody|keeps|logits"),  # K9
    ],
)
def test_the_figures_of_the_texts_are_printed(arguments: list[str], wanted: str) -> None:
    shown = " ".join(printed(*arguments).split())
    for figure in wanted.split():
        assert figure.replace("|", " ") in shown


def test_the_total_of_xl_in_json() -> None:
    outcome = command("budget", "gpt2-xl", "--untied", "--no-qkv-bias", "--json")
    assert outcome.json["total"] == 1_637_792_000
    assert outcome.json["schema"] == 1
    assert outcome.out.isascii()


def test_the_json_of_gpt2() -> None:
    found = command("budget", "gpt2", "--json").json
    assert found["total"] == 124_439_808
    assert list(found["counts"].values()) == [
        124_439_808, 163_037_184, 123_653_376, 84_934_656, 163_037_184,
    ]  # fmt: skip
    assert (found["approx_VC"], found["per_block"], found["blocks"]) == (
        38_597_376,
        7_087_872,
        85_054_464,
    )
    assert found["config"] == PRESETS["gpt2"].to_dict()
    assert found["bytes"]["float32"] == 497_759_232
    assert found["bytes"]["float16"] == found["bytes"]["bfloat16"] == 248_879_616
    assert found["shapes"][0] == {
        "stage": "tokens",
        "shape": [1, 1024],
        "elements": 1024,
        "bytes": 8192,
        "broadcast": False,
    }
    assert len(found["shapes"]) == 12 * 15 + 6


def test_every_option_changes_its_field() -> None:
    found = command(
        "budget", "transformer-2017", "--n-layer", "3", "--n-embd", "96", "--n-head", "6",
        "--expansion", "2.51", "--vocab-size", "100", "--block-size", "50", "--untied",
        "--no-qkv-bias", "--positions", "learned", "--context", "20", "--batch", "3", "--json",
    ).json  # fmt: skip
    config = found["config"]
    assert config["n_inner"] == round(2.51 * 96) == 241
    assert [config[key] for key in ("n_layer", "n_embd", "n_head", "vocab_size", "block_size")] == [
        3, 96, 6, 100, 50,
    ]  # fmt: skip
    assert (config["tied"], config["bias"], config["qkv_bias"]) == (False, True, False)
    assert (config["positions"], config["norm"]) == ("learned", "post")
    assert found["name"] == "transformer-2017, changed"
    assert found["shapes"][1]["shape"] == [3, 20, 96]
    bare = command("budget", "--no-bias", "--n-inner", "7", "--json").json["config"]
    assert (bare["bias"], bare["qkv_bias"], bare["n_inner"]) == (False, False, 7)
    wide = command("budget", "--n-embd", "1536", "--json").json["config"]
    assert wide["n_inner"] == 6144  # the expansion stays


def test_two_shapes_side_by_side() -> None:
    shown = printed("gpt2", "--untied", "--compare", "gpt2")
    assert (
        " head                   38,597,376                     0            −38,597,376" in shown
    )
    assert "tied no, yes" in shown
    found = command("budget", "gpt2", "--compare", "gpt2-xl", "--json").json
    assert found["other"]["total"] == 1_557_611_200
    assert set(found["other"]) == set(found) - {"other"}


@pytest.mark.parametrize("name", BUNDLED_MODELS)
def test_a_bundled_model_is_a_preset_and_a_file(name: str) -> None:
    assert command("budget", name, "--json").json["config"] == find_model(name).config.to_dict()
    found = command("budget", "-m", name, "--json").json
    assert found["file"]["parameters"] == found["total"] == find_model(name).n_parameters
    assert "equal to the config's total" in printed("-m", name)


def test_a_folder_is_counted_from_its_tensors(tmp_path: Path) -> None:
    tied = replace(TINY, tied=True, positions="sinusoidal")
    model = write_tiny_model(tmp_path / "tiny", tied)
    shown = printed("-m", str(tmp_path / "tiny"))
    count = sum(parameter.numel() for parameter in model.parameters())
    assert f"with {count:,} parameters: equal to the config's total" in shown
    assert "the head is not stored: it is the token table" in shown
    assert "the position table (128 numbers) is a computed buffer, not stored" in shown
    changed = command("budget", "-m", str(tmp_path / "tiny"), "--untied", "--json").json
    assert "file" not in changed


def test_an_untrained_model_has_no_file() -> None:
    found = command("budget", "-m", "untrained:gpt2-book", "--json").json
    assert found["total"] == 163_009_536
    assert "file" not in found


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--n-embd", "770"], 1, "n_embd 770 does not divide into n_head 12"),
        (["--n-layer", "0"], 1, "n_layer is 0; it must be from 1 to 10,000"),
        (["--n-embd", "-5"], 1, "n_embd is -5"),
        (["--vocab-size", "99999999999"], 1, "99999999999; it must be from 1 to 2,147,483,647"),
        (["--expansion", "nan"], 1, "expansion is nan; it must be a finite number"),
        (["--expansion", "0"], 1, "expansion 0 of n_embd 768 leaves 0 hidden units"),
        (["--context", "2048"], 1, "context 2048 is longer than block_size 1024"),
        (["--batch", "0"], 1, "batch is 0"),
        (["--compare", "shakespeare", "--context", "100"], 1, "longer than block_size 64"),
        (["-m", "nowhere"], 1, "no model 'nowhere'"),
        (["nonsense"], 2, "no preset 'nonsense'; there are gpt2, "),
        (["--compare", "nonsense"], 2, "no preset 'nonsense'"),
        (["gpt2", "-m", "shakespeare"], 2, "not both"),
        (["--n-inner", "3", "--expansion", "2"], 2, "not both"),
        (["--no-bias", "--qkv-bias"], 2, "--no-bias drops the q k v biases too"),
        (["--n-layer", "many"], 2, "'many' is not a valid integer"),
    ],
)
def test_an_impossible_shape_is_one_line_and_no_output(
    arguments: list[str], code: int, words: str
) -> None:
    for extra in ([], ["--json"]):
        outcome = command("budget", *arguments, *extra)
        assert (outcome.code, outcome.out) == (code, "")
        assert words in outcome.err
        assert outcome.err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments", [["gpt2"], ["gpt2", "--json"], ["-m", "shakespeare"], ["--help"]]
)
def test_it_imports_nothing_heavy(arguments: list[str]) -> None:
    found = imported_after(
        f"import tui_gpt.cli; assert tui_gpt.cli.run({['budget', *arguments]!r}) == 0"
    )
    assert not found & HEAVY


def test_e05_it_takes_less_than_half_a_second_and_sixty_megabytes() -> None:
    measure = (
        "import resource, subprocess, sys\n"
        "subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)\n"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    for arguments in (["--help"], ["--version"], ["budget", "gpt2"], ["budget", "--json"]):
        seconds = []
        for _ in range(3):  # the best of three: the machine may be busy
            start = time.monotonic()
            done = subprocess.run([*TUI_GPT, *arguments], capture_output=True, check=True)
            seconds.append(time.monotonic() - start)
            assert done.stdout
        assert min(seconds) < 0.5
        found = subprocess.run(
            [sys.executable, "-c", measure, *TUI_GPT, *arguments],
            capture_output=True,
            check=True,
            text=True,
        )
        kilobytes = int(found.stdout) / (1024 if sys.platform == "darwin" else 1)
        assert kilobytes < 60_000


def test_ascii_and_colours_are_what_was_asked_for() -> None:
    assert printed("--ascii").isascii()
    assert "\x1b" not in process("budget").out
    assert "\x1b[" in process("budget", "--color", "16").out
