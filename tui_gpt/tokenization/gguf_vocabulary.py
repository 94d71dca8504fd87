r"""The tokenizer in a GGUF file, rebuilt in the library `tokenizers`.

    tokenizer.ggml.model    gpt2: byte-level byte pairs; llama: SentencePiece's, with scores
    tokenizer.ggml.pre      which rule cuts a text before merging
    tokenizer.ggml.tokens, .merges, .scores, .token_type, .bos_token_id, .add_bos_token, …

A rule whose name is not known is refused for text: other ids than the model was trained on would
be shown as its own. Ids still work.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tui_gpt.errors import DamagedModel
from tui_gpt.gguf_header import GGUFHeader, read_gguf_header
from tui_gpt.tokenization.folder import with_notice
from tui_gpt.tokenization.library import LibraryTokenizer, guarded
from tui_gpt.tokenization.tokenizer import Tokenizer

if TYPE_CHECKING:
    import tokenizers

_CONTROL, _USER_DEFINED = 3, 4
"""Kinds of added tokens in `token_type`."""

_LLAMA_3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_QWEN_2 = _LLAMA_3.replace(r"\p{N}{1,3}", r"\p{N}")
"""The published splitting rules of the two families; Qwen's digits stand alone."""


def gguf_tokenizer(path: Path, n_rows: int) -> tuple[Tokenizer | None, tuple[str, ...]]:
    """Rebuild the tokenizer of a GGUF file.

    Args:
        path: The file.
        n_rows: Rows of the model's token table.

    Returns:
        The tokenizer, or None where there are only ids; and what a person should know of it.

    Raises:
        DamagedModel: The vocabulary in the file contradicts itself.
    """
    header = read_gguf_header(path)
    model = header.values.get("tokenizer.ggml.model")
    if model is None:
        return None, ()
    rule = header.values.get("tokenizer.ggml.pre", "default")
    if model == "gpt2" and rule in _RULES:
        built = _byte_level(header, str(rule))
    elif model == "llama":
        built = _sentence_piece(header)
    else:
        named = f"rule {rule!r}" if model == "gpt2" else f"kind {model!r}"
        return None, (
            f"the file's tokenizer cuts text by {named}, which is not known here, so this model "
            "takes token ids only (--ids)",
        )
    _add_around(header, built)
    return with_notice(LibraryTokenizer(built, str(path), n_rows), n_rows)


def _byte_level(header: GGUFHeader, rule: str) -> tokenizers.Tokenizer:
    """Build byte-level byte pairs."""
    from tokenizers import Tokenizer, decoders, models, normalizers

    entries = _entries(header)
    merges = []
    for number, merge in enumerate(header.texts("tokenizer.ggml.merges"), 1):
        left, _, right = merge.decode("utf-8", "replace").partition(" ")
        if not left or not right:
            raise DamagedModel(f"{header.path} is damaged: merge {number} is not two entries")
        merges.append((left, right))
    built = Tokenizer(guarded(lambda: models.BPE(vocab=entries, merges=merges), header.path))
    built.pre_tokenizer = _RULES[rule]()
    if rule == "qwen2":
        built.normalizer = normalizers.NFC()
    built.decoder = decoders.ByteLevel()
    _add_tokens(header, built)
    return built


