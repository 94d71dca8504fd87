"""Text to token ids and back, byte for byte.

Two kinds: one token a character, as the bundled models read; and GPT-2's byte-level BPE,
built from the vocabulary files in the package. A model may also come without any. Text is
used as it is: nothing is stripped, no character replaced. Special tokens are never read out
of a text.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from tui_gpt.errors import DamagedModel, NoTokenizer, UnknownCharacters, UnknownTokenId
from tui_gpt.files import assets, read_regular
from tui_gpt.records.tokens import Token
from tui_gpt.tokenization.byte_pairs import BytePairTokenizer, Vocabulary, build_vocabulary

GPT2_VOCABULARY = 50257
"""Entries of GPT-2's vocabulary; a larger table has ids that stand for nothing."""

GPT2_SHA256 = {
    "vocab.bpe": "1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5",
    "encoder.json": "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783",
}
"""OpenAI's two vocabulary files, as published."""


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
        """Say that there is none."""
        return ("this model has no tokenizer: a prompt is token ids, and ids are what is shown",)


class GPT2Tokenizer(BytePairTokenizer):
    """GPT-2's own vocabulary, from the package: 256 bytes, 50,000 merges, `<|endoftext|>`."""

    def __init__(self, folder: Path | None = None) -> None:
        super().__init__(self._published)
        self._folder = folder or assets() / "gpt2-bpe"

    def _published(self) -> Vocabulary:
        """Read `vocab.bpe` and `encoder.json`, each held against its hash.

        tiktoken's own loader keeps a shared temporary cache even for local files.
        """
        lines = self._read("vocab.bpe").decode("utf-8").splitlines()[1:]
        merges = (line.split(" ") for line in lines)
        ids = json.loads(self._read("encoder.json"))
        return build_vocabulary(
            ids, ((left, right) for left, right in merges), {}, where=str(self._folder)
        )

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
