"""Pane 2: all heads of a block small, one head large, and what one query reads in words.

Left the heads, right the chosen one as a heatmap, below it the chosen query's row as a
sentence; where there is room, the same row as a list with scores and bars. What is missing
or not a number is said to be so, and no digit stands in its place.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from rich.cells import cell_len
from rich.segment import Segment

from tui_gpt.config import GPTConfig
from tui_gpt.records.analyses.attention import Attention, AttentionRow
from tui_gpt.records.tensors import StageTensor
from tui_gpt.records.tokens import Token
from tui_gpt.views.heatmap import frame_for, heatmap_rows, legend
from tui_gpt.views.matrix import Mask, Matrix, matrix_of
from tui_gpt.views.numbers import short
from tui_gpt.views.palette import Palette
from tui_gpt.views.panes.attention.small_heads import head_name, small_heads, tiling
from tui_gpt.views.rows import Row, blank_rows, fitted, padded, width_of
from tui_gpt.views.sentence import at_position, flowing, gauge, percent
from tui_gpt.views.stage_text import title_row
from tui_gpt.views.text import transliterate
from tui_gpt.views.window import finished, has_halves, reason_rows, window

_WIDE = 64
"""Cells from which there is room for the small pictures."""

_HIGH = 14
"""Rows from which there is."""

_FEW_ROWS = 6
"""Rows that a list of a query's keys needs to be worth drawing, its heading included."""

_BAR = 48
"""Cells of the longest bar; with fewer than a few none is drawn."""


@dataclass(frozen=True, slots=True)
class AttentionPanel:
    """What was drawn, and the part of the large picture that is on the screen now."""

    rows: list[Row]
    top: int
    left: int
    page: int
    """Queries on the screen."""


def attention_pane(
    record: Attention,
    config: GPTConfig,
    tokens: tuple[Token, ...],
    *,
    head: int,
    cell: tuple[int, int],
    show_scores: bool,
    dense: bool,
    top: int,
    left: int,
    width: int,
    height: int,
    palette: Palette,
) -> AttentionPanel:
    """Draw the attention of one block.

    Args:
        record: Of that block.
        config: Of the model.
        tokens: Of the run.
        head: The chosen head, from 0.
        cell: (query, key) that is read; the query is the one whose row is told.
        show_scores: The large picture shows the scores before softmax, not the pattern.
        dense: Two queries a line in the large picture, where colours allow it.
        top: The first query of the last drawing.
        left: The first key of the last drawing.
        width: Cells of each row.
        height: Rows to return.
        palette: For this terminal.
    """
    row = record.row(head, cell[0])
    said = 3 if height >= _HIGH else 2
    heading = _heading(record, config, head, show_scores, width, palette)
    body = max(1, height - 1 - said)
    left_rows = _heads(record, head, width, body, palette)
    left_width = width_of(left_rows[0]) + 1 if left_rows else 0
    large = _large(
        record,
        tokens,
        row,
        head=head,
        cell=cell,
        show_scores=show_scores,
        dense=dense,
        top=top,
        left=left,
        width=width - left_width,
        height=body,
        palette=palette,
    )
    if left_rows:
        line = Segment("|" if palette.profile.ascii else "│", palette.faint)
        rows = [[*a, line, *b] for a, b in zip(left_rows, large.rows, strict=True)]
    else:
        rows = large.rows
    rows = [heading, *rows, *told(row, tokens, lines=said, width=width, palette=palette)]
    return replace(large, rows=finished(rows, width, height, palette))


def told(
    row: AttentionRow, tokens: tuple[Token, ...], *, lines: int, width: int, palette: Palette
) -> list[Row]:
    """Say what a query reads: tokens with percent, what is left, and the row's entropy.

    Args:
        row: One query of one head.
        tokens: Of the run.
        lines: Two or three; the last one is the entropy's.
        width: Cells of a line.
        palette: For this terminal.
    """
    query = at_position(tokens, row.query, palette)
    if row.problem:
        return reason_rows(f"{query}: {row.problem}", width, lines, palette)

    def part(i: int) -> Row:
        return [
            Segment(f"{at_position(tokens, row.keys[i], palette)} ", palette.plain),
            Segment(percent(row.weights[i]), palette.accent),
        ]

    def rest(shown: int) -> Row | None:
        others = row.weights[shown:]
        if not others:
            return None
        words = "1 other" if len(others) == 1 else f"{len(others)} others"
        return [Segment(f"{words} {percent(sum(others))}", palette.plain)]

    start: Row = [Segment(f" {query}", palette.strong), Segment(" reads", palette.plain)]
    worth = max(min(3, len(row.keys)), sum(weight >= 0.005 for weight in row.weights))
    sentence = flowing(start, worth, part, rest, width=width, lines=lines - 1, palette=palette)
    found = [*sentence, _entropy(row, width, palette)]
    above = blank_rows(lines - len(found), width, palette.plain)
    return [*above, *fitted(found, width, len(found), palette.plain)]


def _entropy(row: AttentionRow, width: int, palette: Palette) -> Row:
    """Put the row's entropy beside the most it could be."""
    seen = row.query + 1
    words = f" of at most ln {seen} = {short(row.ceiling)} nats"
    long = f"{words}, where all {seen} keys it sees are read alike"
    if seen > 1 and len(long) + 16 <= width:
        words = long
    return [
        Segment(" entropy ", palette.plain),
        Segment(short(row.entropy), palette.accent),
        Segment(words, palette.plain),
    ]


