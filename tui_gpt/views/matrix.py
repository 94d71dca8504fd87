"""The two axes of a tensor that are drawn, with a name for each row and column.

A matrix is a view of a stage or a parameter: one head, turned or not, whole or pooled. Making
one costs the same for every size; only pooling reads all values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from tui_gpt.records.stages import POSITION_AXES, Axis, Stage
from tui_gpt.records.tensors import StageTensor, Values
from tui_gpt.records.tokens import Token
from tui_gpt.views.palette import Palette
from tui_gpt.views.text import label

Mask: TypeAlias = Callable[[range, range], NDArray[np.bool_]]
"""(rows, columns) → True where a cell has no value."""

_Number = TypeVar("_Number", bound=np.generic)

Vocabulary: TypeAlias = Callable[[int], Token]
"""Gives the token of an id."""


class Names(Sequence[str]):
    """Labels that are made when they are read: an axis may have 50,257 of them."""

    def __init__(self, name: Callable[[int], str], count: int) -> None:
        self._name = name
        self._count = count

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        """Make one label, or those of a slice."""
        if isinstance(index, slice):
            return [self._name(i) for i in range(*index.indices(self._count))]
        return self._name(range(self._count)[index])  # beyond the end: IndexError, which ends a for


@dataclass(frozen=True, slots=True)
class Matrix:
    """Values with their labels and their scale."""

    values: Values
    """(rows, columns); where `first` is not 0 or rows are missing, those rows that are held."""
    masked: Mask | None
    """None where every cell has a value."""
    row_labels: Sequence[str]
    """One a row of the whole matrix."""
    column_label: Callable[[int], str] | None
    """Names a column by its token; None where columns are counted."""
    sequential: bool
    """From 0 to 1; otherwise both ways from 0."""
    bound: float
    """The magnitude drawn strongest."""
    first: int = 0
    """The row of the whole matrix that `values` starts with."""
    bin: tuple[int, int] = (1, 1)
    """Rows and columns of the original in one cell; more than 1 where it is pooled."""

    @property
    def whole(self) -> bool:
        """True for token ids: they are names and not amounts, so they are never coloured."""
        return self.values.dtype.kind == "i"

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns, those that are not held included."""
        return len(self.row_labels), self.values.shape[1]


def matrix_of(
    tensor: StageTensor,
    head: int,
    tokens: tuple[Token, ...],
    vocabulary: Vocabulary | None,
    palette: Palette,
    *,
    bound: float | None = None,
    turned: bool = False,
) -> Matrix:
    """Take the matrix of one head, or the only one there is.

    Args:
        tensor: Any stage.
        head: Which matrix, where the stage has heads.
        tokens: Of the run, for labels.
        vocabulary: Gives the token of an id, where the vocabulary is at hand.
        palette: Decides how labels are written.
        bound: The magnitude drawn strongest; by default the tensor's largest, which costs a
            look at all of it.
        turned: Rows become columns, where all rows are held.
    """
    stage, values = tensor.stage, tensor.values
    axes = stage.axes
    if axes[0] == "H":
        values, axes = values[head], axes[1:]
    if len(axes) == 1:
        values = values[:, None]
    rows, columns = axes[0], axes[1] if len(axes) == 2 else None
    sequential = is_sequential(stage)
    if bound is None:
        bound = largest(tensor.values)
    masked = _future if stage.name == "attn_scores" else None
    count = stage.shape[-2] if columns is not None else stage.shape[0]
    if turned and columns is not None and values.shape[0] == count:
        return Matrix(
            values.T,
            None if masked is None else _past,
            _row_labels(columns, values.shape[1], tokens, vocabulary, palette),
            _column_label(rows, tokens, vocabulary, palette),
            sequential,
            1.0 if sequential else bound,
        )
    return Matrix(
        values,
        masked,
        _row_labels(rows, count, tokens, vocabulary, palette),
        _column_label(columns, tokens, vocabulary, palette),
        sequential,
        1.0 if sequential else bound,
        tensor.first,
    )


def parameter_matrix(
    name: str,
    values: NDArray[np.float32],
    vocabulary: Vocabulary | None,
    palette: Palette,
    *,
    bound: float,
    turned: bool = False,
) -> Matrix:
    """Take a parameter as a matrix: (outputs, inputs), a table's rows, or one row.

    Args:
        name: As in the state dict; tables by token get their labels from it.
        values: (rows, columns) or (columns,).
        vocabulary: Gives the token of an id, where the vocabulary is at hand.
        palette: Decides how labels are written.
        bound: The magnitude drawn strongest.
        turned: Rows become columns.
    """
    table = values if values.ndim == 2 else values[None]
    by_token = name in ("wte.weight", "lm_head.weight") and vocabulary is not None
    axis: Axis | None = "V" if by_token else "C" if values.ndim == 2 else None
    if turned:
        return Matrix(
            table.T,
            None,
            Names(str, table.shape[1]),
            _column_label(axis if by_token else None, (), vocabulary, palette),
            False,
            bound,
        )
    labels = _row_labels(axis, table.shape[0], (), vocabulary, palette)
    return Matrix(table, None, labels, None, False, bound)


