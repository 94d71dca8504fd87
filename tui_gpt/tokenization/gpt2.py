"""GPT-2's own vocabulary, from the package: 256 bytes, 50,000 merges, `<|endoftext|>`."""

from __future__ import annotations

import json
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from tui_gpt.errors import DamagedModel, UnknownTokenId
from tui_gpt.files import assets, read_regular
from tui_gpt.records.tokens import Token
from tui_gpt.tokenization.byte_alphabet import byte_of_printable, entry_bytes
from tui_gpt.tokenization.tokenizer import special_names_notices

if TYPE_CHECKING:
    import tiktoken

GPT2_VOCABULARY = 50257
"""Entries of GPT-2's vocabulary; a larger table has ids that stand for nothing."""

GPT2_SHA256 = {
    "vocab.bpe": "1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5",
    "encoder.json": "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783",
}
"""OpenAI's two vocabulary files, as published."""

_PIECES = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"""
"""Where GPT-2 cuts a text before merging: the pattern is part of the vocabulary."""

_END_OF_TEXT = "<|endoftext|>"


class GPT2Tokenizer:
    """Cuts text by OpenAI's files, which are read when they are first needed."""

    vocab_size = GPT2_VOCABULARY
    description = f"GPT-2's, from this program: {GPT2_VOCABULARY:,} ids"
    added: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or assets() / "gpt2-bpe"

    def encode(self, text: str) -> list[int]:
        """Cut a text, names of special tokens as plain text; see `Tokenizer.encode`."""
        return self._encoding.encode_ordinary(text)

    def token(self, token_id: int) -> Token:
        """Give the bytes of an id; see `Tokenizer.token`."""
        if not 0 <= token_id < self.vocab_size:
            raise UnknownTokenId(token_id, self.vocab_size)
        return Token(token_id, self._pieces[token_id])

    def notices(self, text: str) -> tuple[str, ...]:
        """Say that the name of a special token was read as text."""
        return special_names_notices(frozenset({_END_OF_TEXT}), text)

    @cached_property
    def _pieces(self) -> tuple[bytes, ...]:
        """What each id stands for: the bytes, what each merge builds, the end of a text.

        tiktoken's own loader keeps a shared temporary cache even for local files.
        """
        lines = self._read("vocab.bpe").decode("utf-8").splitlines()[1:]
        entries = [*byte_of_printable(), *(line.replace(" ", "") for line in lines)]
        ids = json.loads(self._read("encoder.json"))
        if [ids.get(entry) for entry in entries] != list(range(GPT2_VOCABULARY - 1)):
            raise DamagedModel(f"{self._folder} has two files of different vocabularies")
        return (*map(entry_bytes, entries), _END_OF_TEXT.encode())

    @cached_property
    def _encoding(self) -> tiktoken.Encoding:
        import tiktoken  # costs a tenth of a second, and characters do not need it

        ranks = {piece: rank for rank, piece in enumerate(self._pieces[:-1])}
        return tiktoken.Encoding(
            name="gpt2", pat_str=_PIECES, mergeable_ranks=ranks, special_tokens={}
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
