"""A heatmap says with its glyphs alone how large each value is, in rows of an exact width."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from rich.cells import cell_len

from tui_gpt.records.tensors import Statistics, statistics_of
from tui_gpt.views.heatmap import frame_for, heatmap_rows, legend, scrolled
from tui_gpt.views.matrix import Mask, Matrix, Names, largest
from tui_gpt.views.palette import palette
from tui_gpt.views.panes.pipeline.matrix_panel import frame_of, matrix_panel
from tui_gpt.views.profile import TerminalProfile
from tui_gpt.views.rows import plain_text

COLOURFUL = palette(TerminalProfile())
ASCII = palette(TerminalProfile(colour="none", glyphs="ascii"))


def matrix(
    values: Sequence[Sequence[float]],
    *,
    sequential: bool = False,
    masked: Mask | None = None,
    tokens: str = "",
    bound: float | None = None,
) -> Matrix:
    array = np.array(values, np.float32)
    if bound is None:
        bound = 1.0 if sequential else largest(array)
    label = tokens.__getitem__ if tokens else None
    return Matrix(array, masked, Names(str, array.shape[0]), label, sequential, bound)


def drawn(
    shown: Matrix,
    width: int,
    height: int = 30,
    *,
    top: int = 0,
    left: int = 0,
    ascii_only: bool = False,
    dense: bool = False,
) -> list[str]:
    """Draw a matrix; each row must have exactly the width asked for."""
    chosen = ASCII if ascii_only else COLOURFUL
    frame = frame_for(shown, width, height, dense=dense)
    rows = heatmap_rows(
        shown, frame, top=top, left=left, cursor=(0, 0), width=width, palette=chosen
    )
    texts = [plain_text(row) for row in rows]
    assert {cell_len(text) for text in texts} == {width}
    return [text.rstrip() for text in texts]


EIGHTHS = [[i / 8 for i in range(9)]]
BOTH_WAYS = [[i / 4 for i in range(-4, 5)]]


@pytest.mark.parametrize(
    ("ascii_only", "up", "around"),
    [(False, "·░░▒▒▓▓██", "≡═─╌·░▒▓█"), (True, ".,:;+*%#@", "%=~-.:+*#")],
    ids=["unicode", "ascii"],
)
def test_the_glyphs_rise_with_the_value(ascii_only: bool, up: str, around: str) -> None:
    assert drawn(matrix(EIGHTHS, sequential=True), 12, ascii_only=ascii_only)[1] == f"0 {up}"
    assert drawn(matrix(BOTH_WAYS), 12, ascii_only=ascii_only)[1] == f"0 {around}"
    assert len(set(around)) == 9


def test_no_rung_has_two_levels_that_look_alike() -> None:
    for colour in ("truecolor", "256", "16", "none"):
        for glyphs in ("unicode", "ascii"):
            marks = palette(TerminalProfile(colour=colour, glyphs=glyphs))
            assert len({(mark.glyph, mark.style) for mark in marks.diverging}) == 9
            # Without any colour the blocks carry five levels of the nine, in pairs.
            distinct = 5 if (colour, glyphs) == ("none", "unicode") else 9
            assert len({(mark.glyph, mark.style) for mark in marks.sequential}) == distinct


@pytest.mark.parametrize(("ascii_only", "marks"), [(False, "?∞∞ █"), (True, "?^v #")])
def test_what_is_no_number_has_a_mark_of_its_own(ascii_only: bool, marks: str) -> None:
    values = [[np.nan, np.inf, -np.inf, 5, 5]]

    def fourth(rows: range, columns: range) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        return np.array([[column == 3 for column in columns] for _ in rows])

    assert drawn(matrix(values, masked=fourth), 8, ascii_only=ascii_only)[1] == f"0 {marks}"


@pytest.mark.parametrize(
    ("value", "sequential", "glyph", "scale"),
    [(0, False, "·", "0 · 0"), (1, False, "█", "1 █ 1"), (-2.5, False, "≡", "-2.50 ≡ -2.50")],
)
def test_equal_values_are_one_even_colour_and_the_legend_says_which(
    value: float, sequential: bool, glyph: str, scale: str
) -> None:
    even = matrix([[value] * 4] * 3, sequential=sequential)
    assert [row[2:] for row in drawn(even, 7)[1:]] == [glyph * 4] * 3
    assert plain_text(legend(even, value, value, COLOURFUL)) == scale


def panel_of(shown: Matrix, found: Statistics, width: int, height: int) -> list[str]:
    frame = frame_of(shown, width, height, COLOURFUL, dense=False)
    rows = matrix_panel(
        shown,
        frame,
        found,
        cell=(0, 0),
        top=0,
        left=0,
        width=width,
        height=height,
        palette=COLOURFUL,
    ).rows
    assert len(rows) == height
    return [plain_text(row) for row in rows]


def test_an_outlier_leaves_the_true_ends_in_the_legend() -> None:
    values = [[1e-3, -1e-3, 1e6, 0]]
    shown = matrix(values)
    rows = panel_of(shown, statistics_of(shown.values), 60, 6)
    assert rows[-1].startswith("-1.0e-3 ··░▒")
    assert "█ 1.0e6  mean " in rows[-1]


def test_broken_cells_are_counted_and_the_ends_are_those_of_the_others() -> None:
    shown = matrix([[np.nan, -np.inf, -0.5, 2]])
    rows = panel_of(shown, statistics_of(shown.values), 60, 6)
    assert rows[-1].rstrip() == "-0.500 ╌··░▒▒▓▓█ 2  2 not finite  mean - std -"
    nothing = matrix([[np.nan, np.nan]])
    rows = panel_of(nothing, statistics_of(nothing.values), 60, 6)
    assert rows[-1].startswith("no finite value  2 not finite")


def test_the_window_moves_as_little_as_it_must() -> None:
    assert scrolled(0, 4, 5, 20) == 0
    assert scrolled(0, 5, 5, 20) == 1
    assert scrolled(7, 3, 5, 20) == 3
    assert scrolled(0, 19, 5, 20) == 15
    assert scrolled(15, 19, 10, 12) == 2  # the matrix became smaller
    assert scrolled(3, 1, 5, 4) == 0


def test_a_cell_that_is_wide_enough_holds_its_number() -> None:
    numbers = [[0.5, -0.00123456, -123456, 1e-9, -3.4e38]]
    header, row = drawn(matrix(numbers, tokens="abcde"), 45)
    assert header == "        a       b       c       d       e"
    assert row == "0   0.500 -1.2e-3 -123456  1.0e-9 -3.4e38"


def test_narrow_cells_repeat_their_glyph_under_a_token_or_a_ruler() -> None:
    row = [[0, 0.5, 1]]
    assert drawn(matrix(row, sequential=True, tokens="abc"), 13) == ["  a  b  c", "0 ···▒▒▒███"]
    assert drawn(matrix(row, sequential=True, tokens="abc"), 10) == ["  a b c", "0 ··▒▒██"]
    assert drawn(matrix(row, sequential=True, tokens="abc"), 6) == ["  abc", "0 ·▒█"]
    assert drawn(matrix(row, sequential=True, tokens="日本x"), 10)[0] == "  日本x"
    assert drawn(matrix([[0.0] * 24]), 27)[0] == "  0    5    10   15   20"
    assert drawn(matrix([[0.0] * 24]), 12, left=12)[0] == "     15"


def test_rows_that_do_not_fit_have_a_scroll_bar() -> None:
    tall = matrix([[1.0]] * 12, sequential=True)
    assert [row[-1] for row in drawn(tall, 6, 7)[1:]] == ["█", "█", "█", "│", "│", "│"]
    assert [row[-1] for row in drawn(tall, 6, 7, top=6)[1:]] == ["│", "│", "│", "█", "█", "█"]
    assert drawn(tall, 6, 7, top=6)[1].startswith("6")
    assert [row[-1] for row in drawn(tall, 6, 7, ascii_only=True)[1:]] == list("###|||")


def test_dense_rows_show_two_rows_of_the_matrix_a_line() -> None:
    values = [[0.0, 1.0], [1.0, 0.0], [0.5, 0.5]]
    shown = matrix(values, sequential=True)
    assert drawn(shown, 10, dense=True)[1:] == ["0 1 ▀▀▀▀", "2   ▀▀▀▀"]
    frame = frame_for(shown, 10, 30, dense=True)
    rows = heatmap_rows(shown, frame, top=0, left=0, cursor=(2, 0), width=10, palette=COLOURFUL)
    upper, lower = (segment for segment in rows[1] if "▀" in segment.text)
    assert upper.style is not None
    assert lower.style is not None
    assert (upper.style.color, upper.style.bgcolor) == (lower.style.bgcolor, lower.style.color)


def test_dense_is_left_out_where_half_blocks_cannot_carry_it() -> None:
    shown = matrix([[0, 1], [1, 0]])
    for profile in (TerminalProfile(colour="16"), TerminalProfile(glyphs="ascii")):
        assert not frame_of(shown, 20, 10, palette(profile), dense=True).dense
    assert frame_of(shown, 20, 10, COLOURFUL, dense=True).dense
