"""What the terminal at the far end can show, decided once and passed down."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Colour = Literal["truecolor", "256", "16", "none"]
"""The colour ladder, best first. `none` sends no colour code at all."""

Glyphs = Literal["unicode", "ascii"]
"""`ascii` sends no character from 128 on."""


@dataclass(frozen=True, slots=True)
class TerminalProfile:
    """One terminal's abilities; several may be served by one process."""

    colour: Colour = "truecolor"
    glyphs: Glyphs = "unicode"
    width: int = 80
    """Cells, when the program started."""
    height: int = 24
    mouse: bool = False
    """Taken from the terminal; otherwise people select and copy as usual."""

    @property
    def ascii(self) -> bool:
        """True where every character must be below 128."""
        return self.glyphs == "ascii"
