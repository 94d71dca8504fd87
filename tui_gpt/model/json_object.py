"""JSON files beside weights: one object each, in UTF-8, read only up to a size."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tui_gpt.errors import DamagedModel
from tui_gpt.files import read_regular, regular_size

_LARGEST = 10_000_000
"""Bytes; an index of a thousand shards has less."""


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
