"""What a GGUF file says it holds, believed only as far as the file bears it out.

    "GGUF", version         four bytes each; versions 2 and 3, little-endian
    tensors, pairs          two counts of eight bytes
    pairs                   key, type, value: the config and the vocabulary
    tensors                 name, axes (fastest first), type, where its numbers begin
    the numbers             after the next multiple of the alignment

The whole is in the description of the format in the ggml project. The package `gguf` reads it
too, but builds every entry of a vocabulary of fifty thousand first, which takes seconds; here
long lists are stepped over, and read when they are asked for. Nothing but the standard library
is imported, so that a stage list is on screen first.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import TypeAlias

from tui_gpt.errors import DamagedModel
from tui_gpt.files import regular_size

Scalar: TypeAlias = int | float | bool | str

MAGIC = b"GGUF"

_MOST_PAIRS = 10_000
_MOST_TENSORS = 100_000
_LONGEST_NAME = 4096
"""Bytes of a key or of a tensor's name."""
_LONGEST_TEXT = 1 << 20
"""Bytes of a text value; a chat template has a few thousand."""
_MOST_AXES = 4
_ALIGNMENT = 32

_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 10: "Q", 11: "q", 12: "d"}
_BOOL, _TEXT, _LIST = 7, 8, 9


@dataclass(frozen=True, slots=True)
class BlockType:
    """How numbers are packed."""

    name: str
    n_numbers: int
    """In one block; 1 where each stands by itself."""
    n_bytes: int
    """Of one block."""


BLOCKS: Mapping[int, BlockType] = {
    0: BlockType("F32", 1, 4),
    1: BlockType("F16", 1, 2),
    2: BlockType("Q4_0", 32, 18),
    3: BlockType("Q4_1", 32, 20),
    6: BlockType("Q5_0", 32, 22),
    7: BlockType("Q5_1", 32, 24),
    8: BlockType("Q8_0", 32, 34),
    10: BlockType("Q2_K", 256, 84),
    11: BlockType("Q3_K", 256, 110),
    12: BlockType("Q4_K", 256, 144),
    13: BlockType("Q5_K", 256, 176),
    14: BlockType("Q6_K", 256, 210),
    16: BlockType("IQ2_XXS", 256, 66),
    17: BlockType("IQ2_XS", 256, 74),
    18: BlockType("IQ3_XXS", 256, 98),
    19: BlockType("IQ1_S", 256, 50),
    20: BlockType("IQ4_NL", 32, 18),
    21: BlockType("IQ3_S", 256, 110),
    22: BlockType("IQ2_S", 256, 82),
    23: BlockType("IQ4_XS", 256, 136),
    29: BlockType("IQ1_M", 256, 56),
    30: BlockType("BF16", 1, 2),
    34: BlockType("TQ1_0", 256, 54),
    35: BlockType("TQ2_0", 256, 66),
    39: BlockType("MXFP4", 32, 17),
    40: BlockType("NVFP4", 64, 36),
}
"""By ggml's number: every type that the package `gguf` unpacks to float32."""


@dataclass(frozen=True, slots=True)
class GGUFTensor:
    """What the file says of one tensor."""

    name: str
    shape: tuple[int, ...]
    """Slowest axis first, as torch writes it: (outputs, inputs)."""
    type_number: int
    """One of ggml's; `type_name` says it in letters."""
    start: int
    """Where its blocks begin, in bytes from the start of the file."""
    n_bytes: int

    @property
    def type_name(self) -> str:
        """As ggml writes it: `Q4_1`."""
        return BLOCKS[self.type_number].name


@dataclass(frozen=True, slots=True)
class _List:
    """A list in the file that was stepped over."""

    kind: int
    count: int
    start: int


@dataclass(frozen=True, slots=True)
class GGUFHeader:
    """Everything before the numbers."""

    path: Path
    values: Mapping[str, Scalar]
    """The pairs that are one number, switch or text."""
    lists: Mapping[str, _List]
    tensors: tuple[GGUFTensor, ...]
    """In the order of the file."""

    def texts(self, key: str) -> tuple[bytes, ...]:
        """Read a list of texts, as bytes; empty where there is none of that name.

        Raises:
            DamagedModel: The list holds something else, or can no longer be read.
        """
        found = self.lists.get(key)
        if found is None:
            return ()
        if found.kind != _TEXT:
            raise DamagedModel(f"{self.path} is damaged: {key} is no list of texts")
        with _opened(self.path) as cursor:
            cursor.at = found.start
            return tuple(cursor.text(_LONGEST_TEXT) for _ in range(found.count))

    def numbers(self, key: str) -> tuple[int | float, ...]:
        """Read a list of numbers; empty where there is none of that name.

        Raises:
            DamagedModel: The list holds something else, or can no longer be read.
        """
        found = self.lists.get(key)
        if found is None:
            return ()
        if found.kind not in _SCALARS:
            raise DamagedModel(f"{self.path} is damaged: {key} is no list of numbers")
        with _opened(self.path) as cursor:
            cursor.at = found.start
            return cursor.numbers(found.kind, found.count)