def _sentence_piece(header: GGUFHeader) -> tokenizers.Tokenizer:
    """Build SentencePiece's byte pairs: the pair whose result has the best score joins first."""
    from tokenizers import Tokenizer, decoders, models, normalizers

    entries = _entries(header)
    scores = header.numbers("tokenizer.ggml.scores")
    if len(scores) != len(entries):
        raise DamagedModel(
            f"{header.path} is damaged: {len(scores)} scores for {len(entries)} tokens"
        )
    pairs = [
        (-scores[i], entries[entry[:cut]], entries[entry[cut:]], entry[:cut], entry[cut:])
        for entry, i in entries.items()
        for cut in range(1, len(entry))
        if entry[:cut] in entries and entry[cut:] in entries
    ]
    merges = [(left, right) for *_, left, right in sorted(pairs)]
    unknown = header.values.get("tokenizer.ggml.unknown_token_id", 0)
    name = next((entry for entry, i in entries.items() if i == unknown), None)
    built = Tokenizer(
        guarded(
            lambda: models.BPE(
                vocab=entries, merges=merges, unk_token=name, fuse_unk=True, byte_fallback=True
            ),
            header.path,
        )
    )
    blank = [normalizers.Prepend("▁")] if _switch(header, "add_space_prefix", True) else []
    built.normalizer = normalizers.Sequence([*blank, normalizers.Replace(" ", "▁")])
    built.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    _add_tokens(header, built)
    return built


def _entries(header: GGUFHeader) -> dict[str, int]:
    """Give the vocabulary with its ids.

    Raises:
        DamagedModel: An entry stands there twice.
    """
    texts = header.texts("tokenizer.ggml.tokens")
    entries = {text.decode("utf-8", "replace"): i for i, text in enumerate(texts)}
    if len(entries) != len(texts):
        raise DamagedModel(f"{header.path} is damaged: its vocabulary has an entry twice")
    return entries


def _add_tokens(header: GGUFHeader, built: tokenizers.Tokenizer) -> None:
    """Tell the library which entries are never built by merging."""
    from tokenizers import AddedToken

    kinds = header.numbers("tokenizer.ggml.token_type")
    for name, i in _entries(header).items():
        kind = kinds[i] if i < len(kinds) else 0
        if kind in (_CONTROL, _USER_DEFINED):
            special = kind == _CONTROL
            built.add_tokens([AddedToken(name, special=special, normalized=False)])


def _add_around(header: GGUFHeader, built: tokenizers.Tokenizer) -> None:
    """Put the beginning or the end of a text around it, where the file says so."""
    from tokenizers import processors

    is_sentence_piece = header.values.get("tokenizer.ggml.model") == "llama"
    before = _named(header, built, "bos", is_sentence_piece)
    after = _named(header, built, "eos", False)
    if before or after:
        template = " ".join([*(name for name, _ in before), "$A", *(name for name, _ in after)])
        built.post_processor = guarded(
            lambda: processors.TemplateProcessing(
                single=template, special_tokens=[*before, *after]
            ),
            header.path,
        )


def _named(
    header: GGUFHeader, built: tokenizers.Tokenizer, which: str, usual: bool
) -> list[tuple[str, int]]:
    """Give the special token that is put around a text, if one is."""
    token_id = header.values.get(f"tokenizer.ggml.{which}_token_id")
    if not _switch(header, f"add_{which}_token", usual) or type(token_id) is not int:
        return []
    name = built.id_to_token(token_id)
    if name is None:
        raise DamagedModel(f"{header.path} is damaged: it has no token {token_id} for {which}")
    return [(name, token_id)]


def _switch(header: GGUFHeader, name: str, usual: bool) -> bool:
    return header.values.get(f"tokenizer.ggml.{name}", usual) is True


def _split(pattern: str) -> Any:
    """Cut by a rule of the file's family, then write bytes as characters."""
    from tokenizers import Regex, pre_tokenizers

    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )


def _gpt2_rule(*, digits: bool) -> Any:
    """Cut by GPT-2's rule, each digit by itself first if so asked."""
    from tokenizers import pre_tokenizers

    level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    if not digits:
        return level
    return pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), level])


_RULES: Mapping[str, Callable[[], Any]] = {
    "gpt-2": lambda: _gpt2_rule(digits=False),
    "smollm": lambda: _gpt2_rule(digits=True),
    "llama-bpe": lambda: _split(_LLAMA_3),
    "qwen2": lambda: _split(_QWEN_2),
}
"""By the name that the file gives it."""
