"""Tokenizers that a model brings, run by Hugging Face's library `tokenizers`.

The library knows every normaliser, splitting rule and post-processor; here its entries become
bytes again, so that a piece of a character is shown as what it is. How an entry is written
follows from the decoder:

    ByteLevel              one character a byte (GPT-2, Llama 3, Qwen, SmolLM2, Pythia)
    ByteFallback, ▁        text, ▁ for a blank, <0xE4> for a byte (Llama 2)
    anything else          text as it stands
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from tui_gpt.errors import DamagedModel, UnknownTokenId
from tui_gpt.records.tokens import Token, joined_text
from tui_gpt.tokenization.byte_alphabet import entry_bytes
from tui_gpt.tokenization.tokenizer import special_names_notices

if TYPE_CHECKING:
    import tokenizers

Result = TypeVar("Result")

_BYTE = re.compile(r"<0x([0-9A-F]{2})>")
_BLANK = "▁"
_SHOWN = 60
"""Characters of a changed text that a notice repeats."""


class LibraryTokenizer:
    """Cuts text as the model's makers' library does."""

    def __init__(
        self,
        built: tokenizers.Tokenizer,
        origin: str,
        n_rows: int,
        named: Mapping[str, int] | None = None,
        declared: Mapping[str, int] | None = None,
    ) -> None:
        """Take a tokenizer of the library.

        Args:
            built: Special tokens in a text are read as text from now on.
            origin: Where it comes from, for the description.
            n_rows: Rows of the model's token table; added tokens beyond are left out.
            named: Special tokens besides those that the library knows, with their ids.
            declared: Added tokens with the ids that the file gives them; the library numbers
                them on without a gap.

        Raises:
            DamagedModel: Text would be cut into ids that the table has no row for.
        """
        built.encode_special_tokens = True
        built.no_padding()
        built.no_truncation()
        self._built = built
        self._origin = origin
        known = built.get_added_tokens_decoder()
        given = declared or {}
        self._moved = {
            i: given[token.content]
            for i, token in known.items()
            if given.get(token.content, i) != i
        }
        names = {self._moved.get(i, i): token.content for i, token in known.items()}
        names.update({i: name for name, i in (named or {}).items()})
        self._names = {i: name for i, name in names.items() if i < n_rows}
        self.left_out = {i: name for i, name in names.items() if i >= n_rows}
        """Added tokens that the table has no row for."""
        self._special = frozenset(token.content for token in known.values() if token.special)
        self._special |= frozenset(named or ())
        entries = built.get_vocab(with_added_tokens=False).values()
        check_rows(origin, max((i for i in entries if i not in names), default=-1), n_rows)
        self.vocab_size = min(n_rows, 1 + max((*entries, *names), default=-1))
        """One more than the highest id with a meaning."""

    @property
    def description(self) -> str:
        """How text becomes ids, in a few words."""
        kind = type(self._built.model).__name__
        words = "byte pairs" if kind == "BPE" else kind
        return f"{words}, from the model's folder: {self.vocab_size:,} ids"

    @cached_property
    def added(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """What the post-processor puts before and after every text."""
        found = guarded(lambda: self._built.encode("a"), self._origin)
        own = [i for i, mask in enumerate(found.special_tokens_mask) if not mask]
        if not own:
            return (), ()
        return tuple(found.ids[: own[0]]), tuple(found.ids[own[-1] + 1 :])

    def encode(self, text: str) -> list[int]:
        """Cut a text, names of special tokens as plain text; see `Tokenizer.encode`."""
        text = text.encode("utf-8", "replace").decode("utf-8")  # halves of surrogate pairs
        encoded = guarded(lambda: self._built.encode(text, add_special_tokens=False), self._origin)
        return [self._moved.get(i, i) for i in encoded.ids]

    def token(self, token_id: int) -> Token:
        """Give the bytes of an id, none where it is left out; see `Tokenizer.token`."""
        if not 0 <= token_id < self.vocab_size:
            raise UnknownTokenId(token_id, self.vocab_size)
        if token_id in self._names:
            return Token(token_id, self._names[token_id].encode("utf-8"))
        entry = self._built.id_to_token(token_id)
        if entry is None or token_id in self._moved:
            return Token(token_id, b"", unused=True)
        return Token(token_id, self._bytes(entry))

    def notices(self, text: str) -> tuple[str, ...]:
        """Say what the tokenizer changes, adds or does not read as a person might expect."""
        names = {i: joined_text((self.token(i),)) for i in (*self.added[0], *self.added[1])}
        added = tuple(
            f"the tokenizer puts {' '.join(names[i] for i in ids)} {where} every text; "
            "--no-bos leaves it out"
            for ids, where in zip(self.added, ("before", "after"), strict=True)
            if ids
        )
        changed = self._change(text)
        said = (f"the tokenizer {changed}",) if changed else ()
        return (*added, *special_names_notices(self._special, text), *said)

    def _change(self, text: str) -> str:
        """Say how what was cut differs from the text; nothing if it does not."""
        if not text:
            return ""
        read = joined_text(self.token(i) for i in self.encode(text))
        if read == text:
            return ""
        if read == f" {text}":
            return "puts a blank before every text"
        if read == unicodedata.normalize("NFC", text):
            return "turns text into Unicode's composed form (NFC) first"
        lost = [char for char in dict.fromkeys(text) if not self.encode(char)]
        if lost:
            return f"has no token for {', '.join(repr(char) for char in lost[:8])}: left out"
        shown = read if len(read) <= _SHOWN else f"{read[:_SHOWN]}…"
        return f"reads the text as {shown!r}"

    @cached_property
    def _bytes(self) -> Callable[[str], bytes]:
        """How this vocabulary writes bytes."""
        whole = json.loads(self._built.to_str())
        decoder = json.dumps([whole.get("decoder"), whole.get("pre_tokenizer")])
        if '"ByteLevel"' in decoder:
            return entry_bytes
        if '"ByteFallback"' in decoder or '"Metaspace"' in decoder or _BLANK in decoder:
            return _sentence_piece_bytes
        return lambda entry: entry.encode("utf-8")


def check_rows(where: object, highest: int, n_rows: int) -> None:
    """Refuse a vocabulary with more ids than the table has rows.

    Raises:
        DamagedModel: With both numbers.
    """
    if highest >= n_rows:
        raise DamagedModel(
            f"{where} has ids up to {highest} but the model's table has {n_rows} rows; "
            "this vocabulary belongs to another model"
        )


def guarded(work: Callable[[], Result], where: object) -> Result:
    """Do something with the library, whose faults are of many kinds.

    Raises:
        DamagedModel: It did not go.
    """
    try:
        return work()
    except (KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException as error:  # a panic of the library is no Exception
        said = " ".join(str(error).split())[:200]
        raise DamagedModel(
            f"{where} is damaged: the tokenizer library says {said!r}; restore it, or remove the "
            "vocabulary to open the model without"
        ) from error


def _sentence_piece_bytes(entry: str) -> bytes:
    found = _BYTE.fullmatch(entry)
    if found is not None:
        return bytes([int(found[1], 16)])
    return entry.replace(_BLANK, " ").encode("utf-8")
