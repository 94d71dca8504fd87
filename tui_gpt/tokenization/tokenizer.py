"""What the rest of the program knows of a tokenizer, and the one that knows nothing.

Text is used as it is where the vocabulary allows it: nothing is stripped, and where a tokenizer
changes the text, a notice says so. Special tokens are never read out of a text.
"""

from __future__ import annotations

from typing import Protocol

from tui_gpt.errors import NoTokenizer, UnknownTokenId
from tui_gpt.records.tokens import Token


class Tokenizer(Protocol):
    """What the rest of the program knows of a tokenizer."""

    @property
    def vocab_size(self) -> int:
        """Ids from 0 to this, exclusive, have a meaning."""
        ...

    @property
    def description(self) -> str:
        """Say in a few words how text becomes ids."""
        ...

    @property
    def added(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Ids that are put before and after every text."""
        ...

    def encode(self, text: str) -> list[int]:
        """Cut a text into ids, without those that are added.

        Raises:
            UnknownCharacters: The vocabulary cannot express the text.
            NoTokenizer: There is no vocabulary.
        """
        ...

    def token(self, token_id: int) -> Token:
        """Give the token of an id.

        Raises:
            UnknownTokenId: The id lies outside the vocabulary.
        """
        ...

    def notices(self, text: str) -> tuple[str, ...]:
        """Say what a reader of this text should know about how it was cut."""
        ...


class IdsOnly:
    """No vocabulary at all: ids go in, and ids are what is shown."""

    vocab_size = 0
    description = "none: ids only"
    added: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())

    def encode(self, text: str) -> list[int]:
        """Refuse: there is nothing to cut a text with; see `Tokenizer.encode`."""
        raise NoTokenizer

    def token(self, token_id: int) -> Token:
        """Refuse: no id has a text; see `Tokenizer.token`."""
        raise UnknownTokenId(token_id, self.vocab_size)

    def notices(self, text: str) -> tuple[str, ...]:
        """Say that there is none."""
        return ("this model has no tokenizer: a prompt is token ids, and ids are what is shown",)


def special_names_notices(names: frozenset[str], text: str) -> tuple[str, ...]:
    """Say which names of special tokens a text has, since they are read as text."""
    return tuple(
        f"{name} was read as plain text, not as the special token"
        for name in sorted(names)
        if name in text
    )
