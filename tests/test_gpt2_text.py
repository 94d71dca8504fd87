"""Texts of every kind through the commands, read by GPT-2's vocabulary in a tiny folder."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import torch
from commands import TUI_GPT, command, process
from safetensors.torch import load_file, save_file
from vocabularies import copy_gpt2_vocabulary, write_gpt2_model

NO_NETWORK = {"HF_HUB_OFFLINE": "1", "TIKTOKEN_CACHE_DIR": "/nowhere", "HF_HOME": "/nowhere"}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("bpe") / "gpt2"
    write_gpt2_model(folder, vocab_size=50257)
    copy_gpt2_vocabulary(folder)
    return str(folder)


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder without a vocabulary, its table padded."""
    folder = tmp_path_factory.mktemp("bpe") / "padded"
    write_gpt2_model(folder, vocab_size=50304)
    return str(folder)


TEXTS = [
    ("B01", "Hello world", [15496, 995]),
    ("B03", "a<|endoftext|>b", [64, 27, 91, 437, 1659, 5239, 91, 29, 65]),
    ("B05", "Hello world ", [15496, 995, 220]),
    ("B05", "   ", [220, 220, 220]),
    ("B07", "👍", [41840, 235]),
    ("B07", "∩", [24861, 102]),
    ("B09", "日本", [33768, 98, 17312, 105]),
    ("B12", "\x1b[31mred", [215, 58, 3132, 76, 445]),
    ("B14", "[b]x[/b]", [58, 65, 60, 87, 13412, 65, 60]),
    ("B16", "a\r\nb", [64, 201, 198, 65]),
    ("B16", "a\nb", [64, 198, 65]),
    ("B16", "a\tb", [64, 197, 65]),
]


@pytest.mark.parametrize(("case", "text", "ids"), TEXTS)
def test_a_text_becomes_these_ids(model: str, case: str, text: str, ids: list[int]) -> None:
    outcome = command("trace", "-m", model, "-p", text, "--format", "json")
    assert outcome.code == 0, case
    traced = outcome.json
    assert [token["id"] for token in traced["tokens"]] == ids, case
    assert b"".join(bytes.fromhex(token["bytes"]) for token in traced["tokens"]) == text.encode()
    assert traced["prompt"] == text
    said = " ".join(traced["notices"])
    assert ("<|endoftext|> was read as plain text" in said) == (case == "B03")
    for name in ("trace", "generate"):
        printed = command(name, "-m", model, "-p", text)
        assert printed.code == 0, case
        assert "\x1b[31m" not in printed.out
        assert "\x1b]" not in printed.out


@pytest.mark.parametrize(
    "text", ["\x1b[2J", "\x1b]0;PWNED\x07", "\x1b]52;c;AAAA\x07", "\x1b]0;no end", "[/]", "[/path]"]
)
def test_sequences_and_brackets_stay_text(model: str, text: str) -> None:
    for name in ("trace", "generate"):  # cases B12, B14
        printed = command("--color", "none", name, "-m", model, "-p", text)
        assert (printed.code, printed.err) == (0, "")
        assert "\x1b" not in printed.out
        assert "\x07" not in printed.out
        assert (text if "[/" in text else "␛") in printed.out


def test_bytes_that_are_no_utf8_are_replaced_and_that_is_said(model: str) -> None:
    done = subprocess.run(  # case B11
        [*map(str.encode, (*TUI_GPT, "trace", "-m", model, "--format", "json", "-p")), b"caf\xe9"],
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert b'"id": 66' in done.stdout
    assert b'"id": 4210' in done.stdout
    assert b"not UTF-8" in done.stdout


def test_an_empty_prompt_asks_for_text(model: str) -> None:
    for name in ("trace", "generate"):  # case B04
        outcome = command(name, "-m", model, "-p", "")
        assert (outcome.code, outcome.out) == (1, "")
        assert "the prompt is empty; type at least one character" in outcome.err


def test_seventeen_tokens_into_sixteen_positions(model: str) -> None:
    text = "a" + " a" * 16  # case B17
    outcome = command("trace", "-m", model, "-p", text)
    assert (outcome.code, outcome.out) == (1, "")
    assert "17 tokens but this model reads 16" in outcome.err
    cropped = command("trace", "-m", model, "-p", text, "--crop", "--format", "json").json
    assert len(cropped["tokens"]) == 16
    assert any("first 1 were cut" in notice for notice in cropped["notices"])


def test_a_prompt_file_keeps_its_line_ends(model: str, tmp_path: Path) -> None:
    (tmp_path / "prompt.txt").write_bytes(b"a\r\nb")  # case B16
    arguments = ("trace", "-m", model, "--prompt-file", str(tmp_path / "prompt.txt"))
    tokens = command(*arguments, "--format", "json").json["tokens"]
    assert [token["id"] for token in tokens] == [64, 201, 198, 65]
    assert r"a\r\nb" in command(*arguments).out


@pytest.mark.parametrize("token_id", ["50257", "-1", "99999", "abc"])
def test_an_id_out_of_range_is_answered_with_the_range(model: str, token_id: str) -> None:
    for name in ("trace", "generate"):  # case B21
        outcome = command(name, "-m", model, "--ids", token_id)
        assert outcome.code in (1, 2)
        assert outcome.out == ""
        assert "one of 0…50256" in outcome.err


def test_neither_network_nor_cache_is_needed(bare: str) -> None:
    done = process(  # case B01: GPT-2's vocabulary comes from the package
        "trace", "-m", bare, "-p", "Hello world", "--format", "json", environ=NO_NETWORK
    )
    assert done.code == 0, done.err
    assert '"id": 15496' in done.out
    assert "GPT-2's own vocabulary" in done.out


def test_a_padded_row_that_wins_is_shown_as_unused(tmp_path: Path, bare: str) -> None:
    tensors = load_file(Path(bare) / "model.safetensors")
    tensors["ln_f.bias"] = torch.tensor([100.0, 0, 0, 0])
    tensors["wte.weight"][50300] = torch.tensor([100.0, 0, 0, 0])
    write_gpt2_model(tmp_path, vocab_size=50304)
    save_file(tensors, tmp_path / "model.safetensors", metadata={"format": "pt"})
    outcome = command("generate", "-m", str(tmp_path), "-p", "a", "-n", "3")  # case A17
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.rstrip().endswith("a<unused 50300><unused 50300><unused 50300>")
    step = command("generate", "-m", str(tmp_path), "--ids", "50300", "-n", "1", "--json").json
    assert (step["id"], step["text"], step["bytes"]) == (50300, None, "")


@pytest.mark.parametrize("name", ["vocab.json", "merges.txt"])
@pytest.mark.parametrize("page", [True, False])
def test_a_broken_vocabulary_is_one_line_that_names_it(
    tmp_path: Path, name: str, page: bool
) -> None:
    write_gpt2_model(tmp_path, vocab_size=50257)
    copy_gpt2_vocabulary(tmp_path)
    raw = (tmp_path / name).read_bytes()  # case B02
    (tmp_path / name).write_bytes(b"<html>404</html>" if page else raw[: len(raw) // 2])
    outcome = command("trace", "-m", str(tmp_path), "-p", "a")
    assert (outcome.code, outcome.out, outcome.err.count("\n")) == (1, "", 1)
    assert name in outcome.err
