"""Which tokenizer belongs to a model's folder, and why."""

from __future__ import annotations

from pathlib import Path

from tui_gpt.model.tokenizer import GPT2_VOCABULARY, GPT2Tokenizer, Tokenizer


def folder_tokenizer(folder: Path, vocab_size: int) -> tuple[Tokenizer | None, tuple[str, ...]]:
    """Find the tokenizer of a folder.

    Args:
        folder: Where the weights are.
        vocab_size: Rows of the model's token table.

    Returns:
        The tokenizer, or None where there are only ids, and what was decided.

    Raises:
        DamagedModel: A vocabulary file is there and not usable.
    """
    if vocab_size >= GPT2_VOCABULARY:
        return GPT2Tokenizer(), ("the folder has no vocabulary; GPT-2's own is used",)
    return None, ("the folder has no vocabulary; the model takes token ids only (--ids)",)
