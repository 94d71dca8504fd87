"""Text to ids and back: what GPT-2 reads, what a character model reads, byte for byte."""

from __future__ import annotations

import json
import shutil
import socket
from pathlib import Path

import pytest
from conftest import CHARACTERS
from hypothesis import given
from hypothesis import strategies as st

from tui_gpt.errors import DamagedModel, UnknownCharacters, UnknownTokenId
from tui_gpt.files import assets
from tui_gpt.records.tokens import Token, characters_of, joined_text
from tui_gpt.tokenization.characters import CharacterTokenizer
from tui_gpt.tokenization.gpt2 import GPT2_SHA256, GPT2Tokenizer

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
"""Anything that UTF-8 can hold."""


@pytest.fixture(scope="module")
def gpt2() -> GPT2Tokenizer:
    return GPT2Tokenizer()


def tokens_of(tokenizer: GPT2Tokenizer, text: str) -> tuple[Token, ...]:
    return tuple(tokenizer.token(token_id) for token_id in tokenizer.encode(text))


@pytest.mark.parametrize(
    ("case", "text", "ids"),
    [
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
        ("R1", "The cat sat on", [464, 3797, 3332, 319]),
        ("R2", "Hello, I am", [15496, 11, 314, 716]),
    ],
)
def test_gpt2_cuts_a_text_into_these_ids(
    gpt2: GPT2Tokenizer, case: str, text: str, ids: list[int]
) -> None:
    assert gpt2.encode(text) == ids, case
    assert joined_text(tokens_of(gpt2, text)) == text, case


