"""The alphabet of byte-level vocabulary files: each byte is written as one printable character."""

from __future__ import annotations


def byte_of_printable() -> dict[str, int]:
    """Give the byte behind each character, in the order of GPT-2's first 256 ids.

    Printable bytes stand for themselves and come first; the other 68 are written as the
    characters from U+0100 on.
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(0x100) if byte not in printable]
    table = {chr(byte): byte for byte in printable}
    table.update({chr(0x100 + i): byte for i, byte in enumerate(hidden)})
    return table


_LATIN = {ord(char): byte for char, byte in byte_of_printable().items()}


def entry_bytes(entry: str) -> bytes:
    """Give the bytes of a vocabulary entry; one in another alphabet is text as it stands."""
    try:
        return entry.translate(_LATIN).encode("latin-1")
    except UnicodeEncodeError:
        return entry.encode("utf-8", "replace")
