"""One token a character; the vocabulary is the characters of the training text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from tui_gpt.errors import DamagedModel, UnknownCharacters, UnknownTokenId
from tui_gpt.files import read_regular
from tui_gpt.records.tokens import Token


class CharacterTokenizer:
    """Each character of the vocabulary is a token, in id order."""

    added: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())

    def __init__(self, characters: Sequence[str]) -> None:
        self.characters = tuple(characters)
        self._ids = {character: i for i, character in enumerate(self.characters)}

    @property
    def vocab_size(self) -> int:
        """The number of different characters."""
        return len(self.characters)

    @property
    def description(self) -> str:
        """How text becomes ids, in a few words."""
        return f"one token a character, {self.vocab_size:,} of them"

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
