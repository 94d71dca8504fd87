"""Models drawn from a seed: what two texts print of theirs, to the token, and plain refusals."""

from __future__ import annotations

import gc
import json
import math
import subprocess
import sys
from itertools import islice
from pathlib import Path

import pytest
import torch
from commands import command

from tui_gpt.checkpoints.find import find_model, untrained_presets
from tui_gpt.checkpoints.memory_check import check_memory
from tui_gpt.checkpoints.weights import load_weights
from tui_gpt.errors import NotEnoughMemory, NoTokenizer, UnknownModel
from tui_gpt.model.gpt import GPT
from tui_gpt.session import Session

SMALL = "untrained:shakespeare"


def steps(model: str, prompt: str, count: int) -> list[dict[str, object]]:
    """Take greedy steps by the command, and give its memory back."""
    arguments = ("generate", "-m", model, "-p", prompt, "-n", str(count), "--json")
    outcome = command(*arguments)
    assert (outcome.code, outcome.err) == (0, "")
    gc.collect()
    return [json.loads(line) for line in outcome.out.splitlines()]


def test_the_book_model_writes_what_the_text_prints_to_the_token() -> None:
    written = steps("untrained:gpt2-book", "Hello, I am", 6)
    assert [step["id"] for step in written] == [27018, 24086, 47843, 30961, 42348, 7267]
    assert "".join(str(step["text"]) for step in written) == " Featureiman Byeswickattribute argue"
    assert all(step["argmax_logits"] == step["argmax_probs"] == step["id"] for step in written)


def test_the_chapter_model_writes_what_the_text_prints_to_the_token() -> None:
    session = Session.open("untrained:gpt2-chapter")  # one model for all three prompts
    ids = [464, 3797, 3332, 319]
    assert [token.id for token in session.prepare("The cat sat on").tokens] == ids
    assert session.tokenizer.encode("A small model learns") == [32, 1402, 2746, 22974]
    stepper = session.stepper()
    first = next(stepper.steps(ids))
    assert first.chosen.prob == pytest.approx(0.000166, abs=5e-7)
    assert first.ranking.entropy == pytest.approx(10.67, abs=0.005)
    assert round(math.log(50257), 2) == 10.82
    expected = {
        "The Time Traveller": "14196 17683 4757 14196 17683 37278 5180 8363 27055 23026 6219 4719",
        "Attention is": "41432 24292 24292 24292 24292 40574 24292 24292 50252 24292 24292 24292",
    }
    for prompt, listed in expected.items():
        tokens = session.prepare(prompt).tokens
        written = list(islice(stepper.steps([token.id for token in tokens]), 12))
        assert [step.token.id for step in written] == [int(part) for part in listed.split()]
        assert all(step.argmax_logits == step.argmax_probs == step.token.id for step in written)
    assert session.token(17683).text is None  # half of a character, and never a replacement
    del session, stepper
    gc.collect()


def test_the_command_writes_what_the_chapter_prints() -> None:
    """R1, R3."""
    written = steps("untrained:gpt2-chapter", "Attention is", 12)
    listed = "41432 24292 24292 24292 24292 40574 24292 24292 50252 24292 24292 24292"
    assert [step["id"] for step in written] == [int(part) for part in listed.split()]
    assert all(step["argmax_logits"] == step["argmax_probs"] == step["id"] for step in written)


def test_the_same_seed_gives_the_same_numbers_and_another_gives_others() -> None:
    first, again, other = (
        load_weights(find_model(name)) for name in (SMALL, SMALL, f"{SMALL} seed 7")
    )
    assert same(first, again)
    assert not same(first, other)


