"""Which tokenizer belongs to a model's folder, and why.

In this order:

    characters.json             one token a character, as our own folders have it
    tokenizer.json              whatever the library `tokenizers` reads there
    vocab.json + merges.txt     byte-level byte pairs, cut by GPT-2's rule
    none of them                GPT-2's own, if the family uses it and the table has its rows

Two descriptions in one folder must agree. A file that is damaged refuses the model, and the
message says how to go on without it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tui_gpt.errors import DamagedModel
from tui_gpt.files import read_regular, regular_size
from tui_gpt.tokenization.characters import CharacterTokenizer
from tui_gpt.tokenization.gpt2 import GPT2_VOCABULARY, GPT2Tokenizer
from tui_gpt.tokenization.library import LibraryTokenizer, check_rows, guarded
from tui_gpt.tokenization.tokenizer import Tokenizer

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

_END_OF_TEXT = "<|endoftext|>"

_CONTRACTIONS = ("'s", "'d", "'m", "'t", "'ll", "'ve", "'re")
"""The only pieces that GPT-2's rule cuts with two kinds of characters in them."""

_MARK = b"\xef\xbb\xbf"
"""A byte-order mark."""

_LARGEST = 64_000_000
"""Bytes of a vocabulary file; Llama 3's has 9 million."""


def folder_tokenizer(
    folder: Path, vocab_size: int, *, or_gpt2: bool
) -> tuple[Tokenizer | None, tuple[str, ...]]:
    """Find the tokenizer of a folder.

    Args:
        folder: Where the weights are.
        vocab_size: Rows of the model's token table.
        or_gpt2: Without any vocabulary, GPT-2's is the family's own.

    Returns:
        The tokenizer, or None where there are only ids; and what a person should know of it.

    Raises:
        DamagedModel: A vocabulary file is there and not usable, or has ids that the table has
            no row for.
    """
    if _is_there(folder / CHARACTERS):
        characters = CharacterTokenizer.from_file(folder / CHARACTERS)
        check_rows(folder / CHARACTERS, characters.vocab_size - 1, vocab_size)
        return characters, ()
    pair = [name for name in (VOCAB, MERGES) if _is_there(folder / name)]
    if _is_there(folder / TOKENIZER):
        path = folder / TOKENIZER
        raw = _read(path)
        if len(pair) == 2:
            _check_agreement(folder, _object(_parse(path, raw)))
        return with_notice(_from_whole(path, raw, vocab_size), vocab_size)
    if len(pair) == 1:
        missing = MERGES if pair == [VOCAB] else VOCAB
        raise DamagedModel(
            f"{folder / missing} is missing; {pair[0]} alone is no vocabulary: add it, or "
            f"remove {pair[0]} to open the model without"
        )
    if pair:
        return with_notice(_from_pair(folder, vocab_size), vocab_size)
    if vocab_size < GPT2_VOCABULARY or not or_gpt2:
        return None, ()  # `IdsOnly` itself says so, with every prompt
    return GPT2Tokenizer(), (
        "tokenizer: GPT-2's own vocabulary, from the package, since the folder has none and the "
        f"table has {vocab_size:,} rows",
    )


def with_notice(tokenizer: LibraryTokenizer, n_rows: int) -> tuple[Tokenizer, tuple[str, ...]]:
    """Give a tokenizer with what to say of the tokens that have no row in the table."""
    if not tokenizer.left_out:
        return tokenizer, ()
    listed = ", ".join(f"{name!r} ({i})" for i, name in tokenizer.left_out.items())
    return tokenizer, (f"added tokens without a row in the table of {n_rows:,}: {listed}",)


def _from_whole(path: Path, raw: bytes, n_rows: int) -> LibraryTokenizer:
    """Let the library read `tokenizer.json`, once it is known to be JSON."""
    import tokenizers

    tokens = _parse(path, raw).get("added_tokens")
    built = guarded(lambda: tokenizers.Tokenizer.from_buffer(raw.removeprefix(_MARK)), path)
    declared = {token["content"]: token["id"] for token in tokens or ()}
    return LibraryTokenizer(built, str(path), n_rows, declared=declared)


