"""Where the program's own files are, and how others are read and written.

A file is written whole or not at all, and read only where it is a regular file: a pipe
that bears a file's name would keep its reader waiting.
"""

from __future__ import annotations

import errno
import json
import os
import stat
import tempfile
from pathlib import Path
from typing import Any

from tui_gpt.errors import CannotWrite, DamagedModel

BUNDLED_MODELS = ("shakespeare", "shakespeare-2017")
"""The models that ship with the program, the default first."""

DEFAULT_PROMPT = "To be, or not to be"


_LARGEST = 10_000_000
"""Bytes; an index of a thousand shards has less."""


def assets() -> Path:
    """Give the folder of bundled models, recordings and vocabularies.

    An installed wheel carries it inside the package; a checkout has it beside the package.
    """
    package = Path(__file__).parent
    packed = package / "assets"
    return packed if packed.is_dir() else package.parent / "assets"


def regular_size(path: Path) -> int:
    """Give the size in bytes of a regular file.

    Raises:
        OSError: There is none that can be looked at; `strerror` says in words why.
    """
    found = path.stat()
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, "it is a folder, not a file")
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "it is a pipe or a device, not a regular file")
    return found.st_size


def read_regular(path: Path) -> bytes:
    """Read the whole of a regular file.

    Raises:
        OSError: It is none, or may not be read; `strerror` says in words why.
    """
    regular_size(path)
    return path.read_bytes()


def read_object(path: Path) -> dict[str, Any]:
    """Read one JSON object; a byte-order mark is allowed, the locale does not matter.

    Raises:
        DamagedModel: There is none, or it may not be read.
    """
    try:
        size = regular_size(path)
        if size > _LARGEST:
            raise DamagedModel(f"{path} has {size} bytes; more than {_LARGEST} are not read")
        raw = json.loads(read_regular(path).decode("utf-8-sig"))
    except OSError as error:
        raise DamagedModel(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise DamagedModel(f"{path} is damaged: it is no JSON") from error
    if not isinstance(raw, dict):
        raise DamagedModel(f"{path} is damaged: it is no JSON object")
    return raw


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that a reader finds the old one or the new one, never a part.

    Raises:
        CannotWrite: The folder is missing or read-only, the disk is full, or a folder or
            device has the file's name.
    """
    partial: str | None = None
    try:
        if path.exists():
            regular_size(path)  # a rename over /dev/null would replace the device
        descriptor, partial = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(partial, 0o666 & ~_umask())
        os.replace(partial, path)
    except OSError as error:
        raise CannotWrite(path, error.strerror or str(error)) from error
    finally:
        if partial is not None and os.path.exists(partial):
            os.unlink(partial)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
