"""Numbers as text: exact where a value is read, short where it stands among others."""

from __future__ import annotations

import math


def exact(value: object) -> str:
    """Give the shortest text that reads back as the same number.

    Args:
        value: A numpy scalar, whose own precision counts, or a Python number.
    """
    return str(value)


def short(value: float | None, digits: int = 3) -> str:
    """Round to some significant digits, at most eight cells wide; a dash where there is none."""
    if value is None:
        return "-"
    if math.isnan(value) or math.isinf(value):
        return str(value)
    if value == int(value) and abs(value) < 10**6:
        return str(int(value))
    if 1e-3 <= abs(value) < 10**5:
        decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
        return f"{value:.{decimals}f}"
    return f"{value:.{max(0, digits - 2)}e}".replace("e-0", "e-").replace("e+0", "e")


def counted(number: int, one: str, many: str | None = None) -> str:
    """Say a number of things: 1 block, 2 blocks, 114,560 parameters."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
