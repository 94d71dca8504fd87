r"""The one door for text from outside: prompts, tokens, file names, library messages.

What comes out is plain text that no terminal obeys and no markup reader sees: control
characters become visible ones, in ASCII-only terminals everything from 128 on becomes an
escape, and widths are counted in cells.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import TYPE_CHECKING

from rich.cells import cell_len

from tui_gpt.records.tokens import Token
from tui_gpt.views.profile import Glyphs

if TYPE_CHECKING:
    from tui_gpt.records.trace import Run

_NAMED = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}

_INVISIBLE = frozenset({"Cc", "Cf", "Zl", "Zp", "Cs", "Co", "Cn"})
"""Unicode categories that draw nothing, or that steer a terminal or the reading order."""

_ASCII_INSTEAD = {
    "…": "...", "·": "-", "×": "x", "−": "-", "–": "-", "—": "-", "→": "->", "√": "sqrt",
    "ᵀ": "^T", "γ": "gamma", "β": "beta", "μ": "mean", "σ": "sd", "²": "^2", "ε": "eps",
    "Φ": "Phi", "π": "pi", "ω": "w", "½": "0.5", "“": '"', "”": '"', "‘": "'", "’": "'",
    "␣": "_", "±": "+-", "≤": "<=", "≥": ">=", "Δ": "d", "│": "|", "─": "-", "▸": ">",
    "⁻": "^-", "³": "^3", "↑": "^", "↓": "v", "←": "<-", "⇥": "Tab", "•": "*", "∅": "none",
}  # fmt: skip
"""How our own words are written where only ASCII is shown."""


def sanitize(text: str, glyphs: Glyphs = "unicode", *, lines: bool = False) -> str:
    r"""Make outside text safe to print.

    Args:
        text: Anything at all, lone surrogates included.
        glyphs: `ascii` writes every character from 128 on as an escape.
        lines: Keep line ends as they are; otherwise they become `\n`.

    Returns:
        Text without control, format or unassigned characters. `\n`, `\r`, `\t` are written
        with a backslash, other control characters by their Unicode pictures (ESC is ␛), the
        rest as `\u200b`.
    """
    return "".join(char if lines and char == "\n" else _visible(char, glyphs) for char in text)


def transliterate(text: str, glyphs: Glyphs) -> str:
    """Write our own sentences in the characters the terminal has: γ or gamma, … or three dots.

    Unlike `sanitize` it expects no control characters, and reads best, not back.
    """
    if glyphs == "unicode" or text.isascii():
        return text
    return "".join(
        char if char.isascii() else _ASCII_INSTEAD.get(char) or _visible(char, glyphs)
        for char in text
    )


def formula(text: str, glyphs: Glyphs) -> str:
    """Write a formula in the characters the terminal has; a dot is a product, not a dash."""
    return transliterate(text.replace("·", "*") if glyphs == "ascii" else text, glyphs)


def label(token: Token, glyphs: Glyphs = "unicode") -> str:
    r"""Name a token in a heading or a table: blanks are visible, bytes are written out.

    Returns:
        The sanitized text with blanks as ␣ (`_` in ASCII) and other spaces as `\u3000`;
        `+<s>` where the tokenizer added it;
        `\xf0\x9f` where the bytes are no character by themselves; `<unused 5>` where the
        vocabulary has no such id, `<id 5>` where there is no vocabulary.
    """
    if not token.bytes:
        return f"<unused {token.id}>" if token.unused else f"<id {token.id}>"
    text = token.text
    if token.added:
        return f"+{sanitize(text or '', glyphs)}"
    if text is None:
        return "".join(f"\\x{byte:02x}" for byte in token.bytes)
    blank = "_" if glyphs == "ascii" else "␣"
    return "".join(
        blank if char == " " else _visible(char, "ascii") if char.isspace() else char
        for char in sanitize(text, glyphs)
    )


def named(token: Token, glyphs: Glyphs = "unicode") -> str:
    """Put a token's label between quotation marks, to stand in a sentence."""
    return quoted(label(token, glyphs), glyphs)


def prompt_words(run: Run, glyphs: Glyphs = "unicode") -> str:
    """Show a prompt in one line: a text between quotation marks, ids as ids."""
    return f"ids {run.prompt}" if run.is_ids_only else quoted(run.prompt, glyphs)


def quoted(text: str, glyphs: Glyphs = "unicode") -> str:
    """Put sanitized text between quotation marks."""
    left, right = ('"', '"') if glyphs == "ascii" else ("“", "”")
    return f"{left}{sanitize(text, glyphs)}{right}"


def fit(text: str, width: int, glyphs: Glyphs = "unicode", *, keep_end: bool = False) -> str:
    """Cut or pad text to an exact width in cells, marking a cut.

    Args:
        text: Harmless text.
        width: Cells, 0 or more.
        glyphs: Decides how a cut is marked.
        keep_end: Cut at the front.

    Returns:
        Text of exactly `width` cells.
    """
    space = width - cell_len(text)
    if space >= 0:
        return text + " " * space
    mark = "~" if glyphs == "ascii" else "…"
    if width <= 1:
        return mark[:width]
    chars = reversed(text) if keep_end else iter(text)
    kept: list[str] = []
    used = 1
    for char in chars:
        used += cell_len(char)
        if used > width:
            used -= cell_len(char)
            break
        kept.append(char)
    padding = " " * (width - used)
    return (
        f"{padding}{mark}{''.join(reversed(kept))}"
        if keep_end
        else f"{''.join(kept)}{mark}{padding}"
    )


@lru_cache(4096)
def _visible(char: str, glyphs: Glyphs) -> str:
    """Give one character as something that only draws."""
    if char in _NAMED:
        return _NAMED[char]
    code = ord(char)
    if glyphs == "unicode" and (code < 0x20 or code == 0x7F):
        return chr(0x2400 + code) if code < 0x20 else "␡"
    if glyphs == "unicode" and unicodedata.category(char) not in _INVISIBLE and cell_len(char):
        return char
    if 0x20 <= code < 0x7F:
        return char
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
