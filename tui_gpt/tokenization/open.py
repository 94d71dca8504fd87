"""Opening the tokenizer that belongs to a model. A further kind: a module, and a line here."""

from __future__ import annotations

from tui_gpt.errors import DamagedModel
from tui_gpt.records.vocabulary import VocabularySource
from tui_gpt.tokenization.characters import CharacterTokenizer
from tui_gpt.tokenization.gpt2 import GPT2Tokenizer
from tui_gpt.tokenization.tokenizer import IdsOnly, Tokenizer


def open_tokenizer(source: VocabularySource, n_rows: int) -> tuple[Tokenizer, tuple[str, ...]]:
    """Read a vocabulary.

    Args:
        source: Where it is.
        n_rows: Rows of the model's token table.

    Returns:
        The tokenizer, and what a person should know of it.

    Raises:
        DamagedModel: The vocabulary is not usable or belongs to another model.
    """
    if source.kind == "gpt2":
        return GPT2Tokenizer(), ()
    if source.path is None:
        return IdsOnly(), ()
    if source.kind == "characters":
        return _characters(source, n_rows), ()
    if source.kind == "gguf":
        from tui_gpt.tokenization.gguf_vocabulary import gguf_tokenizer

        found, said = gguf_tokenizer(source.path, n_rows)
    else:
        from tui_gpt.tokenization.folder import folder_tokenizer

        found, said = folder_tokenizer(source.path, n_rows, or_gpt2=source.or_gpt2)
    return found or IdsOnly(), said


def _characters(source: VocabularySource, n_rows: int) -> CharacterTokenizer:
    """Read the characters of a folder of ours, which are as many as the table has rows."""
    assert source.path is not None
    file = source.path / "characters.json"
    tokenizer = CharacterTokenizer.from_file(file)
    if tokenizer.vocab_size != n_rows:
        raise DamagedModel(
            f"{file} has {tokenizer.vocab_size} characters but config.json says vocab_size {n_rows}"
        )
    return tokenizer
