"""A folder's own vocabulary: read as its makers' library reads it, or refused by name."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from vocabularies import (
    BYTES,
    MERGES,
    added_token,
    copy_gpt2_vocabulary,
    small_ids,
    tokenizer_json,
    write_pair,
)

from tui_gpt.errors import DamagedModel, UnknownTokenId
from tui_gpt.records.tokens import Token, joined_text
from tui_gpt.tokenization.characters import CharacterTokenizer
from tui_gpt.tokenization.folder import folder_tokenizer
from tui_gpt.tokenization.gpt2 import GPT2Tokenizer
from tui_gpt.tokenization.tokenizer import Tokenizer
from tui_gpt.views.text import label

TEXT = "the inn, in the “thé” 👍\n\t <|endoftext|>"


def read(folder: Path, vocab_size: int = 300) -> Tokenizer:
    tokenizer, notices = folder_tokenizer(folder, vocab_size, or_gpt2=True)
    assert notices == ()
    assert tokenizer is not None
    return tokenizer


def refusal(folder: Path, vocab_size: int = 300) -> str:
    with pytest.raises(DamagedModel) as refused:
        folder_tokenizer(folder, vocab_size, or_gpt2=True)
    assert "\n" not in str(refused.value)
    return str(refused.value)


@pytest.fixture(scope="module")
def gpt2_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("gpt2") / "vocabulary"
    copy_gpt2_vocabulary(folder)
    return folder


def test_gpt2s_vocabulary_in_a_folder_is_gpt2s(gpt2_folder: Path, tmp_path: Path) -> None:
    packaged = GPT2Tokenizer()
    ids = json.loads((gpt2_folder / "vocab.json").read_text())
    lines = (gpt2_folder / "merges.txt").read_text("utf-8").split("\n")[1:-1]
    merges = [tuple(line.split(" ")) for line in lines]
    whole = tokenizer_json(ids, merges)  # type: ignore[arg-type]  # each line has two parts
    (tmp_path / "tokenizer.json").write_text(json.dumps(whole))
    for folder in (gpt2_folder, tmp_path):
        tokenizer = read(folder, 50257)
        assert tokenizer.encode("Hello world") == [15496, 995]  # case B01
        assert tokenizer.encode(TEXT) == packaged.encode(TEXT)
        assert tokenizer.vocab_size == 50257
        assert tokenizer.token(50256) == packaged.token(50256)


def test_ids_need_not_be_in_the_order_of_the_merges(tmp_path: Path) -> None:
    shifted = {"<pad>": 0, **small_ids(first=1)}
    write_pair(tmp_path, shifted)
    tokenizer = read(tmp_path)
    assert tokenizer.encode(" the in") == [shifted["Ġthe"], shifted["Ġ"], shifted["in"]]
    assert tokenizer.token(0).text == "<pad>"  # no merge builds it: the pattern cuts it
    assert tokenizer.notices("a <pad>") == ()  # nothing names it as a special token
    (tmp_path / "special_tokens_map.json").write_text('{"pad_token": "<pad>"}')
    assert read(tmp_path).notices("a <pad>") == (
        "<pad> was read as plain text, not as the special token",
    )


def test_older_files_write_a_merge_as_one_string(tmp_path: Path) -> None:
    whole = tokenizer_json(small_ids())
    whole["model"] = {
        "type": "BPE",
        "vocab": small_ids(),
        "merges": [" ".join(merge) for merge in MERGES],
    }
    (tmp_path / "tokenizer.json").write_text(json.dumps(whole))
    assert read(tmp_path).encode(" the") == [256 + 2]


def test_a_byte_order_mark_and_carriage_returns_change_nothing(tmp_path: Path) -> None:
    write_pair(tmp_path, small_ids())
    for name in ("vocab.json", "merges.txt"):
        raw = (tmp_path / name).read_bytes()
        mark = b"\xef\xbb\xbf" if name == "vocab.json" else b""
        (tmp_path / name).write_bytes(mark + raw.replace(b"\n", b"\r\n"))
    assert read(tmp_path).encode(" the") == [258]


def test_without_a_vocabulary_the_rows_of_the_table_decide(tmp_path: Path) -> None:
    assert folder_tokenizer(tmp_path, 50256, or_gpt2=True) == (None, ())
    assert folder_tokenizer(tmp_path, 50304, or_gpt2=False) == (None, ())
    tokenizer, (notice,) = folder_tokenizer(tmp_path, 50304, or_gpt2=True)
    assert isinstance(tokenizer, GPT2Tokenizer)
    assert "GPT-2's own vocabulary" in notice
    assert "50,304 rows" in notice


def test_characters_of_a_folder_are_its_vocabulary(tmp_path: Path) -> None:
    (tmp_path / "characters.json").write_text(CharacterTokenizer("abc").to_json())
    assert read(tmp_path, 3).encode("cab") == [2, 0, 1]
    assert "has ids up to 2 but the model's table has 2 rows" in refusal(tmp_path, 2)


@pytest.mark.parametrize(
    ("changed", "text", "pieces", "notice"),
    [
        ({"normalizer": {"type": "Lowercase"}}, "THE in", ["t", "he", " ", "in"], "'the in'"),
        (
            {
                "pre_tokenizer": {
                    "type": "ByteLevel",
                    "add_prefix_space": True,
                    "use_regex": True,
                    "trim_offsets": True,
                }
            },
            "the",
            [" the"],
            "puts a blank before every text",
        ),
        (
            {"normalizer": {"type": "NFC"}},
            "e\u0301",
            [b"\xc3", b"\xa9"],
            "composed form (NFC) first",
        ),
    ],
)
def test_what_a_tokenizer_changes_in_the_text_is_said(
    tmp_path: Path, changed: dict[str, object], text: str, pieces: list[object], notice: str
) -> None:
    whole = tokenizer_json(small_ids(), changed=changed)
    (tmp_path / "tokenizer.json").write_text(json.dumps(whole))
    tokenizer = read(tmp_path)
    raw = [tokenizer.token(i).bytes for i in tokenizer.encode(text)]
    assert raw == [p.encode() if isinstance(p, str) else p for p in pieces]
    (said,) = tokenizer.notices(text)
    assert notice in said


def test_byte_fallback_pieces_are_their_bytes(tmp_path: Path) -> None:
    """As Llama 2 has it: text with ▁ for a blank, <0xE4> for a byte no entry covers."""
    entries = ["<unk>", *(f"<0x{i:02X}>" for i in range(256)), "▁", "h", "i", "▁h", "▁hi"]
    whole = {
        "version": "1.0",
        "added_tokens": [added_token(0, "<unk>")],
        "normalizer": {
            "type": "Sequence",
            "normalizers": [
                {"type": "Prepend", "prepend": "▁"},
                {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
            ],
        },
        "pre_tokenizer": None,
        "post_processor": None,
        "decoder": {
            "type": "Sequence",
            "decoders": [
                {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
                {"type": "ByteFallback"},
                {"type": "Fuse"},
            ],
        },
        "model": {
            "type": "BPE",
            "unk_token": "<unk>",
            "fuse_unk": True,
            "byte_fallback": True,
            "vocab": {entry: i for i, entry in enumerate(entries)},
            "merges": [["▁", "h"], ["▁h", "i"]],
        },
    }
    (tmp_path / "tokenizer.json").write_text(json.dumps(whole))
    tokenizer = read(tmp_path)
    raw = [tokenizer.token(i).bytes for i in tokenizer.encode("hi日")]
    assert raw == [b" hi", b"\xe6", b"\x97", b"\xa5"]
    assert tokenizer.notices("hi日") == ("the tokenizer puts a blank before every text",)


def test_added_tokens_are_shown_by_name_and_rows_without_one_as_unused(tmp_path: Path) -> None:
    added = [added_token(260, "<|pad|>"), added_token(263, "été", special=False)]
    whole = tokenizer_json(small_ids(), changed={"added_tokens": added})
    (tmp_path / "tokenizer.json").write_text(json.dumps(whole))
    tokenizer = read(tmp_path)  # case A33
    assert [label(tokenizer.token(i)) for i in (260, 261, 263)] == [
        "<|pad|>",
        "<unused 261>",
        "été",
    ]
    with pytest.raises(UnknownTokenId, match="0…263"):
        tokenizer.token(264)


def test_added_tokens_stand_in_three_files_beside_a_pair(tmp_path: Path) -> None:
    write_pair(tmp_path, {**small_ids(), "PAD": 260})
    assert "no merge builds 'PAD', id 260" in refusal(tmp_path)
    (tmp_path / "special_tokens_map.json").write_text('{"pad_token": {"content": "PAD"}}')
    (tmp_path / "added_tokens.json").write_text('{"<sep>": 261}')
    decoder = {"added_tokens_decoder": {"262": {"content": "<cls>"}}}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(decoder))
    tokenizer = read(tmp_path)
    assert [tokenizer.token(i).text for i in (260, 261, 262)] == ["PAD", "<sep>", "<cls>"]


def test_an_added_token_without_a_row_is_left_out_and_said(tmp_path: Path) -> None:
    write_pair(tmp_path, small_ids())
    (tmp_path / "added_tokens.json").write_text('{"[PAD]": 260}')
    tokenizer, (notice,) = folder_tokenizer(tmp_path, 260, or_gpt2=True)
    assert notice == "added tokens without a row in the table of 260: '[PAD]' (260)"
    assert tokenizer is not None
    assert tokenizer.vocab_size == 260


def test_a_vocabulary_of_another_model_is_refused_with_both_numbers(tmp_path: Path) -> None:
    write_pair(tmp_path, small_ids())
    assert "has ids up to 259 but the model's table has 200 rows" in refusal(tmp_path, 200)


def test_two_descriptions_must_agree(tmp_path: Path) -> None:
    write_pair(tmp_path, small_ids())
    (tmp_path / "tokenizer.json").write_text(json.dumps(tokenizer_json(small_ids())))
    assert read(tmp_path).encode(" the") == [258]
    write_pair(tmp_path, small_ids(MERGES[:3]), MERGES[:3])
    assert "are different vocabularies" in refusal(tmp_path)


def broken(
    name: str, change: Callable[[bytes], bytes], says: str
) -> tuple[str, Callable[[bytes], bytes], str]:
    return name, change, says


@pytest.mark.parametrize(
    ("name", "change", "says"),
    [
        broken("vocab.json", lambda raw: raw[: len(raw) // 2], "it is no JSON"),  # case B02
        broken("vocab.json", lambda raw: b"<html>404</html>", "it is no JSON"),
        broken("vocab.json", lambda raw: b"", "it is no JSON"),
        broken("vocab.json", lambda raw: b"[" * 100_000, "it is no JSON"),
        broken("vocab.json", lambda raw: b"[]", "it is no JSON object"),
        broken("vocab.json", lambda raw: b"\xff\xfe" + raw, "it is no JSON"),
        broken("vocab.json", lambda raw: b"{}", "which the vocabulary lacks"),
        broken("vocab.json", lambda raw: raw.replace(b": 5,", b': "5",'), "'5' for an id"),
        broken("vocab.json", lambda raw: raw.replace(b": 5,", b": -5,"), "-5 for an id"),
        broken("vocab.json", lambda raw: raw.replace(b": 5,", b": 6,"), "share an id"),
        broken("merges.txt", lambda raw: raw[: len(raw) // 2], "line 2 is not two entries"),
        broken("merges.txt", lambda raw: raw[:-4], "no merge builds 'in', id 259"),
        broken("merges.txt", lambda raw: b"<html>\n404\n</html>", "line 1 is not two entries"),
        broken("merges.txt", lambda raw: b"", "no merge builds 'Ġt', id 256"),
        broken("merges.txt", lambda raw: raw + b"q q\n", "builds 'qq', which the vocabulary"),
        broken("merges.txt", lambda raw: raw + b"i  n\n", "line 6 is not two entries"),
        broken("merges.txt", lambda raw: b"\xff" + raw, "it is not UTF-8"),
    ],
)
def test_a_broken_vocabulary_is_refused_by_name(
    tmp_path: Path, name: str, change: Callable[[bytes], bytes], says: str
) -> None:
    write_pair(tmp_path, small_ids())
    path = tmp_path / name
    path.write_bytes(change(path.read_bytes()))
    said = refusal(tmp_path)
    assert says in said
    assert str(tmp_path) in said
    assert name in said


def test_half_a_pair_is_refused(tmp_path: Path) -> None:
    for name, other in (("vocab.json", "merges.txt"), ("merges.txt", "vocab.json")):
        folder = tmp_path / name
        write_pair(folder, small_ids())
        (folder / name).unlink()
        assert f"{folder / name} is missing; {other} alone is no vocabulary" in refusal(folder)


def test_a_vocabulary_without_every_byte_lists_what_it_cannot_read(tmp_path: Path) -> None:
    ids = small_ids()
    for char in BYTES[188:]:  # all that is no printable byte
        if char != "Ġ":
            del ids[char]
    write_pair(tmp_path, ids)
    tokenizer = read(tmp_path)
    assert tokenizer.encode(" the") == [258]
    (said,) = tokenizer.notices("a\nb")
    assert said == r"the tokenizer has no token for '\n': left out"


@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_merges_are_done_as_their_definition_says(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    built = ["a", "b", "c"]
    merges: list[tuple[str, str]] = []
    for _ in range(data.draw(st.integers(1, 7))):
        pair = (data.draw(st.sampled_from(built)), data.draw(st.sampled_from(built)))
        if "".join(pair) not in built:
            merges.append(pair)
            built.append("".join(pair))
    ids = small_ids(merges)
    folder = tmp_path_factory.mktemp("merges")
    write_pair(folder, ids, merges)
    text = data.draw(st.text("abc", max_size=30))
    assert read(folder).encode(text) == [ids[part] for part in merged(text, merges)]


def merged(text: str, merges: list[tuple[str, str]]) -> list[str]:
    """Merge as the definition says: again and again the first in the list, from the left."""
    parts = list(text)
    while True:
        there = [pair for pair in merges if pair in list(pairwise(parts))]
        if not there:
            return parts
        at = next(i for i in range(len(parts)) if tuple(parts[i : i + 2]) == there[0])
        parts[at : at + 2] = ["".join(there[0])]


def test_padded_rows_are_unused_and_join_to_nothing() -> None:
    token = Token(50300, b"", unused=True)  # case A17
    assert label(token) == "<unused 50300>"
    assert joined_text((token,)) == ""
    assert label(Token(5, b"")) == "<id 5>"