# vocab.json and merges.txt ---------------------------------------------------------------------


def _from_pair(folder: Path, n_rows: int) -> LibraryTokenizer:
    """Build the byte-level tokenizer of `vocab.json` and `merges.txt`."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    where = f"{folder / VOCAB} and {MERGES}"
    ids = _checked_ids(folder / VOCAB, _read_object(folder / VOCAB))
    merges = _read_merges(folder / MERGES)
    settings = _optional(folder / _SETTINGS)
    named = _named_tokens(folder, ids, settings)
    _check_merges(where, ids, merges, named)
    built = Tokenizer(guarded(lambda: models.BPE(vocab=ids, merges=merges), where))
    blank = settings.get("add_prefix_space") is True
    built.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=blank)
    built.decoder = decoders.ByteLevel()
    return LibraryTokenizer(built, where, n_rows, named)


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


def _check_merges(
    where: str,
    ids: Mapping[str, int],
    merges: list[tuple[str, str]],
    named: Mapping[str, int],
) -> None:
    """See to it that the two files are whole and belong together; the library does not look."""
    built = {left + right for left, right in merges}
    for number, (left, right) in enumerate(merges, 1):
        if left + right not in ids:
            raise DamagedModel(
                f"{where}: merge {number} builds {left + right!r}, which the vocabulary lacks"
            )
    for entry, token_id in ids.items():
        if len(entry) > 1 and entry not in built and entry not in named and not _is_cut(entry):
            raise DamagedModel(
                f"{where}: no merge builds {entry!r}, id {token_id}; the list of merges is "
                "not whole or belongs to another vocabulary"
            )
    if len({*ids.values(), *named.values()}) != len({*ids, *named}):
        raise DamagedModel(f"{where}: two entries of the vocabulary share an id")


def _is_cut(entry: str) -> bool:
    """Say whether GPT-2's rule cuts an entry into several pieces, so that no merge builds it.

    That is what tells `<pad>` from an entry whose merge is missing.
    """
    kinds = {
        "letter" if char.isalpha() else "digit" if char.isnumeric() else "other"
        for char in entry.removeprefix("Ġ")  # how the files write a blank
    }
    return len(kinds) > 1 and entry not in _CONTRACTIONS


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
        name: ids[name] for name in (*named, _END_OF_TEXT) if isinstance(name, str) and name in ids
    }
    added = _checked_ids(folder / _ADDED, dict(_optional(folder / _ADDED)))
    return {**in_vocabulary, **{n: i for n, i in by_id.items() if isinstance(n, str)}, **added}


def _check_agreement(folder: Path, whole: Mapping[str, Any]) -> None:
    """Hold `tokenizer.json` against the two files beside it."""
    model = _object(whole.get("model"))
    ids = _checked_ids(folder / VOCAB, _read_object(folder / VOCAB))
    merges = _read_merges(folder / MERGES)
    theirs = model.get("merges")
    listed = [tuple(m.split(" ") if isinstance(m, str) else m) for m in theirs or ()]
    entries = _object(model.get("vocab"))
    same = all(entries.get(entry, i) == i for entry, i in ids.items())
    if listed != merges or not same:
        raise DamagedModel(
            f"{folder / TOKENIZER} and {VOCAB} with {MERGES} beside it are different "
            "vocabularies; remove what does not belong to the model"
        )


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
    return _parse(path, _read(path))


def _parse(path: Path, raw: bytes) -> dict[str, Any]:
    try:
        parsed = json.loads(raw.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise _damaged(path, "it is no JSON") from error
    if not isinstance(parsed, dict):
        raise _damaged(path, "it is no JSON object")
    return parsed


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
