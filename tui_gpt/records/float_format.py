"""Float32 numbers as the shortest decimal text that reads back as the same float32.

A float32 turned into a double shows digits that were never measured: 0.1 becomes
0.10000000149011612. Here it becomes the double 0.1, which every JSON or CSV writer prints
short, and which rounds to the float32 it came from.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def shortest_float(value: float) -> float:
    """Give the double whose text is the shortest that names this float32."""
    return float(str(np.float32(value)))


def shortest_floats(values: NDArray[np.float32]) -> list[float]:
    """Do the same for a row of numbers; NaN and infinities stay what they are.

    Args:
        values: (n,); 128 bytes a number are in use meanwhile, so not a whole tensor.
    """
    numbers: list[float] = values.astype("U").astype(np.float64).tolist()
    return numbers