def read_gguf_header(path: Path) -> GGUFHeader:
    """Read what a GGUF file says it holds, after checking that all of it is there.

    Raises:
        DamagedModel: The file is missing, is no regular file, is cut off, is of a version that
            is not read, or contradicts itself.
    """
    with _opened(path) as cursor:
        if cursor.take(4) != MAGIC:
            raise DamagedModel(f"{path} is no GGUF file: it does not begin with GGUF")
        version = cursor.number("I")
        if version not in (2, 3):
            swapped = int.from_bytes(int(version).to_bytes(4, "little"), "big") in (2, 3)
            why = "written for big-endian machines" if swapped else f"of version {version}"
            raise DamagedModel(f"{path} is {why}; GGUF 2 and 3, little-endian, are read")
        n_tensors = cursor.count("tensors", _MOST_TENSORS)
        n_pairs = cursor.count("key-value pairs", _MOST_PAIRS)
        values, lists = _pairs(cursor, n_pairs)
        described = [_described(cursor) for _ in range(n_tensors)]
        alignment = values.get("general.alignment", _ALIGNMENT)
        if isinstance(alignment, bool) or not isinstance(alignment, int) or alignment < 1:
            raise cursor.damaged(f"general.alignment is {alignment!r}")
        origin = -(-cursor.at // alignment) * alignment
        tensors = tuple(_tensor(cursor, origin, alignment, *one) for one in described)
        _check_layout(cursor, tensors)
    return GGUFHeader(path, values, lists, tensors)


def _pairs(cursor: _Cursor, count: int) -> tuple[dict[str, Scalar], dict[str, _List]]:
    """Read the pairs; lists are stepped over."""
    values: dict[str, Scalar] = {}
    lists: dict[str, _List] = {}
    for _ in range(count):
        key = cursor.name("a key")
        if key in values or key in lists:
            raise cursor.damaged(f"its header names {key} twice")
        kind = int(cursor.number("I"))
        if kind == _LIST:
            inside, length = int(cursor.number("I")), int(cursor.number("Q"))
            lists[key] = _List(inside, length, cursor.at)
            cursor.step_over(key, inside, length)
        else:
            values[key] = cursor.value(key, kind)
    return values, lists


def _described(cursor: _Cursor) -> tuple[str, tuple[int, ...], int, int]:
    """Read one line of the list of tensors: name, shape, type, offset."""
    name = cursor.name("a tensor's name")
    n_axes = int(cursor.number("I"))
    if n_axes > _MOST_AXES:
        raise cursor.damaged(f"{name} has {n_axes} axes; at most {_MOST_AXES} are possible")
    shape = tuple(int(cursor.number("Q")) for _ in range(n_axes))[::-1]
    return name, shape, int(cursor.number("I")), int(cursor.number("Q"))


def _tensor(
    cursor: _Cursor, origin: int, alignment: int, name: str, shape: tuple[int, ...], kind: int,
    offset: int,
) -> GGUFTensor:  # fmt: skip
    """Hold one tensor against the file: a known type, whole blocks, all of it there."""
    if kind not in BLOCKS:
        raise DamagedModel(
            f"{cursor.path}: {name} is of type {kind}, which cannot be unpacked here; known are "
            + ", ".join(block.name for block in BLOCKS.values())
        )
    per_block, block_bytes = BLOCKS[kind].n_numbers, BLOCKS[kind].n_bytes
    if not shape or 0 in shape or shape[-1] % per_block:
        raise cursor.damaged(f"{name} {shape} does not divide into blocks of {per_block}")
    if offset % alignment:
        raise cursor.damaged(f"{name} begins at {offset}, which is no multiple of {alignment}")
    n_bytes = prod(shape) // per_block * block_bytes
    if n_bytes > cursor.size or origin + offset + n_bytes > cursor.size:
        raise DamagedModel(
            f"{cursor.path} is damaged or incomplete: {name} ends at byte "
            f"{origin + offset + n_bytes}, and the file has {cursor.size}"
        )
    return GGUFTensor(name, shape, kind, origin + offset, n_bytes)


def _check_layout(cursor: _Cursor, tensors: Sequence[GGUFTensor]) -> None:
    """See to it that each tensor has a name of its own and room of its own."""
    names: set[str] = set()
    reached = 0
    for tensor in sorted(tensors, key=lambda tensor: tensor.start):
        if tensor.name in names:
            raise cursor.damaged(f"its header names {tensor.name} twice")
        names.add(tensor.name)
        if tensor.start < reached:
            raise cursor.damaged(
                f"{tensor.name} begins at byte {tensor.start}, and the tensor before it ends at "
                f"{reached}"
            )
        reached = tensor.start + tensor.n_bytes


class _Cursor:
    """Reads a mapped file from front to back, and never past its end."""

    def __init__(self, path: Path, content: mmap.mmap) -> None:
        self.path = path
        self.at = 0
        self.size = len(content)
        self._content = content

    def damaged(self, why: str) -> DamagedModel:
        """Give the error that says what is wrong with the file."""
        return DamagedModel(f"{self.path} is damaged: {why}")

    def take(self, count: int) -> bytes:
        """Read so many bytes."""
        if count > self.size - self.at:
            raise DamagedModel(
                f"{self.path} is damaged or incomplete: {self.size} bytes, and its header asks "
                f"for {self.at + count}"
            )
        self.at += count
        return self._content[self.at - count : self.at]

    def number(self, letter: str) -> int | float:
        """Read one number of a `struct` letter."""
        found: int | float = struct.unpack(f"<{letter}", self.take(struct.calcsize(letter)))[0]
        return found

    def count(self, what: str, most: int) -> int:
        """Read how many of something follow."""
        found = int(self.number("Q"))
        if found > most:
            raise self.damaged(f"it has {found} {what}; more than {most} are not read")
        return found

    def text(self, longest: int) -> bytes:
        """Read a text: its length in bytes, then the bytes."""
        length = int(self.number("Q"))
        if length > longest:
            raise self.damaged(f"a text of {length} bytes; more than {longest} are not read")
        return self.take(length)

    def name(self, what: str) -> str:
        """Read a key or a name."""
        raw = self.text(_LONGEST_NAME)
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError:
            raise self.damaged(f"{what} is not UTF-8: {raw[:40]!r}") from None

    def value(self, key: str, kind: int) -> Scalar:
        """Read one value of a pair."""
        if kind == _BOOL:
            return bool(self.number("B"))
        if kind == _TEXT:
            return self.text(_LONGEST_TEXT).decode("utf-8", "replace")
        if kind not in _SCALARS:
            raise self.damaged(f"{key} is of type {kind}, which is not known")
        return self.number(_SCALARS[kind])

    def numbers(self, kind: int, count: int) -> tuple[int | float, ...]:
        """Read so many numbers of one kind."""
        raw = self.take(count * struct.calcsize(_SCALARS[kind]))
        return struct.unpack(f"<{count}{_SCALARS[kind]}", raw)

    def step_over(self, key: str, kind: int, count: int) -> None:
        """Go to the end of a list."""
        if kind in _SCALARS or kind == _BOOL:
            width = 1 if kind == _BOOL else struct.calcsize(_SCALARS[kind])
            self._skip(count * width)
        elif kind == _TEXT:
            self._skip_texts(count)
        elif kind == _LIST:
            raise self.damaged(f"{key} is a list of lists, which no model needs")
        else:
            raise self.damaged(f"{key} is a list of type {kind}, which is not known")

    def _skip(self, count: int) -> None:
        if count > self.size - self.at:
            self.take(count)  # says what is missing
        self.at += count

    def _skip_texts(self, count: int) -> None:
        """Step over texts: fifty thousand in a few hundredths of a second."""
        if count > (self.size - self.at) // 8:
            self._skip(count * 8)
        content, at, length_at = self._content, self.at, struct.Struct("<Q").unpack_from
        last = self.size - 8
        for _ in range(count):
            if at > last:
                break
            at += 8 + length_at(content, at)[0]
        else:
            if at <= self.size:
                self.at = at
                return
        raise DamagedModel(f"{self.path} is damaged or incomplete: it ends inside a list of texts")


@contextmanager
def _opened(path: Path) -> Iterator[_Cursor]:
    """Map a file for the time of a `with`."""
    try:
        if regular_size(path) == 0:
            raise DamagedModel(f"{path} is empty")
        with path.open("rb") as file:
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except FileNotFoundError:
        raise DamagedModel(f"no weights here: {path} is missing") from None
    except OSError as error:
        raise DamagedModel(f"cannot read {path}: {error.strerror}") from error
    with content:
        yield _Cursor(path, content)
