"""Pickled checkpoints, opened only by torch's weights-only loading, on the CPU.

A pickle is a program. Before torch sees it, its list of instructions is read without running
any: what it would call beyond tensors is named in the refusal. Torch then applies its own, shorter
list. There is no other way in, and torch's own error text, which explains how to switch its
safety off, is not passed on. Tensors of today's zip form stay in the file until they are used.
"""

from __future__ import annotations

import pickletools
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from tui_gpt.checkpoints.headers import TensorEntry, refuse_pointer
from tui_gpt.checkpoints.memory_check import check_memory
from tui_gpt.errors import DamagedModel
from tui_gpt.files import regular_size

if TYPE_CHECKING:
    import torch

_LARGEST_PICKLE = 10_000_000
"""Bytes of instructions; those of GPT-2 XL with its optimizer are a tenth of that."""

_MOST_MEMBERS = 100_000
"""Files in the zip; every tensor is one."""

_ZIP = b"PK\x03\x04"

_HARMLESS = ("torch", "collections")
"""Packages whose names a checkpoint of tensors mentions."""

_OLD_FORM = 5
"""Pickles at the start of a file of the old form: magic, version, system, object, storages."""

_CODES = {
    "torch.float16": "F16", "torch.bfloat16": "BF16", "torch.float32": "F32",
    "torch.float64": "F64", "torch.bool": "BOOL", "torch.uint8": "U8", "torch.int8": "I8",
    "torch.int16": "I16", "torch.int32": "I32", "torch.int64": "I64",
}  # fmt: skip
"""safetensors' names for torch's number formats."""


@dataclass(frozen=True, slots=True)
class State:
    """What a pickled checkpoint holds."""

    tensors: dict[str, torch.Tensor]
    """By key."""
    model_args: object | None
    """The sizes, where nanoGPT wrote the file."""


def load_state(path: Path) -> State:
    """Load the tensors of a state dict, or of the `model` of a nanoGPT checkpoint.

    Raises:
        DamagedModel: It is not whole, or it holds anything but tensors, numbers and names.
    """
    raw = _load(path)
    if isinstance(raw, Mapping) and "model" in raw and "model_args" in raw:
        return State(_tensors(path, raw["model"]), raw["model_args"])
    return State(_tensors(path, raw), None)


def entries_of(path: Path, tensors: Mapping[str, torch.Tensor]) -> tuple[TensorEntry, ...]:
    """Describe tensors as the header of a safetensors file does."""
    return tuple(
        TensorEntry(
            key, tuple(tensor.shape), _CODES.get(str(tensor.dtype), str(tensor.dtype)), path
        )
        for key, tensor in tensors.items()
    )


def _load(path: Path) -> object:
    """Let torch load what was looked at first."""
    zipped = _inspect(path)
    if not zipped:
        check_memory(str(path), path.stat().st_size)  # the old form is read as a whole

    import torch

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they would be drawn over the screen
            loaded: object = torch.load(
                str(path), map_location="cpu", weights_only=True, mmap=zipped
            )
            return loaded
    except Exception as error:  # torch and pickle raise any kind, with advice we do not repeat
        raise DamagedModel(
            f"{path} is damaged or incomplete, or holds more than tensors, numbers and names; "
            "torch's weights-only loading does not take it"
        ) from error


def _tensors(path: Path, raw: object) -> dict[str, torch.Tensor]:
    """Give the tensors of a state dict by key.

    Raises:
        DamagedModel: It is no state dict, or a tensor has less in the file than its shape.
    """
    import torch

    if not isinstance(raw, Mapping) or not raw:
        raise DamagedModel(f"{path} holds no tensors by name")
    for key, tensor in raw.items():
        if not isinstance(key, str) or not isinstance(tensor, torch.Tensor):
            raise DamagedModel(f"{path}: {key!s:.80} is no tensor; a state dict is expected")
        plain = tensor.layout == torch.strided and tensor.device.type == "cpu"
        if not plain or tensor.is_quantized or tensor.is_conj() or tensor.is_neg():
            raise DamagedModel(f"{path}: {key} is no plain tensor of numbers")
        stored = tensor.untyped_storage().nbytes() // tensor.element_size()
        if tensor.numel() > stored:
            raise DamagedModel(
                f"{path}: {key} {tuple(tensor.shape)} needs {tensor.numel()} numbers and "
                f"{stored} are stored"
            )
    return dict(raw)


def _inspect(path: Path) -> bool:
    """Read what a pickle would do, without doing it.

    Returns:
        True for the zip form, False for the old one.

    Raises:
        DamagedModel: It is not whole, or calls what is no tensor.
    """
    try:
        size = regular_size(path)
        with path.open("rb") as file:
            start = file.read(64)
            refuse_pointer(path, start, size)
            zipped = start.startswith(_ZIP)
            named = _named_in_zip(path, size) if zipped else _named_in_old_form(path, file)
    except FileNotFoundError:
        raise DamagedModel(f"no weights here: {path} is missing") from None
    except OSError as error:
        raise DamagedModel(f"cannot read {path}: {error.strerror}") from error
    for name in named:
        if name.partition(".")[0] not in _HARMLESS:
            raise DamagedModel(
                f"{path} would call {name:.80}, which is no tensor, and a pickle's calls can run "
                "commands; it is not opened: save the state dict alone"
            )
    return zipped


def _named_in_zip(path: Path, size: int) -> list[str]:
    """List what the pickle in a zip names."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            total = sum(member.file_size for member in members)
            packed = any(member.compress_type != zipfile.ZIP_STORED for member in members)
            if packed or total > size or len(members) > _MOST_MEMBERS:
                raise DamagedModel(
                    f"{path} is a zip of {len(members)} files that unpacks {size} bytes to "
                    f"{total}; a checkpoint is not packed"
                )
            pickled = [member for member in members if member.filename.endswith("/data.pkl")]
            if len(pickled) != 1:
                raise DamagedModel(f"{path} is a zip with {len(pickled)} pickles in it, not one")
            if pickled[0].file_size > _LARGEST_PICKLE:
                raise DamagedModel(_too_long(path, pickled[0].file_size))
            with archive.open(pickled[0]) as file:
                return list(_named(path, file))
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, ValueError) as error:
        raise DamagedModel(
            f"{path} is damaged or incomplete: {size} bytes, and the end of the zip is not there"
        ) from error


def _named_in_old_form(path: Path, file: IO[bytes]) -> list[str]:
    """List what the pickles at the start of a file name."""
    file.seek(0)
    return [name for _ in range(_OLD_FORM) for name in _named(path, file)]


def _named(path: Path, file: IO[bytes]) -> Iterator[str]:
    """Walk over a pickle's instructions and give every name it would look up."""
    texts: list[str] = []
    try:
        for opcode, argument, position in pickletools.genops(file):
            if (position or 0) > _LARGEST_PICKLE:
                raise DamagedModel(_too_long(path, position or 0))
            if opcode.name in ("GLOBAL", "INST"):
                yield str(argument).replace(" ", ".")
            elif opcode.name == "STACK_GLOBAL":
                yield ".".join(texts[-2:]) or "something unnamed"
            elif isinstance(argument, str):
                texts = [*texts[-1:], argument]
    except DamagedModel:
        raise
    except Exception as error:  # pickletools raises what it likes on bytes that are no pickle
        raise DamagedModel(
            f"{path} is damaged or incomplete: it does not begin as a checkpoint does"
        ) from error


def _too_long(path: Path, size: int) -> str:
    return f"{path} has {size} bytes of instructions; more than {_LARGEST_PICKLE} are not read"
