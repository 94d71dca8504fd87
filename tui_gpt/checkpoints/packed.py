"""The numbers of a GGUF file as float32: packed blocks are opened by the package `gguf`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_gpt.checkpoints.headers import TensorEntry
from tui_gpt.errors import DamagedModel
from tui_gpt.gguf_header import BLOCKS

if TYPE_CHECKING:
    import torch

_NUMBERS = {block.name: number for number, block in BLOCKS.items()}
"""ggml's numbers of the types, by name."""


def unpack(entry: TensorEntry) -> torch.Tensor:
    """Read one tensor: in its shape, float32.

    Raises:
        DamagedModel: The file can no longer be read.
    """
    import numpy as np
    import torch
    from gguf import GGMLQuantizationType
    from gguf.quants import dequantize

    number = _NUMBERS[entry.dtype]
    block = BLOCKS[number]
    *rows, width = entry.shape
    n_bytes = width // block.n_numbers * block.n_bytes
    try:
        blocks = np.memmap(entry.path, np.uint8, "r", offset=entry.start, shape=(*rows, n_bytes))
        if entry.dtype == "F32":
            numbers = blocks.view("<f4")
        else:
            numbers = dequantize(np.asarray(blocks), GGMLQuantizationType(number))
    except (OSError, ValueError) as error:
        raise DamagedModel(f"cannot read {entry.path}: {entry.key} is not whole") from error
    return torch.from_numpy(np.array(numbers, dtype=np.float32).reshape(entry.shape))
