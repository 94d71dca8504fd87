"""Which tokenizer belongs to a model's folder, and why.

In this order:

    characters.json             one token a character, as our own folders have it
    tokenizer.json              where it does what GPT-2's does: bytes, its pattern, merges
    vocab.json + merges.txt     the same in two files
    none of them                GPT-2's own, if the table has a row for each of its ids

Two descriptions in one folder must agree. Where a tokenizer.json does something else with text,
there is no tokenizer, since other ids than the model was trained on would be shown as its own.
A file that is damaged refuses the model, and the message says how to go on without it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tui_gpt.errors import DamagedModel
from tui_gpt.files import read_regular, regular_size
from tui_gpt.tokenization.byte_pairs import (
    END_OF_TEXT,
    BytePairTokenizer,
    Vocabulary,
    build_vocabulary,
)
from tui_gpt.tokenization.tokenizer import (
    GPT2_VOCABULARY,
    CharacterTokenizer,
    GPT2Tokenizer,
    Tokenizer,
)

CHARACTERS, TOKENIZER, VOCAB, MERGES = (
    "characters.json",
    "tokenizer.json",
    "vocab.json",
    "merges.txt",
)

_SETTINGS, _ADDED, _SPECIAL = (
    "tokenizer_config.json",
    "added_tokens.json",
    "special_tokens_map.json",
)
"""What may stand beside vocab.json and merges.txt, and name added tokens."""

_LARGEST = 64_000_000
"""Bytes of a vocabulary file; GPT-2's are 1.0 and 3.6 million."""


@dataclass(frozen=True, slots=True)
class _Found:
    """What the files say, not yet held against each other."""

    ids: dict[str, int]
    merges: list[tuple[str, str]]
    added: dict[str, int]
    other: str = ""
    """What a tokenizer.json does that GPT-2's does not; then there is no tokenizer."""


def folder_tokenizer(folder: Path, vocab_size: int) -> tuple[Tokenizer | None, tuple[str, ...]]:
    """Find the tokenizer of a folder.

    Args:
        folder: Where the weights are.
        vocab_size: Rows of the model's token table.

    Returns:
        The tokenizer, or None where there are only ids; and what a person should know of it.

    Raises:
        DamagedModel: A vocabulary file is there and not usable, or has ids that the table has
            no row for.
    """
    if _is_there(folder / CHARACTERS):
        characters = CharacterTokenizer.from_file(folder / CHARACTERS)
        _check_rows(folder / CHARACTERS, characters.vocab_size - 1, vocab_size)
        return characters, ()
    whole = _read_tokenizer(folder) if _is_there(folder / TOKENIZER) else None
    pair = _read_pair(folder, needed=whole is None)
    found = whole or pair
    if found is None:
        return _packaged(vocab_size)
    name = TOKENIZER if whole else f"{VOCAB} and {MERGES}"
    if found.other:
        return None, (f"{name} {found.other}, so this model takes token ids only (--ids)",)
    where = str(folder / TOKENIZER) if whole else f"{folder / VOCAB} and {MERGES}"
    if whole and pair and (whole.merges != pair.merges or not _same_ids(whole, pair)):
        raise DamagedModel(
            f"{folder / TOKENIZER} and {VOCAB} with {MERGES} beside it are different "
            "vocabularies; remove what does not belong to the model"
        )
    vocabulary = build_vocabulary(found.ids, found.merges, found.added, where=where)
    return _fitted(vocabulary, vocab_size, where)


def _packaged(vocab_size: int) -> tuple[Tokenizer | None, tuple[str, ...]]:
    """Decide for a folder without any vocabulary."""
    if vocab_size < GPT2_VOCABULARY:
        return None, ()  # `IdsOnly` itself says so, with every prompt
    return GPT2Tokenizer(), (
        "tokenizer: GPT-2's own vocabulary, from the package, since the folder has none and the "
        f"table has {vocab_size:,} rows",
    )


