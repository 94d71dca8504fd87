"""A trace as rows for a CSV file: one row a stage, or one row a cell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from tui_gpt.records.float_format import shortest_float, shortest_floats
from tui_gpt.records.tensors import StageSummary, StageTensor, Values

STAGE_COLUMNS = (
    "id", "layer", "shape", "axes", "operation", "formula", "topic", "reads", "parameters",
    "min", "max", "mean", "std", "masked",
)  # fmt: skip
"""Sizes, axis letters and stage ids have blanks between them; parameters are counted, a shared
tensor where it is owned."""


def stage_rows(summaries: Iterable[StageSummary]) -> Iterator[Sequence[object]]:
    """Give the heading and one row a stage; what is missing is an empty cell."""
    yield STAGE_COLUMNS
    for summary in summaries:
        stage, found = summary.stage, summary.statistics
        numbers = (found.minimum, found.maximum, found.mean, found.std) if found else (None,) * 4
        yield (
            stage.id,
            stage.layer,
            " ".join(str(size) for size in stage.shape),
            " ".join(stage.axes),
            stage.operation,
            stage.formula,
            stage.topic,
            " ".join(stage.reads),
            stage.n_parameters,
            *(None if number is None else shortest_float(number) for number in numbers),
            found.masked if found else None,
        )


def cell_rows(axes: Sequence[str], slices: Iterable[StageTensor]) -> Iterator[Sequence[object]]:
    """Give the heading and one row a cell: its index along each axis, then its value.

    Args:
        axes: One letter an axis.
        slices: The stage's values, in order. A masked cell has an empty value.
    """
    yield (*axes, "value")
    for tensor in slices:
        masked = tensor.masked
        for i, row in enumerate(tensor.values):
            yield from _cells((tensor.first + i,), row, None if masked is None else masked[i])


def parameter_rows(values: NDArray[np.float32]) -> Iterator[Sequence[object]]:
    """Give the heading and one row a number of a parameter, its axes called `i` and `j`."""
    yield (*"ij"[: values.ndim], "value")
    for i, row in enumerate(values):
        yield from _cells((i,), row, None)


def _cells(
    index: tuple[int, ...], values: Values, masked: NDArray[np.bool_] | None
) -> Iterator[Sequence[object]]:
    if values.ndim > 1:
        for i, row in enumerate(values):
            yield from _cells((*index, i), row, None if masked is None else masked[i])
        return
    whole = np.issubdtype(values.dtype, np.integer)
    row = np.atleast_1d(values)
    numbers = row.tolist() if whole else shortest_floats(row.astype(np.float32, copy=False))
    holes = [False] * len(numbers) if masked is None else masked.tolist()
    for i, (number, hole) in enumerate(zip(numbers, holes, strict=True)):
        yield (*index, *((i,) if values.ndim else ()), None if hole else number)
