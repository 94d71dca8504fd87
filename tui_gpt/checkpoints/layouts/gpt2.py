"""Models that other programs wrote: GPT-2 folders and nanoGPT checkpoints.

Their config is read or refused by name, their tensors are held against it, and their vocabulary
is found, before any number is used.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tui_gpt.checkpoints.find import CONFIG, ModelSource
from tui_gpt.checkpoints.headers import TensorEntry
from tui_gpt.checkpoints.layouts.gpt2_config import (
    LayoutConfig,
    read_gpt2_config,
    read_nanogpt_args,
    untied,
)
from tui_gpt.checkpoints.layouts.gpt2_names import HEAD, TABLE, Layout, by_name, place
from tui_gpt.checkpoints.memory_check import check_memory
from tui_gpt.checkpoints.pickles import entries_of, load_state
from tui_gpt.checkpoints.weight_files import WeightFiles, open_tensors, read_entries
from tui_gpt.errors import DamagedModel
from tui_gpt.records.stages import count_parameters
from tui_gpt.tokenization.tokenizer import IdsOnly
from tui_gpt.tokenization.vocabulary import folder_tokenizer

_COMPARED_AT_ONCE = 2**20
"""Bytes."""


def huggingface(folder: Path, name: str, raw: Mapping[str, Any], files: WeightFiles) -> ModelSource:
    """Read a GPT-2 folder."""
    foreign = read_gpt2_config(folder / CONFIG, raw)
    entries = by_name(read_entries(files), "gpt2")
    return _foreign(folder, name, "huggingface", foreign, entries, files)


def checkpoint(path: Path, name: str, raw: Mapping[str, Any] | None = None) -> ModelSource:
    """Read a checkpoint of nanoGPT, or a state dict with GPT-2's config beside it."""
    state = load_state(path)
    files = WeightFiles((path,))
    found = entries_of(path, state.tensors)
    if state.model_args is not None:
        entries = by_name(found, "nanogpt")
        foreign = read_nanogpt_args(path, state.model_args, "ln_f.bias" in entries)
        return _foreign(path.parent, name, "nanogpt", foreign, entries, files)
    if raw is None:
        raise DamagedModel(
            f"{path} has no model_args, as nanoGPT writes them, and no {CONFIG} beside it; one of "
            "them gives the sizes"
        )
    config = read_gpt2_config(path.parent / CONFIG, raw)
    return _foreign(path.parent, name, "huggingface", config, by_name(found, "gpt2"), files)


def _foreign(
    folder: Path,
    name: str,
    kind: str,
    foreign: LayoutConfig,
    entries: dict[str, TensorEntry],
    files: WeightFiles,
) -> ModelSource:
    """Hold tensors against the config, decide about the head, and find the vocabulary."""
    layout: Layout = "nanogpt" if kind == "nanogpt" else "gpt2"
    config, notices, remarks = foreign.config, [], list(foreign.notices)
    if foreign.name is not None:
        remarks.insert(0, f"{CONFIG} calls the model {foreign.name}")
    place(entries, config, layout, files.named)
    if config.tied and HEAD in entries:
        check_memory(name, 4 * count_parameters(config))  # before two large tensors are read
        if _same_numbers(entries[HEAD], entries[TABLE], files):
            remarks.append(f"{HEAD} repeats {TABLE}: they are one, and counted once")
        else:
            config = untied(config)
            place(entries, config, layout, files.named)
            notices.append(
                f"{HEAD} and {TABLE} differ in the file, so the head is used as it is, although "
                "nothing says that they are two"
            )
    if files.unread:
        others = ", ".join(path.name for path in files.unread)
        notices.append(f"read: {files.named.name}; also there and not read: {others}")
    tokenizer, said = folder_tokenizer(folder, config.vocab_size)
    return ModelSource(
        name,
        kind,
        folder,
        config,
        tokenizer or IdsOnly(),
        count_parameters(config),
        files=files,
        layout=layout,
        notices=(*notices, *said),
        remarks=tuple(remarks),
    )


def _same_numbers(one: TensorEntry, other: TensorEntry, files: WeightFiles) -> bool:
    """Compare two tensors of a file, piece by piece."""
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if files.pickled:
        tensor = open_tensors(files)
        return bool((tensor(one) == tensor(other)).all())
    try:
        with one.path.open("rb") as left, other.path.open("rb") as right:
            left.seek(one.start)
            right.seek(other.start)
            for start in range(0, one.n_bytes, _COMPARED_AT_ONCE):
                count = min(_COMPARED_AT_ONCE, one.n_bytes - start)
                if left.read(count) != right.read(count):
                    return False
    except OSError as error:
        raise DamagedModel(f"cannot read {one.path}: {error.strerror}") from error
    return True
