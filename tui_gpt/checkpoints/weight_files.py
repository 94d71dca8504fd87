"""Which files hold a model's weights: one set, never a mix.

In a folder the first of these that is there is read, and a notice names the others:

    model.safetensors
    model.safetensors.index.json     the shards it lists
    pytorch_model.bin
    pytorch_model.bin.index.json     the shards it lists

It is the order in which transformers looks. A path to one of them, or to one of the shards, is
taken at its word.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tui_gpt.checkpoints.headers import TensorEntry, read_header
from tui_gpt.errors import DamagedModel
from tui_gpt.files import read_object
from tui_gpt.gguf_header import read_gguf_header

if TYPE_CHECKING:
    import torch

_INDEX = ".index.json"

PRECEDENCE = (
    "model.safetensors",
    f"model.safetensors{_INDEX}",
    "pytorch_model.bin",
    f"pytorch_model.bin{_INDEX}",
)

_SHARD = re.compile(r"(?P<stem>.+)-\d{5}-of-\d{5}(?P<kind>\.safetensors|\.bin)")

_MOST_SHARDS = 1000

CHECKPOINT_SUFFIXES = (".pt", ".pth", ".ckpt")


@dataclass(frozen=True, slots=True)
class WeightFiles:
    """The files that are read, all of one kind."""

    paths: tuple[Path, ...]
    index: Path | None = None
    """Says which tensor is in which of them."""
    unread: tuple[Path, ...] = ()
    """Other weights in the folder."""

    @property
    def container(self) -> Literal["safetensors", "pickle", "gguf"]:
        """What kind of file they are, by the ending of the name."""
        suffix = self.paths[0].suffix
        if suffix == ".gguf":
            return "gguf"
        return "safetensors" if suffix == ".safetensors" else "pickle"

    @property
    def is_checkpoint(self) -> bool:
        """True for one pickle that a training script may have written, sizes included."""
        return len(self.paths) == 1 and self.paths[0].suffix in CHECKPOINT_SUFFIXES

    @property
    def named(self) -> Path:
        """What a message calls all of them."""
        return self.index or self.paths[0]


def find_weights(folder: Path) -> WeightFiles | None:
    """Find the weights of a folder.

    Raises:
        DamagedModel: An index is not usable.
    """
    there = [folder / name for name in PRECEDENCE if os.path.lexists(folder / name)]
    return _weights(there[0], tuple(there[1:])) if there else None


def weights_at(path: Path) -> WeightFiles:
    """Take one file as the weights; a shard stands for all of its index.

    Raises:
        DamagedModel: An index is not usable.
    """
    shard = _SHARD.fullmatch(path.name)
    if shard is not None:
        index = path.with_name(f"{shard['stem']}{shard['kind']}{_INDEX}")
        if not index.exists():
            raise DamagedModel(f"{path} is one shard of several, and {index.name} is not beside it")
        path = index
    others = (path.with_name(name) for name in PRECEDENCE if name != path.name)
    return _weights(path, tuple(other for other in others if os.path.lexists(other)))


def read_entries(files: WeightFiles) -> tuple[TensorEntry, ...]:
    """Read what all files hold, without their numbers.

    Raises:
        DamagedModel: A file is not whole, or the index and the shards disagree.
    """
    entries: list[TensorEntry] = []
    for path in files.paths:
        if files.container == "gguf":
            entries += (
                TensorEntry(found.name, found.shape, found.type_name, path, found.start)
                for found in read_gguf_header(path).tensors
            )
        elif files.container == "pickle":
            from tui_gpt.checkpoints.pickles import entries_of, load_state

            entries += entries_of(path, load_state(path).tensors)
        else:
            entries += read_header(path)
    if files.index is not None:
        _check_index(files.index, entries)
    return tuple(entries)


def open_tensors(files: WeightFiles) -> Callable[[TensorEntry], torch.Tensor]:
    """Give the numbers of any tensor, in the file's own memory where that is possible.

    Raises:
        DamagedModel: A file can no longer be read.
    """
    if files.container == "gguf":
        from tui_gpt.checkpoints.packed import unpack

        return unpack
    if files.container == "pickle":
        from tui_gpt.checkpoints.pickles import load_state

        states = {path: load_state(path).tensors for path in files.paths}
        return lambda entry: states[entry.path][entry.key]
    mapped = {path: _mapped(path) for path in files.paths}

    def tensor(entry: TensorEntry) -> torch.Tensor:
        import torch

        dtype = getattr(torch, _TORCH_DTYPES[entry.dtype])
        numbers = mapped[entry.path][entry.start : entry.start + entry.n_bytes]
        if entry.start % dtype.itemsize:
            numbers = numbers.clone()  # a header of an odd length; torch wants even addresses
        return numbers.view(dtype).reshape(entry.shape)

    return tensor


def _weights(path: Path, unread: tuple[Path, ...]) -> WeightFiles:
    if not path.name.endswith(_INDEX):
        return WeightFiles((path,), None, unread)
    listed = read_object(path).get("weight_map")
    if not isinstance(listed, dict) or not listed:
        raise DamagedModel(f"{path} is damaged: it has no weight_map")
    kind = Path(path.name.removesuffix(_INDEX)).suffix
    names: dict[str, None] = {}
    for key, name in listed.items():
        # A name is one of the folder's own files; an index does not lead anywhere else.
        if not isinstance(name, str) or "/" in name or "\\" in name or "\0" in name:
            raise DamagedModel(f"{path}: {key} is in {name!r}, which is no file of this folder")
        if Path(name).suffix != kind:
            raise DamagedModel(f"{path}: {key} is in {name!r}, which is no {kind} file")
        names[name] = None
    if len(names) > _MOST_SHARDS:
        raise DamagedModel(f"{path} lists {len(names)} files; at most {_MOST_SHARDS} are read")
    return WeightFiles(tuple(path.with_name(name) for name in names), path, unread)


def _check_index(index: Path, entries: list[TensorEntry]) -> None:
    """Hold the shards against their index: each tensor once, where it is said to be."""
    listed: dict[str, str] = read_object(index)["weight_map"]
    found: dict[str, Path] = {}
    for entry in entries:
        if entry.key in found:
            raise DamagedModel(f"{entry.key} is in {found[entry.key]} and in {entry.path}")
        if listed.get(entry.key) != entry.path.name:
            raise DamagedModel(f"{entry.path} has {entry.key}, which {index} does not say")
        found[entry.key] = entry.path
    for key, name in listed.items():
        if key not in found:
            raise DamagedModel(f"{index.with_name(name)} has no {key}; {index} says it has")


def _mapped(path: Path) -> torch.Tensor:
    """Give a file's bytes as a tensor that reads them when they are looked at: (size,)."""
    import torch

    try:
        size = path.stat().st_size
        return torch.from_file(str(path), shared=False, size=size, dtype=torch.uint8)
    except (OSError, RuntimeError) as error:
        raise DamagedModel(f"cannot read {path}: it can no longer be mapped") from error


_TORCH_DTYPES = {
    "BOOL": "bool", "U8": "uint8", "I8": "int8", "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2", "I16": "int16", "U16": "uint16", "F16": "float16",
    "BF16": "bfloat16", "I32": "int32", "U32": "uint32", "F32": "float32", "I64": "int64",
    "U64": "uint64", "F64": "float64",
}  # fmt: skip