def is_sequential(stage: Stage) -> bool:
    """True for what runs from 0 to 1: attention and probabilities."""
    return stage.name in ("pattern", "probs")


def largest(values: Values) -> float:
    """Find the largest finite magnitude; 0 where there is none."""
    if values.dtype.kind == "i" or not values.size:
        return 1.0
    finite = np.isfinite(values)
    return float(np.abs(values, where=finite, out=np.zeros_like(values)).max())


def bin_for(shape: tuple[int, int], rows: int, columns: int) -> tuple[int, int]:
    """Choose how many rows and columns go into one cell for all of a matrix to fit."""
    return -(-shape[0] // max(1, rows)), -(-shape[1] // max(1, columns))


@dataclass(frozen=True, slots=True)
class Pooled:
    """A matrix made small: one value in the place of each bin."""

    values: NDArray[np.float32]
    """(rows, columns), in each cell a value of largest magnitude of its bin."""
    empty: NDArray[np.bool_]
    """The same shape, True where no cell of the bin has a value."""
    bin: tuple[int, int]
    """Rows and columns in one cell."""


def pool(matrix: Matrix, bin: tuple[int, int]) -> Pooled:
    """Find a value of largest magnitude in each bin; NaN and infinities win.

    Args:
        matrix: Not pooled; all of it is read.
        bin: Rows and columns in one cell.
    """
    down, right = bin
    original = matrix.values.astype(np.float32, copy=False)
    n_rows, n_columns = original.shape
    size = np.abs(original)
    size[np.isnan(size)] = np.inf
    if matrix.masked is not None:
        size[matrix.masked(range(n_rows), range(n_columns))] = -1.0
    padding = ((0, -n_rows % down), (0, -n_columns % right))
    sizes = _blocks(np.pad(size, padding, constant_values=-2.0), down, right)
    values = _blocks(np.pad(original, padding), down, right)
    winner = sizes.argmax(axis=-1)[..., None]
    return Pooled(
        np.take_along_axis(values, winner, axis=-1)[..., 0],
        np.take_along_axis(sizes, winner, axis=-1)[..., 0] < 0,
        bin,
    )


def pooled(matrix: Matrix, made: Pooled) -> Matrix:
    """Put the pooled values in the place of a matrix's own; labels are those of bins' starts."""
    down, right = made.bin
    label_of = matrix.column_label
    return replace(
        matrix,
        values=made.values,
        masked=None if matrix.masked is None else _Where(made.empty),
        row_labels=Names(lambda i: matrix.row_labels[i * down], made.values.shape[0]),
        column_label=None if label_of is None else lambda i: label_of(i * right),
        first=0,
        bin=made.bin,
    )


class _Where:
    """A mask that is known cell by cell."""

    def __init__(self, cells: NDArray[np.bool_]) -> None:
        self._cells = cells

    def __call__(self, rows: range, columns: range) -> NDArray[np.bool_]:
        return self._cells[rows.start : rows.stop, columns.start : columns.stop]


def _blocks(values: NDArray[_Number], down: int, right: int) -> NDArray[_Number]:
    """Bring each bin's values together: (rows, columns) → (rows/down, columns/right, bin)."""
    rows, columns = values.shape[0] // down, values.shape[1] // right
    parts = values.reshape(rows, down, columns, right).transpose(0, 2, 1, 3)
    return parts.reshape(rows, columns, down * right)


def _future(rows: range, columns: range) -> NDArray[np.bool_]:
    """Keys later than the query."""
    future: NDArray[np.bool_] = np.asarray(columns)[None, :] > np.asarray(rows)[:, None]
    return future


def _past(rows: range, columns: range) -> NDArray[np.bool_]:
    """The same, turned: queries earlier than the key."""
    return _future(columns, rows).T


def _row_labels(
    axis: Axis | None,
    count: int,
    tokens: tuple[Token, ...],
    vocabulary: Vocabulary | None,
    palette: Palette,
) -> Sequence[str]:
    """Name rows by position and token, by vocabulary entry, or by number."""
    glyphs = palette.profile.glyphs
    if axis in POSITION_AXES:
        digits = len(str(max(count, len(tokens)) - 1))
        return Names(lambda i: f"{i:>{digits}} {label(tokens[i], glyphs)}", count)
    if axis == "V" and vocabulary is not None:
        return Names(lambda i: f"{i} {label(vocabulary(i), glyphs)}", count)
    return Names(str, count)


def _column_label(
    axis: Axis | None,
    tokens: tuple[Token, ...],
    vocabulary: Vocabulary | None,
    palette: Palette,
) -> Callable[[int], str] | None:
    """Choose how columns are named: by prompt token, by vocabulary entry, or by number."""
    glyphs = palette.profile.glyphs
    if axis in POSITION_AXES:
        return lambda column: label(tokens[column], glyphs)
    if axis == "V" and vocabulary is not None:
        return lambda column: label(vocabulary(column), glyphs)
    return None