def same(first: GPT, second: GPT) -> bool:
    pairs = zip(first.parameters(), second.parameters(), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


def test_drawing_leaves_torchs_own_numbers_as_they_were() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    load_weights(find_model(SMALL))
    assert torch.equal(torch.rand(3), expected)


def test_every_matrix_spreads_by_a_fiftieth_and_every_bias_is_nothing() -> None:
    model = load_weights(find_model(SMALL))
    for name, parameter in model.named_parameters():
        if parameter.dim() > 1:
            assert float(parameter.std()) == pytest.approx(0.02, rel=0.05), name
            assert abs(float(parameter.mean())) < 0.001, name
        else:
            expected = 1.0 if ".ln_" in name or name == "ln_f.weight" else 0.0
            assert set(parameter.tolist()) == {expected if name.endswith("weight") else 0.0}, name
    assert not any(parameter.requires_grad for parameter in model.parameters())


def test_q_k_and_v_are_three_parts_of_one_drawing() -> None:
    model = load_weights(find_model(SMALL))
    width, vocab = model.config.n_embd, model.config.vocab_size
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(123)
        GPT(model.config)  # its first weights use numbers up
        torch.empty(vocab, width).normal_(std=0.02)
        torch.empty(model.config.block_size, width).normal_(std=0.02)
        fused = torch.empty(3 * width, width).normal_(std=0.02)
    drawn = torch.cat([model.get_parameter(f"h.0.attn.{part}.weight") for part in "qkv"])
    assert torch.equal(drawn, fused)


@pytest.mark.parametrize("preset", untrained_presets())
def test_every_preset_is_found_at_once_with_its_shape(preset: str) -> None:
    source = find_model(f"untrained:{preset}")
    assert (source.kind, source.path) == ("untrained", None)
    assert source.name == f"untrained:{preset}"


def test_finding_one_imports_no_torch() -> None:
    probe = (
        "import sys; from tui_gpt.session import Session;"
        "Session.open('untrained:gpt2'); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", probe]).returncode == 0


@pytest.mark.parametrize("name", ["untrained:", "untrained:gpt3", "untrained:gpt2 seed x"])
def test_a_preset_that_is_none_is_answered_with_those_there_are(name: str) -> None:
    with pytest.raises(UnknownModel, match="untrained:"):
        find_model(name)


def test_a_seed_belongs_to_the_name_unless_it_is_the_usual_one() -> None:
    assert find_model(f"{SMALL} seed 123").name == SMALL
    assert find_model(f"{SMALL} seed 7").name == f"{SMALL} seed 7"
    traced = command("trace", "-m", SMALL, "--seed", "7", "-p", "a", "--format", "json").json
    assert traced["model"]["name"] == f"{SMALL} seed 7"
    assert traced["model"]["source"] == "untrained"


def test_a_seed_for_a_model_that_has_weights_is_refused() -> None:
    outcome = command("trace", "--seed", "7", "-p", "a")
    assert (outcome.code, outcome.out) == (2, "")
    assert "--seed 7 draws the weights of untrained:PRESET, and shakespeare has its own" in (
        outcome.err
    )


def test_a_model_without_a_vocabulary_takes_ids_and_shows_them() -> None:
    session = Session.open("untrained:transformer-2017")
    with pytest.raises(NoTokenizer, match="--ids"):
        session.prepare("To be")
    assert session.prepare_ids((1, 36_999)).tokens[1].bytes == b""
    outcome = command("trace", "-m", "untrained:transformer-2017", "-p", "To be")
    assert (outcome.code, outcome.out) == (1, "")
    assert "no tokenizer" in outcome.err


def test_what_does_not_fit_into_memory_is_refused_with_both_numbers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = "MemTotal:  9 kB\nMemAvailable:  1000000 kB\n"
    monkeypatch.setattr(Path, "read_text", lambda self: told)
    with pytest.raises(NotEnoughMemory, match=r"needs 6\.2 GB .* 1\.0 GB are free"):
        check_memory("untrained:gpt2-xl", 4 * 1_557_611_200)


def test_a_recording_of_one_leads_back_to_the_same_numbers(tmp_path: Path) -> None:
    from tui_gpt.records.recording import Recording
    from tui_gpt.session import recorded_session

    path = tmp_path / "pass.safetensors"
    assert command("trace", "-m", SMALL, "--seed", "7", "-o", str(path)).code == 0
    session = recorded_session(Recording(path))
    assert session is not None
    assert session.source.name == f"{SMALL} seed 7"