def _heading(
    record: Attention,
    config: GPTConfig,
    head: int,
    show_scores: bool,
    width: int,
    palette: Palette,
) -> Row:
    """Say which block, what the large picture shows, and which head it is."""
    glyphs = palette.profile.glyphs
    stage = record.scores.stage if show_scores else record.pattern.stage
    what = "scores" if show_scores else "pattern"
    block = f"Block {record.layer + 1} of {config.n_layer} · " if width >= _WIDE else ""
    right: Row = [
        Segment(f" {head_name(record.layer, head)}", palette.accent),
        Segment(transliterate(f" · head {head + 1} of {config.n_head} ", glyphs), palette.plain),
    ]
    return title_row(f" {block}attention {what}", stage, right, width, palette)


def _heads(
    record: Attention, head: int, width: int, height: int, palette: Palette
) -> list[Row] | None:
    """Draw the small pictures, or say why there are none; None without room."""
    if width < _WIDE or height < _HIGH - 4:
        return None
    room = max(33, int(width * 0.36))
    if record.overview is None:
        return reason_rows(f"missing: {record.pattern.missing}", room, height, palette)
    tiles = tiling(record.n_head, record.n_positions, room, height - 2)
    return small_heads(record, tiles, head=head, height=height, palette=palette)


def _large(
    record: Attention,
    tokens: tuple[Token, ...],
    row: AttentionRow,
    *,
    head: int,
    cell: tuple[int, int],
    show_scores: bool,
    dense: bool,
    top: int,
    left: int,
    width: int,
    height: int,
    palette: Palette,
) -> AttentionPanel:
    """Draw one head as a heatmap with its scale, and the query's row as a list below it."""
    source = record.scores if show_scores else record.pattern
    if source.tensor is None:
        reason = reason_rows(f"missing: {source.missing}", width, height, palette)
        return AttentionPanel(reason, top, left, 1)
    matrix = _matrix(record, source.tensor, tokens, head, palette)
    scale = 1 if height >= 6 else 0
    frame = frame_for(matrix, width, height - scale, dense=dense and has_halves(palette))
    top, left = window(frame, matrix.shape, cell, top, left)
    rows = heatmap_rows(
        matrix, frame, top=top, left=left, cursor=cell, width=width, palette=palette
    )
    rows = rows[: height - scale]
    legend_row = _scale(matrix, record, head, palette)
    room = height - len(rows) - scale
    if room >= _FEW_ROWS and not row.problem:
        rows += [padded(legend_row, width, palette.plain)] if scale else []
        rows += blank_rows(1, width, palette.plain)
        rows += _listed(row, tokens, width, height - len(rows), palette)
    else:
        rows += blank_rows(room, width, palette.plain)
        rows += [padded(legend_row, width, palette.plain)] if scale else []
    return AttentionPanel(fitted(rows, width, height, palette.plain), top, left, max(1, frame.rows))


def _matrix(
    record: Attention, tensor: StageTensor, tokens: tuple[Token, ...], head: int, palette: Palette
) -> Matrix:
    """Take the head's matrix; rows that are blocked have no value, rather than a NaN each."""
    matrix = matrix_of(tensor, head, tokens, None, palette, bound=record.largest_score)
    blocked = record.blocked[head]
    if not blocked.any():
        return matrix
    return replace(matrix, masked=_Blocked(matrix.masked, blocked))


class _Blocked:
    """A mask that also covers whole rows."""

    def __init__(self, before: Mask | None, blocked: NDArray[np.bool_]) -> None:
        self._before = before
        self._blocked = blocked

    def __call__(self, rows: range, columns: range) -> NDArray[np.bool_]:
        whole = np.repeat(self._blocked[rows.start : rows.stop, None], len(columns), axis=1)
        return whole if self._before is None else whole | self._before(rows, columns)


def _scale(matrix: Matrix, record: Attention, head: int, palette: Palette) -> Row:
    """Draw the scale: 0 to 1 for weights; for scores, the extremes of this head."""
    if matrix.sequential:
        return [
            *legend(matrix, 0.0, 1.0, palette),
            Segment("  each row adds up to 1", palette.faint),
        ]
    low, high = record.score_ranges[head].tolist()
    if math.isnan(low):
        return [Segment("no finite score", palette.problem)]
    return [
        *legend(matrix, low, high, palette),
        Segment("  blank: the future", palette.faint),
    ]


def _listed(
    row: AttentionRow, tokens: tuple[Token, ...], width: int, height: int, palette: Palette
) -> list[Row]:
    """List what the query reads: weight, score and a bar for each key, most first."""
    query = at_position(tokens, row.query, palette)
    names = [at_position(tokens, key, palette) for key in row.keys[: height - 1]]
    name_width = max(cell_len(name) for name in (f"{query} reads", *names))
    bar = min(_BAR, width - name_width - 24)
    bar = bar if bar >= 4 else 0
    title: Row = [Segment(f" {query} reads", palette.strong)]
    title = padded(title, name_width + 2, palette.plain)
    rows = [[*title, Segment(f"{'weight':>9} {'score':>9}", palette.faint)]]
    for i, name in enumerate(names):
        score = "-" if row.scores is None else short(row.scores[i])
        rows.append(
            [
                Segment(f" {name}", palette.plain),
                Segment(" " * (name_width - cell_len(name) + 1), palette.plain),
                Segment(f"{short(row.weights[i]):>9}", palette.accent),
                Segment(f" {score:>9} ", palette.plain),
                Segment(" " + gauge(row.weights[i], bar, palette), palette.stream),
            ]
        )
    return [padded(line, width, palette.plain) for line in rows[:height]]
