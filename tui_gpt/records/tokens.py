"""Tokens, byte for byte: what the model reads, and how it is put together for reading.

A token of a byte-level vocabulary may be a part of a character. Its bytes are always known;
its text only where those bytes are UTF-8 by themselves.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Token:
    """One token of a prompt or of a vocabulary."""

    id: int
    bytes: bytes
    """What the token stands for; empty where the tokenizer does not know the id."""
    unused: bool = False
    """True where there is a vocabulary and it has no entry of this id: a padded row."""
    added: bool = False
    """True where the tokenizer put it there and not the text: the beginning of a text."""

    @property
    def text(self) -> str | None:
        """The exact text, or None where the bytes alone are not UTF-8 or not known."""
        if not self.bytes:
            return None
        try:
            return self.bytes.decode("utf-8")
        except UnicodeDecodeError:
            return None


def joined_text(tokens: Iterable[Token]) -> str:
    r"""Put tokens together for reading: characters split over several tokens come back whole.

    Bytes that belong to no character, such as a piece whose partner is not there, are written
    as `\xf0` and never replaced.
    """
    return b"".join(token.bytes for token in tokens).decode("utf-8", "backslashreplace")


def characters_of(tokens: tuple[Token, ...]) -> tuple[tuple[int, int], ...]:
    """Group tokens so that each group starts and ends between two characters.

    Returns:
        (first, end) pairs over the positions, most of them one token long. Tokens whose bytes
        never complete a character stand alone.
    """
    groups: list[tuple[int, int]] = []
    first = 0
    while first < len(tokens):
        end = _end_of_character(tokens, first)
        groups.append((first, end))
        first = end
    return tuple(groups)


def _end_of_character(tokens: tuple[Token, ...], first: int) -> int:
    """Find the position after the shortest run from `first` that is whole characters."""
    joined = b""
    # A character has at most four bytes, so a token and three more always settle it.
    for end in range(first + 1, min(first + 4, len(tokens)) + 1):
        joined += tokens[end - 1].bytes
        try:
            joined.decode("utf-8")
        except UnicodeDecodeError:
            continue
        return end
    return first + 1
