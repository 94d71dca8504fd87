"""Tiny GPT-2 folders as others write them, with and without a vocabulary."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from safetensors.torch import save_file

from tui_gpt.checkpoints.find import ModelSource
from tui_gpt.files import assets
from tui_gpt.tokenization.byte_alphabet import byte_of_printable
from tui_gpt.tokenization.open import open_tokenizer
from tui_gpt.tokenization.tokenizer import Tokenizer

BYTES = tuple(byte_of_printable())
"""The characters that stand for the 256 bytes, in rank order."""

MERGES = (("Ġ", "t"), ("h", "e"), ("Ġt", "he"), ("i", "n"))
"""A small vocabulary's: ` the` and `in`."""


def write_gpt2_model(folder: Path, *, vocab_size: int, block_size: int = 16) -> None:
    """Write one block, four wide, with random weights, as a Hugging Face GPT-2 folder."""
    width = 4
    draw = torch.Generator().manual_seed(3)

    def random(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=draw)

    tensors = {
        "wte.weight": random(vocab_size, width),
        "wpe.weight": random(block_size, width),
        "ln_f.weight": random(width),
        "ln_f.bias": random(width),
    }
    for name, shape in {
        "ln_1": (width,),
        "ln_2": (width,),
        "attn.c_attn": (width, 3 * width),
        "attn.c_proj": (width, width),
        "mlp.c_fc": (width, 4 * width),
        "mlp.c_proj": (4 * width, width),
    }.items():
        tensors[f"h.0.{name}.weight"] = random(*shape)
        tensors[f"h.0.{name}.bias"] = random(shape[-1])
    folder.mkdir(parents=True, exist_ok=True)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    config = {
        "model_type": "gpt2",
        "n_layer": 1,
        "n_head": 2,
        "n_embd": width,
        "n_positions": block_size,
        "vocab_size": vocab_size,
        "activation_function": "gelu_new",
        "layer_norm_epsilon": 1e-5,
        "tie_word_embeddings": True,
    }
    (folder / "config.json").write_text(json.dumps(config))


def small_ids(merges: Sequence[tuple[str, str]] = MERGES, *, first: int = 0) -> dict[str, int]:
    """Number the bytes and then what the merges build."""
    entries = [*BYTES, *("".join(merge) for merge in merges)]
    return {entry: first + i for i, entry in enumerate(dict.fromkeys(entries))}


def write_pair(
    folder: Path, ids: Mapping[str, int], merges: Sequence[tuple[str, str]] = MERGES
) -> None:
    """Write `vocab.json` and `merges.txt`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.json").write_text(json.dumps(dict(ids)))
    lines = ["#version: 0.2", *(" ".join(merge) for merge in merges), ""]
    (folder / "merges.txt").write_text("\n".join(lines), "utf-8")


def tokenizer_json(
    ids: Mapping[str, int],
    merges: Sequence[tuple[str, str]] = MERGES,
    changed: Mapping[str, object] | None = None,
) -> dict[str, object]:
    """Give a `tokenizer.json` as GPT-2's, with some of its parts changed."""
    level = {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "use_regex": True,
        "trim_offsets": True,
    }
    return {
        "version": "1.0",
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": level,
        "post_processor": level,
        "decoder": level,
        "model": {"type": "BPE", "vocab": dict(ids), "merges": [list(merge) for merge in merges]},
        **(changed or {}),
    }


def added_token(token_id: int, content: str, *, special: bool = True) -> dict[str, object]:
    """Give an entry of `added_tokens`."""
    switches = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": token_id, "content": content, **switches, "special": special}


def tokenizer_of(source: ModelSource) -> Tokenizer:
    """Open the tokenizer that belongs to a model."""
    return open_tokenizer(source.vocabulary, source.config.vocab_size)[0]


def copy_gpt2_vocabulary(folder: Path) -> None:
    """Put GPT-2's own vocabulary into a folder, under the names that others give it."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(assets() / "gpt2-bpe" / "encoder.json", folder / "vocab.json")
    shutil.copy(assets() / "gpt2-bpe" / "vocab.bpe", folder / "merges.txt")
