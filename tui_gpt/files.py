"""Where the program's own files are, and how it writes others: whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from tui_gpt.errors import CannotWrite

BUNDLED_MODELS = ("shakespeare", "shakespeare-2017")
"""The models that ship with the program, the default first."""

DEFAULT_PROMPT = "To be, or not to be"


def assets() -> Path:
    """Give the folder of bundled models, recordings and vocabularies.

    An installed wheel carries it inside the package; a checkout has it beside the package.
    """
    package = Path(__file__).parent
    packed = package / "assets"
    return packed if packed.is_dir() else package.parent / "assets"


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that a reader finds the old one or the new one, never a part.

    Raises:
        CannotWrite: The folder is missing or read-only, or the disk is full.
    """
    partial: str | None = None
    try:
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
