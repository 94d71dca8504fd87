r"""Byte-level byte-pair encoding as GPT-2 does it: every text has ids, every id has bytes.

A text is cut into pieces by a pattern; a piece starts as its bytes, and the merge that comes
first in the list joins its two neighbours wherever they meet, until none applies. tiktoken does
the merging. It knows merges only by what they build, so a list is taken only where that makes
no difference: each merge's two parts must be what the merges before it make of its result.

Vocabulary files write each byte as one printable character; names here are in that alphabet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from tui_gpt.errors import DamagedModel, UnknownCharacters, UnknownTokenId
from tui_gpt.records.tokens import Token

if TYPE_CHECKING:
    import tiktoken

END_OF_TEXT = "<|endoftext|>"

GPT2_PIECES = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"""
"""Where GPT-2 cuts a text before merging: the pattern is part of the vocabulary."""

_CONTRACTIONS = ("'s", "'d", "'m", "'t", "'ll", "'ve", "'re")
"""The only pieces of that pattern with two kinds of characters."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What ids stand for, and how bytes become ids."""

    pieces: tuple[bytes, ...]
    """By rank: the single bytes first, then what each merge builds, in the order of the list."""
    ids: tuple[int, ...]
    """By rank; in GPT-2's own vocabulary an id is its rank."""
    added: Mapping[int, str]
    """Ids that no text is cut into, `<|endoftext|>` for one, with their names."""


class BytePairTokenizer:
    """Cuts text by a vocabulary that is read when it is first needed."""

    def __init__(self, read: Callable[[], Vocabulary]) -> None:
        self._read_vocabulary = read

    @property
    def vocab_size(self) -> int:
        """One more than the highest id with a meaning."""
        return self._size

    def encode(self, text: str) -> list[int]:
        """Cut a text, names of special tokens as plain text; see `Tokenizer.encode`."""
        if self._unknown_bytes:
            self._refuse_unknown(text)
        ids = self._vocabulary.ids
        return [ids[rank] for rank in self._encoding.encode_ordinary(text)]

    def token(self, token_id: int) -> Token:
        """Give the bytes of an id, none where it is left out; see `Tokenizer.token`."""
        if not 0 <= token_id < self.vocab_size:
            raise UnknownTokenId(token_id, self.vocab_size)
        known = self._bytes_of.get(token_id)
        return Token(token_id, b"", unused=True) if known is None else Token(token_id, known)

    def notices(self, text: str) -> tuple[str, ...]:
        """Say that the name of a special token was read as text."""
        return tuple(
            f"{name} was read as plain text, not as the special token"
            for name in self._vocabulary.added.values()
            if name in text
        )

    @cached_property
    def _vocabulary(self) -> Vocabulary:
        return self._read_vocabulary()

    @cached_property
    def _bytes_of(self) -> dict[int, bytes]:
        known = dict(zip(self._vocabulary.ids, self._vocabulary.pieces, strict=True))
        for token_id, name in self._vocabulary.added.items():
            known[token_id] = name.encode("utf-8")
        return known

    @cached_property
    def _size(self) -> int:
        return max(self._bytes_of, default=-1) + 1

    @cached_property
    def _encoding(self) -> tiktoken.Encoding:
        import tiktoken  # costs a tenth of a second, and characters do not need it

        ranks = {piece: rank for rank, piece in enumerate(self._vocabulary.pieces)}
        return tiktoken.Encoding(
            name="byte pairs", pat_str=GPT2_PIECES, mergeable_ranks=ranks, special_tokens={}
        )

    @cached_property
    def _unknown_bytes(self) -> frozenset[int]:
        """Bytes that a text may hold and this vocabulary has no token for."""
        return frozenset(range(256)).difference(
            piece[0] for piece in self._vocabulary.pieces if len(piece) == 1
        )

    def _refuse_unknown(self, text: str) -> None:
        found = [
            (i, char)
            for i, char in enumerate(text)
            if not self._unknown_bytes.isdisjoint(char.encode("utf-8", "surrogatepass"))
        ]
        if found:
            raise UnknownCharacters(found, len(self._vocabulary.pieces))


