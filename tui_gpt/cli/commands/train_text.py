"""Reading a text to train on: its characters become the vocabulary, a tenth is held out."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from pathlib import Path

import torch

from tui_gpt.errors import UnknownCharacters, UnusableText
from tui_gpt.model.train import TrainingText
from tui_gpt.tokenization.characters import CharacterTokenizer


def read_text(
    path: Path, block_size: int, tokenizer: CharacterTokenizer | None = None
) -> TrainingText:
    """Read a UTF-8 text and cut it into ids.

    Args:
        path: The text, used as it is.
        block_size: Context length; each part must hold more than one window.
        tokenizer: The vocabulary to use; by default the text's own characters, sorted.

    Raises:
        UnusableText: The file is missing, empty, not UTF-8 or too short, or the given
            vocabulary lacks characters of it.
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise UnusableText(f"cannot read {path}: {error.strerror}") from error
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UnusableText(
            f"{path} is not UTF-8: byte {raw[error.start]:#04x} at offset {error.start}; "
            "convert it first"
        ) from error
    if not text:
        raise UnusableText(f"{path} is empty; give a text to learn from")
    cut = len(text) * 9 // 10
    shortest = min(cut, len(text) - cut)
    if shortest <= block_size:
        raise UnusableText(
            f"{path} has {len(text)} characters, {shortest} of them in its smaller part; "
            f"a context of {block_size} needs more than {block_size} there, "
            f"so at least {10 * block_size + 1} in all"
        )
    tokenizer = tokenizer or CharacterTokenizer(sorted(set(text)))
    try:
        ids = torch.tensor(tokenizer.encode(text), dtype=torch.long)
    except UnknownCharacters as error:
        position, character = error.found[0]
        raise UnusableText(
            f"{path} has {len(error.found)} characters that are none of the model's "
            f"{tokenizer.vocab_size}, the first {character!r} at {position}; give a text prepared "
            "like the one the model learnt"
        ) from error
    facts = {
        "sha256": hashlib.sha256(raw).hexdigest(),
        "characters": len(text),
        "different_characters": len(set(text)),
        "trained_on": cut,
        "held_out": len(text) - cut,
        "unigram_entropy": unigram_entropy(text),
    }
    return TrainingText(tokenizer, ids[:cut], ids[cut:], facts)


def unigram_entropy(text: str) -> float:
    """Give the nats a character of a guesser that knows only how common each one is."""
    counts = Counter(text)
    shares = [count / len(text) for count in counts.values()]
    return -sum(share * math.log(share) for share in shares)