def _fitted(
    vocabulary: Vocabulary, vocab_size: int, where: str
) -> tuple[Tokenizer, tuple[str, ...]]:
    """Hold a vocabulary against the rows of the table; added tokens without a row are left out."""
    _check_rows(where, max(vocabulary.ids, default=-1), vocab_size)
    kept = {i: token for i, token in vocabulary.added.items() if i < vocab_size}
    notices = []
    if left_out := [f"{token!r} ({i})" for i, token in vocabulary.added.items() if i not in kept]:
        notices.append(
            f"added tokens without a row in the table of {vocab_size:,}: {', '.join(left_out)}"
        )
    usable = Vocabulary(vocabulary.pieces, vocabulary.ids, kept)
    return BytePairTokenizer(lambda: usable), tuple(notices)


def _check_rows(where: object, highest: int, vocab_size: int) -> None:
    if highest >= vocab_size:
        raise DamagedModel(
            f"{where} has ids up to {highest} but the model's table has {vocab_size} rows; "
            "this vocabulary belongs to another model"
        )


def _same_ids(one: _Found, other: _Found) -> bool:
    """Compare the ids of two descriptions; either may leave added tokens out."""
    first, second = {**one.ids, **one.added}, {**other.ids, **other.added}
    return all(second.get(entry, i) == i for entry, i in first.items()) and all(
        entry in first or entry in other.added or entry == END_OF_TEXT for entry in second
    )


# tokenizer.json --------------------------------------------------------------------------------


def _read_tokenizer(folder: Path) -> _Found:
    """Read `tokenizer.json`, of which only GPT-2's kind can be used."""
    path = folder / TOKENIZER
    raw = _read_object(path)
    if other := _unlike_gpt2(raw):
        return _Found({}, [], {}, other)
    try:
        model = raw["model"]
        merges = [_pair(merge) for merge in model["merges"]]
        added = {str(token["content"]): token["id"] for token in raw.get("added_tokens") or []}
    except (KeyError, TypeError, ValueError) as error:
        raise _damaged(path, "its merges or added tokens cannot be read") from error
    return _Found(_checked_ids(path, model.get("vocab")), merges, _checked_ids(path, added))


def _unlike_gpt2(raw: Mapping[str, Any]) -> str:
    """Say what this tokenizer does with text that GPT-2's does not; nothing if it is alike."""
    model, cut = _object(raw.get("model")), _object(raw.get("pre_tokenizer"))
    if model.get("type", "BPE") != "BPE" or "merges" not in model:
        return f"is of kind {model.get('type')!r} and not GPT-2's byte pairs"
    if raw.get("normalizer") is not None:
        return f"changes text first ({_object(raw['normalizer']).get('type')!r})"
    if cut.get("type") != "ByteLevel" or not cut.get("use_regex", True):
        return f"cuts text by another rule ({cut.get('type')!r}) than GPT-2's"
    if cut.get("add_prefix_space", True):
        return "puts a blank before every text"
    if _object(raw.get("decoder")).get("type") != "ByteLevel":
        return "writes its entries in another alphabet than GPT-2's"
    for key in ("dropout", "continuing_subword_prefix", "end_of_word_suffix", "byte_fallback"):
        if model.get(key):
            return f"merges by another rule ({key}) than GPT-2's"
    return ""


def _pair(merge: object) -> tuple[str, str]:
    """Read one merge: `"a b"` in older files, `["a", "b"]` in newer ones."""
    parts = merge.split(" ") if isinstance(merge, str) else merge
    if not isinstance(parts, list) or len(parts) != 2:
        raise ValueError(merge)
    left, right = parts
    if not (isinstance(left, str) and isinstance(right, str) and left and right):
        raise ValueError(merge)
    return left, right


# vocab.json and merges.txt ---------------------------------------------------------------------


