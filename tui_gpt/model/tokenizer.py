"""Text to token ids and back, byte for byte.

Two kinds: one token a character, as the bundled models read; and GPT-2's byte-level BPE,
built from the vocabulary files in the package. A model may also come without any. Text is
used as it is: nothing is stripped, no character replaced. Special tokens are never read out
of a text.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from tui_gpt.errors import DamagedModel, NoTokenizer, UnknownCharacters, UnknownTokenId
from tui_gpt.files import assets, read_regular
from tui_gpt.records.tokens import Token

if TYPE_CHECKING:
    import tiktoken

GPT2_VOCABULARY = 50257
"""Entries of GPT-2's vocabulary; a larger table has ids that stand for nothing."""

GPT2_SHA256 = {
    "vocab.bpe": "1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5",
    "encoder.json": "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783",
}
"""OpenAI's two vocabulary files, as published."""

_END_OF_TEXT = "<|endoftext|>"

_GPT2_PIECES = (
    r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"""
)
"""Where GPT-2 cuts a text before merging: the pattern is part of the vocabulary."""


class Tokenizer(Protocol):
    """What the rest of the program knows of a tokenizer."""

    @property
    def vocab_size(self) -> int:
        """Ids from 0 to this, exclusive, have a meaning."""
        ...

    def encode(self, text: str) -> list[int]:
        """Cut a text into ids.

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


class CharacterTokenizer:
    """One token a character; the vocabulary is the characters of the training text."""

    def __init__(self, characters: Sequence[str]) -> None:
        self.characters = tuple(characters)
        self._ids = {character: i for i, character in enumerate(self.characters)}

    @property
    def vocab_size(self) -> int:
        """The number of different characters."""
        return len(self.characters)

    def encode(self, text: str) -> list[int]:
        """Give one id a character; see `Tokenizer.encode`."""
        unknown = [(i, char) for i, char in enumerate(text) if char not in self._ids]
        if unknown:
            raise UnknownCharacters(unknown, self.vocab_size)
        return [self._ids[character] for character in text]

    def token(self, token_id: int) -> Token:
        """Give the character of an id; see `Tokenizer.token`."""
        if not 0 <= token_id < self.vocab_size:
            raise UnknownTokenId(token_id, self.vocab_size)
        return Token(token_id, self.characters[token_id].encode("utf-8"))

    def notices(self, text: str) -> tuple[str, ...]:
        """A character stands for itself, so there is nothing to say."""
        return ()

    def to_json(self) -> str:
        """Write the vocabulary as `characters.json` holds it."""
        return json.dumps({"characters": list(self.characters)}, indent=0) + "\n"

    @classmethod
    def from_file(cls, path: Path) -> CharacterTokenizer:
        """Read `characters.json`.

        Raises:
            DamagedModel: The file is missing, unreadable or not a list of single characters.
        """
        try:
            characters = json.loads(read_regular(path).decode("utf-8-sig"))["characters"]
        except FileNotFoundError:
            raise DamagedModel(f"{path} is missing; it holds the model's characters") from None
        except OSError as error:
            raise DamagedModel(f"cannot read {path}: {error.strerror}") from error
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise DamagedModel(f'{path} is damaged: expected {{"characters": [...]}}') from error
        if (
            not isinstance(characters, list)
            or not characters
            or not all(isinstance(char, str) and len(char) == 1 for char in characters)
            or any("\ud800" <= char <= "\udfff" for char in characters)  # half of a character
            or len(set(characters)) != len(characters)
        ):
            raise DamagedModel(f"{path} is damaged: expected different single characters")
        return cls(characters)


class IdsOnly:
    """No vocabulary at all: ids go in, and ids are what is shown."""

    @property
    def vocab_size(self) -> int:
        """No id has a meaning."""
        return 0

    def encode(self, text: str) -> list[int]:
        """Refuse: there is nothing to cut a text with; see `Tokenizer.encode`."""
        raise NoTokenizer

    def token(self, token_id: int) -> Token:
        """Refuse: no id has a text; see `Tokenizer.token`."""
        raise UnknownTokenId(token_id, self.vocab_size)

    def notices(self, text: str) -> tuple[str, ...]:
        """There is no text to say anything of."""
        return ()


class GPT2Tokenizer:
    """GPT-2's byte-level BPE: every text has ids, every id has bytes."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or assets() / "gpt2-bpe"

    @property
    def vocab_size(self) -> int:
        """256 bytes, 50,000 merges and `<|endoftext|>`."""
        return self._encoding.n_vocab

    def encode(self, text: str) -> list[int]:
        """Cut a text as GPT-2 does, `<|endoftext|>` as plain text; see `Tokenizer.encode`."""
        return self._encoding.encode(text, disallowed_special=())

    def token(self, token_id: int) -> Token:
        """Give the bytes of an id; see `Tokenizer.token`."""
        if not 0 <= token_id < self.vocab_size:
            raise UnknownTokenId(token_id, self.vocab_size)
        return Token(token_id, self._encoding.decode_single_token_bytes(token_id))

    def notices(self, text: str) -> tuple[str, ...]:
        """Say that the name of a special token was read as text."""
        if _END_OF_TEXT not in text:
            return ()
        return (f"{_END_OF_TEXT} was read as plain text, not as the special token",)

    @cached_property
    def _encoding(self) -> tiktoken.Encoding:
        import tiktoken  # costs a tenth of a second, and characters do not need it

        ranks = self._ranks()
        return tiktoken.Encoding(
            name="gpt2",
            pat_str=_GPT2_PIECES,
            mergeable_ranks=ranks,
            special_tokens={_END_OF_TEXT: len(ranks)},
        )

    def _ranks(self) -> dict[bytes, int]:
        """Read the table bytes → id from `vocab.bpe`, and hold it against `encoder.json`.

        tiktoken's own loader keeps a shared temporary cache even for local files.
        """
        byte_of = _byte_of_printable()
        ranks = {bytes([byte]): rank for rank, byte in enumerate(byte_of.values())}
        merges = self._read("vocab.bpe").decode("utf-8").split("\n")[1:]
        for merge in merges:
            if merge:
                merged = bytes(byte_of[char] for char in merge if char != " ")
                ranks[merged] = len(ranks)
        published = json.loads(self._read("encoder.json"))
        published.pop(_END_OF_TEXT)
        if ranks != {bytes(byte_of[char] for char in text): i for text, i in published.items()}:
            raise DamagedModel(f"the two vocabulary files in {self._folder} do not agree")
        return ranks

    def _read(self, name: str) -> bytes:
        import hashlib  # OpenSSL, which the first frame has no use for

        path = self._folder / name
        try:
            content = read_regular(path)
        except OSError as error:
            raise DamagedModel(f"cannot read {path}: {error.strerror}") from error
        found = hashlib.sha256(content).hexdigest()
        if found != GPT2_SHA256[name]:
            raise DamagedModel(
                f"{path} is damaged: SHA-256 {found[:12]}… and not {GPT2_SHA256[name][:12]}…; "
                "install tui-gpt again"
            )
        return content


def _byte_of_printable() -> dict[str, int]:
    """Give the byte behind each character of GPT-2's vocabulary files, in rank order.

    Printable bytes stand for themselves and come first; the other 68 are written as the
    characters from U+0100 on.
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(0x100) if byte not in printable]
    table = {chr(byte): byte for byte in printable}
    table.update({chr(0x100 + i): byte for i, byte in enumerate(hidden)})
    return table