def test_gpt2_needs_neither_network_nor_cache(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def no_network(*_: object, **__: object) -> None:
        raise AssertionError("a connection was attempted")

    nowhere = tmp_path / "file"  # nothing can be cached below a file, whoever asks
    nowhere.write_text("")
    monkeypatch.setattr(socket.socket, "connect", no_network)
    monkeypatch.setattr(socket, "getaddrinfo", no_network)
    for name in ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR", "HOME", "XDG_CACHE_HOME", "TMPDIR"):
        monkeypatch.setenv(name, str(nowhere / "cache"))
    assert GPT2Tokenizer().encode("Hello world") == [15496, 995]  # case B01


@pytest.mark.parametrize("name", GPT2_SHA256)
def test_a_changed_vocabulary_file_is_refused_by_name(tmp_path: Path, name: str) -> None:
    for half in (False, True):  # case B02: an HTML page, then half a file
        folder = tmp_path / f"half-{half}"
        shutil.copytree(assets() / "gpt2-bpe", folder)
        whole = (folder / name).read_bytes()
        (folder / name).write_bytes(whole[: len(whole) // 2] if half else b"<html>404</html>")
        with pytest.raises(DamagedModel) as refused:
            GPT2Tokenizer(folder).encode("a")
        assert f"{folder / name} is damaged: SHA-256" in str(refused.value)
        assert GPT2_SHA256[name][:12] in str(refused.value)
        assert "install tui-gpt again" in str(refused.value)


def test_a_missing_vocabulary_file_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(DamagedModel, match=r"cannot read .*vocab\.bpe: No such file"):
        GPT2Tokenizer(tmp_path).encode("a")


@given(text=TEXT)
def test_gpt2_gives_every_text_back_byte_for_byte(gpt2: GPT2Tokenizer, text: str) -> None:
    tokens = tokens_of(gpt2, text)
    assert b"".join(token.bytes for token in tokens) == text.encode("utf-8")
    assert joined_text(tokens) == text


@given(text=TEXT)
def test_groups_of_tokens_are_whole_characters_and_leave_none_out(
    gpt2: GPT2Tokenizer, text: str
) -> None:
    tokens = tokens_of(gpt2, text)
    groups = characters_of(tokens)
    assert [position for group in groups for position in range(*group)] == list(range(len(tokens)))
    assert "".join(joined_text(tokens[first:end]) for first, end in groups) == text


def test_gpt2_knows_50257_ids_and_344_of_them_are_no_text_by_themselves(
    gpt2: GPT2Tokenizer,
) -> None:
    assert gpt2.vocab_size == 50_257
    alone = [gpt2.token(i).text for i in range(50_256)]
    assert sum(text is None for text in alone) == 344  # case B07
    assert gpt2.token(50_256).text == "<|endoftext|>"


@pytest.mark.parametrize("token_id", [-1, 50_257, 99_999])
def test_an_id_outside_the_vocabulary_is_answered_with_the_range(
    gpt2: GPT2Tokenizer, token_id: int
) -> None:
    with pytest.raises(UnknownTokenId, match=f"token id {token_id} is not one of 0…50256"):
        gpt2.token(token_id)  # case B21


def test_the_name_of_a_special_token_is_plain_text_and_that_is_said(gpt2: GPT2Tokenizer) -> None:
    (notice,) = gpt2.notices("a<|endoftext|>b")  # case B03
    assert notice == "<|endoftext|> was read as plain text, not as the special token"
    assert gpt2.notices("ab") == ()


def test_pieces_of_a_character_are_bytes_and_only_together_text(gpt2: GPT2Tokenizer) -> None:
    first, second = tokens_of(gpt2, "👍")  # case B07
    assert (first.bytes, second.bytes) == (b"\xf0\x9f\x91", b"\x8d")
    assert (first.text, second.text) == (None, None)
    assert characters_of((first, second)) == ((0, 2),)
    assert joined_text((first,)) == r"\xf0\x9f\x91"


def test_a_piece_without_its_partner_stands_alone(gpt2: GPT2Tokenizer) -> None:
    a = Token(64, b"a")
    piece = Token(41840, b"\xf0\x9f\x91")
    assert characters_of((piece, a, piece)) == ((0, 1), (1, 2), (2, 3))
    assert joined_text((piece, a)) == r"\xf0\x9f\x91a"
    assert characters_of(()) == ()


def test_a_character_is_a_token() -> None:
    tokenizer = CharacterTokenizer(CHARACTERS)
    ids = tokenizer.encode("bad egg\n")
    assert ids == [3, 2, 5, 1, 6, 8, 8, 0]
    assert joined_text(tokenizer.token(i) for i in ids) == "bad egg\n"
    assert tokenizer.encode("") == []
    assert tokenizer.encode("   ") == [1, 1, 1]  # case B05: nothing is stripped


def test_every_character_the_model_never_saw_is_listed_with_its_position() -> None:
    with pytest.raises(UnknownCharacters) as refused:  # case B19
        CharacterTokenizer(CHARACTERS).encode("aébc∩d🙂é")
    assert refused.value.found == ((1, "é"), (4, "∩"), (6, "🙂"), (7, "é"))
    said = str(refused.value)
    assert said.startswith("4 characters this model never saw (it knows 11): 'é' at 1, '∩' at 4, ")
    assert "remove or replace them" in said


def test_a_carriage_return_is_a_character_of_its_own() -> None:
    with pytest.raises(UnknownCharacters, match=r"'\\r' at 1"):  # case B16
        CharacterTokenizer(CHARACTERS).encode("a\r\nb")


def test_half_a_surrogate_pair_is_an_unknown_character() -> None:
    with pytest.raises(UnknownCharacters, match=r"'\\udce9' at 3"):
        CharacterTokenizer(CHARACTERS).encode("bad\udce9")


def test_a_character_vocabulary_survives_its_file(tmp_path: Path) -> None:
    file = tmp_path / "characters.json"
    characters = "\n\x1b é∩🙂"
    file.write_text(CharacterTokenizer(characters).to_json(), "ascii")
    assert CharacterTokenizer.from_file(file).characters == tuple(characters)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[",
        "[" * 100_000,
        "[]",
        "{}",
        json.dumps({"characters": {}}),
        json.dumps({"characters": []}),
        json.dumps({"characters": ["a", "bc"]}),
        json.dumps({"characters": ["a", 7]}),
        json.dumps({"characters": ["a", "b", "a"]}),
        json.dumps({"characters": ["a", "\ud83d"]}),
    ],
)
def test_a_damaged_character_vocabulary_is_refused_by_name(tmp_path: Path, content: str) -> None:
    file = tmp_path / "characters.json"
    file.write_text(content)
    with pytest.raises(DamagedModel, match="is damaged: expected") as refused:
        CharacterTokenizer.from_file(file)
    assert str(file) in str(refused.value)


def test_an_id_outside_a_character_vocabulary_is_answered_with_the_range() -> None:
    for token_id in (-1, 11):
        with pytest.raises(UnknownTokenId, match="is not one of 0…10"):
            CharacterTokenizer(CHARACTERS).token(token_id)