def _read_pair(folder: Path, *, needed: bool) -> _Found | None:
    """Read `vocab.json` and `merges.txt`; one of them alone is no vocabulary.

    Args:
        folder: Where they may be.
        needed: There is no other vocabulary here.
    """
    there = [name for name in (VOCAB, MERGES) if _is_there(folder / name)]
    if len(there) < 2:
        if there and needed:
            missing = MERGES if there == [VOCAB] else VOCAB
            raise DamagedModel(
                f"{folder / missing} is missing; {there[0]} alone is no vocabulary: add it, or "
                f"remove {there[0]} to open the model without"
            )
        return None
    ids = _checked_ids(folder / VOCAB, _read_object(folder / VOCAB))
    merges = _read_merges(folder / MERGES)
    settings = _optional(folder / _SETTINGS)
    other = "put a blank before every text" if settings.get("add_prefix_space") is True else ""
    return _Found(ids, merges, _named_tokens(folder, ids, settings), other)


def _read_merges(path: Path) -> list[tuple[str, str]]:
    """Read a merge a line, below a line that names the version."""
    try:
        lines = _read(path).decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise _damaged(path, "it is not UTF-8") from error
    first = 1 if lines[0].startswith("#version") else 0
    merges = []
    for number, line in enumerate(lines[first:], first + 1):
        if not line.strip("\r"):
            continue
        left, _, right = line.rstrip("\r").partition(" ")
        if not left or not right or " " in right:
            raise _damaged(path, f"line {number} is not two entries with a blank between")
        merges.append((left, right))
    return merges


def _named_tokens(
    folder: Path, ids: Mapping[str, int], settings: Mapping[str, Any]
) -> dict[str, int]:
    """Collect the added tokens that the files beside the vocabulary name, with their ids."""
    by_id = {
        _object(token).get("content"): int(token_id)
        for token_id, token in _object(settings.get("added_tokens_decoder")).items()
        if token_id.isdecimal() and len(token_id) < 10
    }
    named = [
        _object(token).get("content", token)
        for source in (settings, _optional(folder / _SPECIAL))
        for key, token in source.items()
        if key.endswith("_token")
    ]
    in_vocabulary = {
        name: ids[name] for name in (*named, END_OF_TEXT) if isinstance(name, str) and name in ids
    }
    added = _checked_ids(folder / _ADDED, dict(_optional(folder / _ADDED)))
    return {**in_vocabulary, **{n: i for n, i in by_id.items() if isinstance(n, str)}, **added}


# Reading ---------------------------------------------------------------------------------------


def _checked_ids(path: Path, raw: object) -> dict[str, int]:
    """Take a JSON object as entries with their ids."""
    if not isinstance(raw, dict):
        raise _damaged(path, "it has no table of entries and ids")
    for entry, token_id in raw.items():
        if not isinstance(token_id, int) or isinstance(token_id, bool) or token_id < 0:
            raise _damaged(path, f"{entry!r} has {token_id!r} for an id")
    return raw


def _optional(path: Path) -> Mapping[str, Any]:
    return _read_object(path) if _is_there(path) else {}


def _read_object(path: Path) -> dict[str, Any]:
    try:
        raw = json.loads(_read(path).decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise _damaged(path, "it is no JSON") from error
    if not isinstance(raw, dict):
        raise _damaged(path, "it is no JSON object")
    return raw


def _read(path: Path) -> bytes:
    try:
        size = regular_size(path)
        if size > _LARGEST:
            raise DamagedModel(f"{path} has {size:,} bytes; no vocabulary has over {_LARGEST:,}")
        return read_regular(path)
    except OSError as error:
        raise DamagedModel(f"cannot read {path}: {error.strerror}") from error


def _damaged(path: Path, why: str) -> DamagedModel:
    return DamagedModel(
        f"{path} is damaged: {why}; restore it, or remove the vocabulary to open the model without"
    )


def _object(raw: object) -> Mapping[str, Any]:
    return raw if isinstance(raw, dict) else {}


def _is_there(path: Path) -> bool:
    """Say whether a file has this name, a broken link included."""
    return path.exists() or path.is_symlink()
