"""The right side of pane 1: what the chosen stage is, its picture, its scale."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rich.segment import Segment

from tui_gpt.config import GPTConfig
from tui_gpt.records.tensors import StageTensor, Statistics
from tui_gpt.records.tokens import Token
from tui_gpt.views.heatmap import (
    Matrix,
    frame_for,
    heatmap_rows,
    legend,
    matrix_of,
    scrolled,
)
from tui_gpt.views.palette import Palette
from tui_gpt.views.rows import Row, padded
from tui_gpt.views.stage_text import heading, legend_row


@dataclass(frozen=True, slots=True)
class Panel:
    """What was drawn, and the part of the matrix that is on the screen now."""

    rows: list[Row]
    top: int
    left: int
    page: int
    """Matrix rows on the screen."""


def stage_panel(
    tensor: StageTensor,
    found: Statistics,
    config: GPTConfig,
    tokens: tuple[Token, ...],
    *,
    vocabulary: Callable[[int], Token] | None,
    head: int,
    cell: tuple[int, int],
    dense: bool,
    top: int,
    left: int,
    width: int,
    height: int,
    palette: Palette,
) -> Panel:
    """Draw one stage in a space.

    Args:
        tensor: Its values.
        found: Its statistics.
        config: Of the model.
        tokens: Of the run.
        vocabulary: Gives the token of an id, where the vocabulary is at hand.
        head: The head to show, where the stage has heads.
        cell: (row, column) of the cell that is read.
        dense: Two matrix rows a line, where colours allow it.
        top: The first matrix row of the last drawing.
        left: The first matrix column of the last drawing.
        width: Cells of each row.
        height: Rows at most.
        palette: For this terminal.
    """
    rows = heading(tensor.stage, config, head=head, width=width, palette=palette)
    rows = rows[: max(1, height - 6)]
    matrix = matrix_of(tensor, head, tokens, vocabulary, palette)
    halves = dense and palette.profile.colour in ("truecolor", "256") and not palette.profile.ascii
    frame = frame_for(matrix, width, height - len(rows) - 1, dense=halves)
    n_rows, n_columns = matrix.shape
    top = scrolled(top, cell[0], frame.rows, n_rows)
    left = scrolled(left, cell[1], frame.columns, n_columns)
    if frame.dense:
        top -= top % 2
    rows += heatmap_rows(
        matrix, frame, top=top, left=left, cursor=cell, width=width, palette=palette
    )
    blank: Row = [Segment(" " * width, palette.plain)]
    rows += [blank] * (height - len(rows) - 1)
    if matrix.whole:
        words = "ids are names, not amounts: no scale"
        rows.append(padded([Segment(words, palette.faint)], width, palette.plain))
    else:
        rows.append(legend_row(_scale(matrix, found, palette), found, width, palette))
    return Panel(rows, top, left, frame.rows)


def _scale(matrix: Matrix, found: Statistics, palette: Palette) -> Row:
    """Draw the scale over the values there are, or over the fixed range of probabilities."""
    if matrix.sequential:
        return legend(matrix, 0.0, 1.0, palette)
    if found.minimum is None or found.maximum is None:
        return [Segment("no finite value", palette.problem)]
    return legend(matrix, found.minimum, found.maximum, palette)