def build_vocabulary(
    ids: Mapping[str, int],
    merges: Iterable[tuple[str, str]],
    added: Mapping[str, int],
    *,
    where: str,
) -> Vocabulary:
    """Put a vocabulary together, every entry accounted for.

    Args:
        ids: The id of each entry, in the alphabet of the files.
        merges: Pairs of entries, the first to be applied first.
        added: Names and ids of added tokens, which may be among the entries too.
        where: Names the files in a refusal.

    Raises:
        DamagedModel: A merge's parts or its result are no entries, it can never apply, an entry
            is built by none, or two entries share an id.
    """
    table = _MergeTable(where)
    for char in byte_of_printable():
        if char in ids:
            table.add_byte(char)
    for number, (left, right) in enumerate(merges, 1):
        if left + right not in ids:
            raise DamagedModel(
                f"{where}: merge {number} builds {left + right!r}, which the vocabulary lacks"
            )
        table.merge(left, right, number)
    names = dict(added)
    for entry, token_id in ids.items():
        if entry not in table.ranks and entry not in names:
            if not _is_cut(entry):
                raise DamagedModel(
                    f"{where}: no merge builds {entry!r}, id {token_id}; the list of merges is "
                    "not whole or belongs to another vocabulary"
                )
            names[entry] = token_id
    by_id = {names[name]: name for name in names}
    ranked = tuple(ids[entry] for entry in table.ranks)
    if len(set(ranked) | set(by_id)) != len(ranked) + len(names):
        raise DamagedModel(f"{where}: two entries of the vocabulary share an id")
    latin = {ord(char): byte for char, byte in byte_of_printable().items()}
    pieces = tuple(entry.translate(latin).encode("latin-1") for entry in table.ranks)
    return Vocabulary(pieces, ranked, by_id)


def byte_of_printable() -> dict[str, int]:
    """Give the byte behind each character of GPT-2's vocabulary files, in rank order.

    Printable bytes stand for themselves and come first; the other 68 are written as the
    characters from U+0100 on.
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(0x100) if byte not in printable]
    table = {chr(byte): byte for byte in printable}
    table.update({chr(0x100 + i): byte for i, byte in enumerate(hidden)})
    return table


class _MergeTable:
    """The entries that were built so far, and what each was built of."""

    def __init__(self, where: str) -> None:
        self.ranks: dict[str, int] = {}
        self._entries: list[str] = []
        self._parts: list[tuple[int, int]] = []
        """By rank, the ranks of the two parts; a byte is its own."""
        self._where = where

    def add_byte(self, char: str) -> None:
        rank = len(self._entries)
        self._append(char, (rank, rank))

    def merge(self, left: str, right: str, number: int) -> None:
        """Add what a merge builds, unless an earlier merge built the same.

        Raises:
            DamagedModel: A part is not built yet, or the merge can never apply.
        """
        for part in (left, right):
            if part not in self.ranks:
                raise DamagedModel(
                    f"{self._where}: merge {number} joins {left!r} and {right!r}, and no merge "
                    f"before it builds {part!r}"
                )
        parts = (self.ranks[left], self.ranks[right])
        if left + right in self.ranks:
            return  # the earlier merge leaves this one nothing to join
        if not self._meet(*parts):
            raise DamagedModel(
                f"{self._where}: merge {number} joins {left!r} and {right!r}, which never meet: "
                "merges before it cut that text at another place"
            )
        self._append(left + right, parts)

    def _append(self, entry: str, parts: tuple[int, int]) -> None:
        self.ranks[entry] = len(self._entries)
        self._entries.append(entry)
        self._parts.append(parts)

    def _meet(self, left: int, right: int) -> bool:
        """Say whether two entries side by side stay apart until now.

        They do unless some merge across their border comes before a merge inside them. The
        merges inside are undone from the last on, always the one that came later, and what then
        touches the border is looked up; a merge across it must come before the undone one. Of
        equal merges the left one comes first.
        """
        latest = len(self._entries)  # a merge across the border must have a rank below this
        while True:
            across = self.ranks.get(self._entries[left] + self._entries[right], latest)
            if across < latest:
                return False
            inner_left, inner_right = self._parts[left][1], self._parts[right][0]
            if inner_left != left and (left > right or inner_right == right):
                latest, left = left, inner_left
            elif inner_right != right:
                latest, right = right + 1, inner_right
            else:
                return True


def _is_cut(entry: str) -> bool:
    """Say whether the pattern cuts an entry into several pieces, so that no merge builds it.

    That is what tells `<pad>` from an entry whose merge is missing.
    """
    kinds = {
        "letter" if char.isalpha() else "digit" if char.isnumeric() else "other"
        for char in entry.removeprefix("Ġ")  # how the files write a blank
    }
    return len(kinds) > 1 and entry not in _CONTRACTIONS
