"""The one door for text from outside: whatever comes in, what comes out only draws."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tui_gpt.records.tokens import Token
from tui_gpt.views.profile import Glyphs
from tui_gpt.views.text import fit, label, quoted, sanitize, transliterate

ANYTHING = st.text(st.characters())
"""Every code point, control characters and lone surrogates included."""

GLYPHS: st.SearchStrategy[Glyphs] = st.sampled_from(("unicode", "ascii"))

TOKENS = st.builds(Token, st.integers(0, 50_256), st.binary(max_size=6))


def only_draws(text: str) -> bool:
    return all(unicodedata.category(char)[0] != "C" for char in text) and not (
        {"\u2028", "\u2029"} & set(text)
    )


@given(text=ANYTHING, glyphs=GLYPHS)
def test_no_control_character_comes_out(text: str, glyphs: Glyphs) -> None:
    for shown in (sanitize(text, glyphs), quoted(text, glyphs)):
        assert only_draws(shown)
        shown.encode("utf-8")  # a lone surrogate would raise here
        assert glyphs == "unicode" or shown.isascii()


@given(text=ANYTHING, glyphs=GLYPHS)
def test_line_ends_are_kept_only_where_they_are_asked_for(text: str, glyphs: Glyphs) -> None:
    kept = sanitize(text, glyphs, lines=True)
    assert kept.split("\n") == [sanitize(line, glyphs) for line in text.split("\n")]


@given(token=TOKENS, glyphs=GLYPHS)
def test_a_label_only_draws_and_has_no_blank(token: Token, glyphs: Glyphs) -> None:
    shown = label(token, glyphs)
    assert shown
    assert only_draws(shown)
    assert glyphs == "unicode" or shown.isascii()
    assert not token.bytes or not any(char.isspace() for char in shown)


@given(text=ANYTHING)
def test_our_own_sentences_are_ascii_where_only_ascii_is_shown(text: str) -> None:
    assert transliterate(sanitize(text), "ascii").isascii()
    assert transliterate(text, "unicode") == text


@given(text=ANYTHING, width=st.integers(0, 40), glyphs=GLYPHS, keep_end=st.booleans())
def test_fitted_text_has_exactly_the_width_asked_for(
    text: str, width: int, glyphs: Glyphs, keep_end: bool
) -> None:
    fitted = fit(sanitize(text, glyphs), width, glyphs, keep_end=keep_end)
    assert cell_len(fitted) == width


@pytest.mark.parametrize(
    ("case", "text", "shown"),
    [
        ("B12", "\x1b[31mred", "␛[31mred"),
        ("B12", "\x1b[2J", "␛[2J"),
        ("B12", "\x1b]0;PWNED\x07", "␛]0;PWNED␇"),
        ("B12", "\x1b]52;c;aGk=", "␛]52;c;aGk="),
        ("B12", "\x9b31m", r"\x9b31m"),
        ("B14", "[/]", "[/]"),
        ("B14", "[b]x[/b]", "[b]x[/b]"),
        ("B14", "[/path]", "[/path]"),
        ("B16", "a\r\nb\tc", r"a\r\nb\tc"),
        ("B11", "caf\udce9", r"caf\udce9"),
        ("B09", "日本", "日本"),
        ("", "\u202eabc\u200b", r"\u202eabc\u200b"),
        ("", "e\u0301", r"e\u0301"),
        ("", "\U000e0041", r"\U000e0041"),
        ("", "\x7f", "␡"),
    ],
)
def test_control_characters_become_visible_and_brackets_stay(
    case: str, text: str, shown: str
) -> None:
    assert sanitize(text) == shown, case


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("日é", r"\u65e5\xe9"),
        ("\x1b[2J", r"\x1b[2J"),
        ("🙂", r"\U0001f642"),
        ("a\nb", r"a\nb"),
        ("[b]", "[b]"),
    ],
)
def test_below_128_every_other_character_is_written_out(text: str, shown: str) -> None:
    assert sanitize(text, "ascii") == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("softmax(q·kᵀ / √16)", "softmax(q-k^T / sqrt16)"),
        ("γ · (x − μ) / √(σ² + ε) + β", "gamma - (x - mean) / sqrt(sd^2 + eps) + beta"),
        ("0…50256", "0...50256"),
        ("plain", "plain"),
        ("∩", r"\u2229"),
    ],
)
def test_formulas_are_spoken_in_ascii(text: str, shown: str) -> None:
    assert transliterate(text, "ascii") == shown


@pytest.mark.parametrize(
    ("token", "unicode", "ascii_only"),
    [
        (Token(1, b" "), "␣", "_"),
        (Token(198, b"\n"), r"\n", r"\n"),
        (Token(995, b" world"), "␣world", "_world"),
        (Token(235, b"\x8d"), r"\x8d", r"\x8d"),
        (Token(41840, b"\xf0\x9f\x91"), r"\xf0\x9f\x91", r"\xf0\x9f\x91"),
        (Token(50300, b""), "<id 50300>", "<id 50300>"),
        (Token(13412, b"[/"), "[/", "[/"),
        (Token(2, "\u00a0".encode()), r"\xa0", r"\xa0"),
        (Token(3, "\u3000".encode()), r"\u3000", r"\u3000"),
    ],
)
def test_a_token_is_named_by_what_it_stands_for(
    token: Token, unicode: str, ascii_only: str
) -> None:
    assert label(token) == unicode
    assert label(token, "ascii") == ascii_only


@pytest.mark.parametrize(
    ("text", "width", "fitted"),
    [
        ("abc", 5, "abc  "),
        ("abc", 3, "abc"),
        ("abcd", 3, "ab…"),
        ("日本語", 6, "日本語"),
        ("日本語", 5, "日本…"),
        ("日本語", 4, "日… "),
        ("🇩🇪🇫🇷", 3, "🇩🇪…"),
        ("abc", 1, "…"),
        ("abc", 0, ""),
    ],
)
def test_a_cut_is_marked_and_counted_in_cells(text: str, width: int, fitted: str) -> None:
    assert fit(text, width) == fitted


def test_a_path_is_cut_at_its_front() -> None:
    assert fit("/models/mine", 8, keep_end=True) == "…ls/mine"
    assert fit("/models/mine", 8, "ascii", keep_end=True) == "~ls/mine"


def test_quotation_marks_are_those_the_terminal_has() -> None:
    assert quoted("a\nb") == r"“a\nb”"
    assert quoted("a", "ascii") == '"a"'
