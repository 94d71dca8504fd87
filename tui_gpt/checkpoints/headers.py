"""What a safetensors file says it holds, believed only as far as the file bears it out.

    8 bytes        length of the header, little-endian
    JSON           {"wte.weight": {"dtype": "F32", "shape": [11, 8], "data_offsets": [0, 352]}, …}
    the numbers    one tensor after the other, without a gap

Nothing is believed that contradicts itself: a name given twice, a shape that needs other bytes
than it has, a gap or an overlap, a size that is not the file's. No tensor library is needed.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from tui_gpt.errors import DamagedModel
from tui_gpt.files import regular_size
from tui_gpt.gguf_header import BLOCKS

WEIGHT_DTYPES = {"F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64"}
"""Number formats that a weight may be stored in, and torch's names for them."""

_PACKED = frozenset(block.name for block in BLOCKS.values() if block.n_numbers > 1)
"""What GGUF packs several numbers into one block with."""

_BYTES = {
    "BOOL": 1, "U8": 1, "I8": 1, "F8_E4M3": 1, "F8_E5M2": 1, "I16": 2, "U16": 2, "F16": 2,
    "BF16": 2, "I32": 4, "U32": 4, "F32": 4, "I64": 8, "U64": 8, "F64": 8,
}  # fmt: skip
"""Bytes of one number; formats that are no weight may still be those of a mask."""

_LARGEST_HEADER = 10_000_000
"""Bytes; that of GPT-2 XL has sixty thousand."""

_MOST_AXES = 8

_LFS_POINTER = b"version https://git-lfs"
"""How a Git LFS pointer begins: three lines of text in the place of a large file."""


@dataclass(frozen=True, slots=True)
class TensorEntry:
    """What a weight file says of one tensor."""

    key: str
    shape: tuple[int, ...]
    dtype: str
    """As safetensors writes it: `F32`; a packed one as ggml does: `Q4_1`."""
    path: Path
    """The file that holds it."""
    start: int = 0
    """Where its numbers begin, in bytes from the start of the file, unless it is a pickle."""

    @property
    def n_bytes(self) -> int:
        """How long its numbers are in the file."""
        return prod(self.shape) * _BYTES[self.dtype]


def is_weight(dtype: str) -> bool:
    """Say whether a weight may be stored in this format."""
    return dtype in WEIGHT_DTYPES or dtype in _PACKED


class _Duplicate(ValueError):
    """A header names one thing twice."""


def refuse_pointer(path: Path, start: bytes, size: int) -> None:
    """Refuse a file that is only a pointer to the real one.

    Raises:
        DamagedModel: It is a Git LFS pointer.
    """
    if start.startswith(_LFS_POINTER):
        raise DamagedModel(
            f"{path} is a Git LFS pointer of {size} bytes; the real file was not "
            "downloaded: run `git lfs pull` in its repository"
        )


def read_header(path: Path) -> tuple[TensorEntry, ...]:
    """Read what a safetensors file says it holds, after checking that all of it is there.

    Raises:
        DamagedModel: The file is missing, is no regular file, has another size than its
            header promises, or its header contradicts itself.
    """
    try:
        size = regular_size(path)
        with path.open("rb") as file:
            start = file.read(64)
            refuse_pointer(path, start, size)
            length = int.from_bytes(start[:8], "little")
            if size < 8 or length > size - 8:
                raise DamagedModel(
                    f"{path} is damaged or incomplete: {size} bytes, and its header asks for "
                    f"{8 + length}"
                )
            if length > _LARGEST_HEADER:
                raise DamagedModel(
                    f"{path} has a header of {length} bytes; more than {_LARGEST_HEADER} are "
                    "not read"
                )
            file.seek(8)
            header = json.loads(file.read(length), object_pairs_hook=_each_once)
        entries = tuple(
            _entry(path, key, entry, 8 + length)
            for key, entry in header.items()
            if key != "__metadata__"
        )
    except FileNotFoundError:
        raise DamagedModel(f"no weights here: {path} is missing") from None
    except OSError as error:
        raise DamagedModel(f"cannot read {path}: {error.strerror}") from error
    except _Duplicate as error:
        raise DamagedModel(f"{path} is damaged: its header names {error} twice") from error
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError) as error:
        raise DamagedModel(f"{path} is damaged: its header cannot be read") from error
    _check_layout(path, entries, 8 + length, size)
    return entries


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Read a JSON object, of which Python would keep the last value of a name given twice."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise _Duplicate(key)
        found[key] = value
    return found


def _entry(path: Path, key: str, raw: Any, origin: int) -> TensorEntry:
    """Read one line of a header; raises what Python raises where it is of another make."""
    shape, dtype = raw["shape"], raw["dtype"]
    start, end = raw["data_offsets"]
    sizes = [*shape, start, end]
    if not isinstance(shape, list) or not all(type(size) is int and size >= 0 for size in sizes):
        raise ValueError("sizes are whole numbers")
    if dtype not in _BYTES or len(shape) > _MOST_AXES:
        raise ValueError("no such format")
    entry = TensorEntry(key, tuple(shape), dtype, path, origin + start)
    if entry.n_bytes != end - start:
        raise DamagedModel(
            f"{path} is damaged: {key} {entry.shape} of {dtype} needs {entry.n_bytes} bytes and "
            f"has {end - start}"
        )
    return entry


def _check_layout(path: Path, entries: tuple[TensorEntry, ...], origin: int, size: int) -> None:
    """See to it that the tensors fill the file, one after the other."""
    end = max((entry.start + entry.n_bytes for entry in entries), default=origin)
    if size != end:
        raise DamagedModel(f"{path} is damaged or incomplete: {size} bytes found, {end} expected")
    reached = origin
    for entry in sorted(entries, key=lambda entry: (entry.start, entry.n_bytes)):
        if entry.start != reached:
            raise DamagedModel(
                f"{path} is damaged: {entry.key} begins at byte {entry.start}, and the tensor "
                f"before it ends at {reached}"
            )
        reached += entry.n_bytes
