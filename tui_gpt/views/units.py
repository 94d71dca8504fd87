"""Bytes and counts in words: MB is 1000² bytes and MiB 1024², and neither is called the other."""

from __future__ import annotations

_DECIMAL = ("B", "kB", "MB", "GB", "TB", "PB", "EB")
_BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def decimal(n_bytes: int, places: int | None = None) -> str:
    """Say bytes in powers of 1000: 497.8 MB."""
    return _scaled(n_bytes, 1000, _power(n_bytes), places, _DECIMAL)


def binary(n_bytes: int, places: int | None = None) -> str:
    """Say bytes in powers of 1024, the same power as `decimal` takes: 474.7 MiB."""
    return _scaled(n_bytes, 1024, _power(n_bytes), places, _BINARY)


def both(n_bytes: int) -> str:
    """Say bytes both ways: 497.8 MB = 474.7 MiB."""
    return f"{decimal(n_bytes)} = {binary(n_bytes)}" if n_bytes >= 1000 else decimal(n_bytes)


def brief(n_bytes: int) -> str:
    """Say bytes in powers of 1000, in seven cells: 206 MB, 50.3 MB, 1.65 GB."""
    value = n_bytes / 1000 ** _power(n_bytes)
    return decimal(n_bytes, 0 if value >= 99.95 else None)


def two_units(n_bytes: int) -> str:
    """Show how both units come from one number, to two places."""
    power = _power(n_bytes)
    if not power:
        return f"{n_bytes:,} bytes"
    raised = f"^{power}" if power > 1 else ""
    return (
        f"{n_bytes:,} bytes / 1000{raised} = {decimal(n_bytes, 2)}; "
        f"/ 1024{raised} = {binary(n_bytes, 2)}"
    )


def count_text(count: int, cells: int, *, signed: bool = False) -> str:
    """Write a count exactly, with commas, or rounded where that is longer than there is room."""
    text = f"{count:+,}" if signed else f"{count:,}"
    if len(text) <= cells:
        return text
    return (f"{count:+.3e}" if signed else f"{count:.3e}").replace("e+0", "e").replace("e+", "e")


def _power(n_bytes: int) -> int:
    """Find the largest unit that is not larger than the number, as it will be rounded."""
    power = 0
    while power < len(_DECIMAL) - 1 and n_bytes >= 999.95 * 1000**power:
        power += 1
    return power


def _scaled(n_bytes: int, base: int, power: int, places: int | None, units: tuple[str, ...]) -> str:
    if not power:
        return f"{n_bytes} {units[0]}"
    value = n_bytes / base**power
    decimals = (2 if value < 9.995 else 1) if places is None else places
    return f"{value:,.{decimals}f} {units[power]}"
