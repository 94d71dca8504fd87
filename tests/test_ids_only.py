"""Models without a vocabulary take ids and show ids, in commands and in the explorer."""

from __future__ import annotations

import pytest
from commands import command
from explorer import Explorer
from terminal import ENTER
from vocabularies import write_gpt2_model

from tui_gpt.errors import NoTokenizer, NotTokenIds, UnknownTokenId
from tui_gpt.files import DEFAULT_PROMPT
from tui_gpt.session import Session

SAID = "this model has no tokenizer: a prompt is token ids, and ids are what is shown"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("ids") / "only"
    write_gpt2_model(folder, vocab_size=11)
    return str(folder)


def test_a_trace_of_ids_names_its_tokens_by_id(model: str) -> None:
    outcome = command("trace", "-m", model, "--ids", "1,2,10", "--format", "json")
    assert outcome.code == 0
    assert outcome.json["prompt"] == "1, 2, 10"
    assert outcome.json["notices"] == [SAID]
    assert [(one["id"], one["text"], one["bytes"]) for one in outcome.json["tokens"]] == [
        (1, None, ""),
        (2, None, ""),
        (10, None, ""),
    ]
    printed = command("trace", "-m", model, "--ids", "1,2,10").out
    assert "ids 1, 2, 10 · 3 tokens" in printed
    assert f"notice: {SAID}" in printed


def test_generation_goes_on_with_ids(model: str) -> None:
    outcome = command("generate", "-m", model, "--ids", "1,2", "-n", "2")
    assert outcome.code == 0
    assert outcome.out.rstrip().splitlines()[-1].startswith("<id 1><id 2><id ")


@pytest.mark.parametrize("name", ["trace", "generate"])
@pytest.mark.parametrize("prompt", [(), ("-p", "hello"), ("-p", "1,2")])
def test_a_text_is_refused_with_the_remedy(model: str, name: str, prompt: tuple[str, ...]) -> None:
    outcome = command(name, "-m", model, *prompt)
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err == (
        "tui-gpt: this model has no tokenizer, so it reads no text; give token ids (--ids 1,2,3)\n"
    )


@pytest.mark.parametrize(
    ("ids", "code", "said"),
    [
        ("11", 1, "token id 11 is not one of 0…10"),
        ("1,-1", 1, "token id -1 is not one of 0…10"),
        ("99999", 1, "token id 99999 is not one of 0…10"),
        ("abc", 2, "'abc' is no token id; give whole numbers, each one of 0…10"),
        ("1,2.0", 2, "'2.0' is no token id"),
        ("9" * 30, 2, "is no token id"),
        ("1_0", 2, "'1_0' is no token id"),
        ("", 1, "the prompt is empty"),
        (" , ", 1, "the prompt is empty"),
    ],
)
def test_ids_that_are_none_are_answered_with_the_range(
    model: str, ids: str, code: int, said: str
) -> None:
    for name in ("trace", "generate"):  # case B21
        outcome = command(name, "-m", model, "--ids", ids)
        assert (outcome.code, outcome.out, outcome.err.count("\n")) == (code, "", 1)
        assert said in outcome.err


def test_the_field_reads_ids_with_commas_or_blanks(model: str) -> None:
    session = Session.open(model)
    for typed in ("1, 2, 3", "1,2,3", " 1 2\n3 ", "1,,2,3,"):
        run = session.prepare_typed(typed)
        assert [token.id for token in run.tokens] == [1, 2, 3]
        assert run.prompt == "1, 2, 3"
        assert run.is_ids_only
    with pytest.raises(NotTokenIds, match="'ab'"):
        session.prepare_typed("1, ab")
    with pytest.raises(UnknownTokenId):
        session.prepare_typed("1, 11")
    with pytest.raises(NoTokenizer):
        session.prepare("1, 2")


def test_a_prompt_is_taken_over_by_its_text_or_by_its_ids(model: str) -> None:
    ids_only, text = Session.open(model), Session.open("shakespeare")
    by_ids = ids_only.prepare_ids((1, 2, 3))
    taken = text.adapt_run(by_ids)
    assert [token.id for token in taken.tokens] == [1, 2, 3]
    assert not taken.is_ids_only
    of_text = text.prepare(DEFAULT_PROMPT)
    assert text.adapt_run(of_text).prompt == DEFAULT_PROMPT
    started = ids_only.adapt_run(of_text)
    assert started.prompt == "0"
    assert started.notices[-1].endswith("it starts from id 0")
    assert [token.id for token in ids_only.adapt_run(taken).tokens] == [1, 2, 3]


def test_the_explorers_field_takes_ids_and_says_so(model: str) -> None:
    with Explorer("-m", model, "--ids", "1,2,3", size=(100, 24)) as explorer:
        assert "ids 1, 2, 3" in explorer.title
        assert SAID in explorer.text
        explorer.send("p")
        explorer.wait_for("Token ids, 0 to 10, with commas between")
        explorer.type("4, 99")
        explorer.send(ENTER)
        explorer.wait_for("token id 99 is not one of 0…10")
        explorer.type("\x15x")
        explorer.send(ENTER)
        explorer.wait_for("'x' is no token id")
        explorer.type("\x157, 8")
        explorer.send(ENTER)
        explorer.wait_for(lambda _: "ids 7, 8" in explorer.title)
