"""Numbers as text: exact where a value is read, short where it stands among others."""

from __future__ import annotations

import math

_WIDEST = 7
"""Cells of a short number."""


def exact(value: object) -> str:
    """Give the shortest text that reads back as the same number.

    Args:
        value: A numpy scalar, whose own precision counts, or a Python number.
    """
    return str(value)


def short(value: float | None, digits: int = 3) -> str:
    """Round to some significant digits, at most seven cells; a dash where there is none."""
    if value is None:
        return "-"
    if math.isnan(value) or math.isinf(value):
        return str(value)
    if value == int(value) and abs(value) < 10**6:
        return str(int(value))
    power = int(f"{value:.{digits - 1}e}".partition("e")[2])  # once it is rounded
    if -3 <= power < 5:
        fixed = f"{value:.{max(0, digits - 1 - power)}f}"
        if len(fixed) <= _WIDEST:
            return fixed
    scaled = _scientific(value, max(0, digits - 2))
    return scaled if len(scaled) <= _WIDEST else _scientific(value, 0)


def _scientific(value: float, decimals: int) -> str:
    mantissa, _, exponent = f"{value:.{decimals}e}".partition("e")
    return f"{mantissa}e{int(exponent)}"


def counted(number: int, one: str, many: str | None = None) -> str:
    """Say a number of things: 1 block, 2 blocks, 114,560 parameters."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
