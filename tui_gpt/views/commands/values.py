"""The values of one stage or parameter as lines for people to read.

Numbers stand to four places under their positions, tokens or feature numbers. Columns that do
not fit are cut into groups, one below the other; where there is no terminal nothing is cut.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from textwrap import wrap

import numpy as np
from numpy.typing import NDArray
from rich.cells import cell_len
from rich.text import Text

from tui_gpt.records.stages import POSITION_AXES, Axis, Parameter, Stage
from tui_gpt.records.tensors import StageSummary, StageTensor, Statistics, Values
from tui_gpt.records.trace import Run
from tui_gpt.views.commands.trace import (
    FAINT,
    HEADING,
    NOTICE,
    axes_of,
    places,
    run_heading,
    shape_of,
)
from tui_gpt.views.numbers import counted
from tui_gpt.views.profile import Glyphs, TerminalProfile
from tui_gpt.views.text import fit, formula, sanitize, transliterate

_LABEL_CELLS = 14
"""A longer token is cut."""

_FIELD = 9
"""Cells of a name in the heading."""

_MASKED = "·"


@dataclass(frozen=True, slots=True)
class Labels:
    """How the places along one axis are called."""

    size: int
    """How many places there are."""
    name: Callable[[int], str] | None = None
    """Gives the sanitized label of a place, beside its number; None: the number says it all."""
    numbered: bool = True
    """False: the one place along this axis needs no number."""


def stage_heading(run: Run, summary: StageSummary, profile: TerminalProfile) -> Iterator[Text]:
    """Say what a stage is, what it is for and what its values add up to."""
    stage, glyphs = summary.stage, profile.glyphs
    yield from run_heading(run, profile)
    yield Text()
    yield Text.assemble(
        (stage.id, HEADING), transliterate(" · ", glyphs) + formula(stage.operation, glyphs)
    )
    yield from _field("formula", formula(stage.formula, profile.glyphs), profile)
    yield from _field("shape", f"{shape_of(stage.shape)}  {axes_of(stage)}", profile)
    for parameter in stage.parameters:
        yield from _field("uses", _parameter(parameter), profile)
    yield from _field("topic", stage.purpose, profile)
    yield from _field("taught", stage.section, profile)
    if summary.statistics is None:
        yield Text(f"missing: {transliterate(sanitize(summary.missing or ''), glyphs)}", NOTICE)
    else:
        yield from _statistics(summary.statistics, profile)


def parameter_heading(
    run: Run, parameter: Parameter, found: Statistics, profile: TerminalProfile
) -> Iterator[Text]:
    """Say which parameter it is, which stage owns it and what its numbers add up to."""
    yield from run_heading(run, profile)
    yield Text()
    yield Text(_parameter(parameter), HEADING)
    owners = [stage.id for stage in run.stages if parameter in stage.parameters]
    yield from _field("stage", ", ".join(owners), profile)
    yield from _statistics(found, profile)


def stage_values(
    slices: Iterable[StageTensor],
    found: Statistics,
    label: Callable[[Axis, int], str],
    *,
    width: int | None,
    glyphs: Glyphs,
) -> Iterator[Text]:
    """Write a stage's values, each head under a heading of its own.

    Args:
        slices: The values, in order.
        found: Of the whole stage.
        label: Gives the sanitized label of a place along a position or vocabulary axis.
        width: Cells that a line may take; None: as many as it needs.
        glyphs: What the terminal can show.
    """
    cells = _cell_width(found)
    for tensor in slices:
        stage, masked = tensor.stage, tensor.masked
        rows, columns = _labels(stage, label)
        if tensor.values.ndim < 3:
            grid = tensor.values.reshape(len(tensor.values), -1)
            yield Text()
            yield from _grid(grid, None, rows, columns, cells, width, glyphs, tensor.first)
            continue
        for head, values in enumerate(tensor.values):
            holes = None if masked is None else masked[head]
            yield Text()
            yield Text(_head_name(stage, head, glyphs), HEADING)
            yield from _grid(values, holes, rows, columns, cells, width, glyphs)


def parameter_values(
    values: NDArray[np.float32], found: Statistics, *, width: int | None, glyphs: Glyphs
) -> Iterator[Text]:
    """Write a parameter's numbers; a vector as one row."""
    grid = values.reshape(-1, values.shape[-1])
    rows = Labels(len(grid), numbered=values.ndim > 1)
    yield Text()
    yield from _grid(grid, None, rows, Labels(grid.shape[1]), _cell_width(found), width, glyphs)


def _grid(
    values: Values,
    masked: NDArray[np.bool_] | None,
    rows: Labels,
    columns: Labels,
    cells: int,
    width: int | None,
    glyphs: Glyphs,
    first: int = 0,
) -> Iterator[Text]:
    """Write a matrix, in as many groups of columns as the width asks for."""
    row_names = _row_names(rows, first, len(values), glyphs)
    margin = cell_len(row_names[0])
    heads = _column_names(columns, glyphs)
    cells = max(cells, *(cell_len(name) for names in heads for name in names), 1)
    group = columns.size
    if width is not None:
        group = max(1, (width - margin) // (cells + 1))
    hole = transliterate(_MASKED, glyphs).rjust(cells + 1)
    for start in range(0, columns.size, group):
        if start:
            yield Text()
        end = min(start + group, columns.size)
        for names in heads:
            line = "".join(f" {_right(name, cells)}" for name in names[start:end])
            yield Text(" " * margin + line, FAINT)
        for i, name in enumerate(row_names):
            line = _numbers(values[i, start:end], cells)
            if masked is None:
                yield Text.assemble((name, FAINT), line)
            else:
                there = int(np.count_nonzero(~masked[i, start:end]))  # the masked ones come last
                kept = line[: there * (cells + 1)]
                yield Text.assemble((name, FAINT), kept, (hole * (end - start - there), FAINT))


def _numbers(row: Values, cells: int) -> str:
    if np.issubdtype(row.dtype, np.integer):
        return "".join(f" {number:>{cells}}" for number in row.tolist())
    return "".join(f" {places(number):>{cells}}" for number in row.tolist())


def _head_name(stage: Stage, head: int, glyphs: Glyphs) -> str:
    return transliterate(f"L{stage.layer}H{head} · head {head + 1} of {stage.shape[0]}", glyphs)


def _labels(stage: Stage, label: Callable[[Axis, int], str]) -> tuple[Labels, Labels]:
    """Name the rows and columns of a stage's matrices."""

    def along(axis: Axis, size: int) -> Labels:
        named = axis in POSITION_AXES or axis == "V"
        return Labels(size, (lambda place: label(axis, place)) if named else None)

    named = [along(axis, size) for axis, size in zip(stage.axes, stage.shape, strict=True)]
    if len(named) == 1:
        return named[0], Labels(1, numbered=False)
    return named[-2], named[-1]


def _row_names(rows: Labels, first: int, count: int, glyphs: Glyphs) -> list[str]:
    """Give each row's number and label, all of one width."""
    if not rows.numbered:
        return [""] * count
    digits = len(str(rows.size - 1))
    places_ = range(first, first + count)
    if rows.name is None:
        return [f"{place:>{digits}} " for place in places_]
    labels = [rows.name(place) for place in places_]
    width = min(_LABEL_CELLS, max(cell_len(text) for text in labels))
    return [
        f"{place:>{digits}} {fit(text, width, glyphs)} "
        for place, text in zip(places_, labels, strict=True)
    ]


def _column_names(columns: Labels, glyphs: Glyphs) -> tuple[Sequence[str], ...]:
    """Give the lines above the columns: their numbers, and labels where there are any."""
    if not columns.numbered:
        return ()
    numbers = [str(place) for place in range(columns.size)]
    if columns.name is None:
        return (numbers,)
    labels = [columns.name(place) for place in range(columns.size)]
    return (
        numbers,
        [
            text if cell_len(text) <= _LABEL_CELLS else fit(text, _LABEL_CELLS, glyphs)
            for text in labels
        ],
    )


def _cell_width(found: Statistics) -> int:
    """Find the width of a stage's numbers: its extremes are the longest, unless they are 0."""
    ends = [places(end) for end in (found.minimum, found.maximum) if end is not None]
    return max(len(text) for text in (*ends, "0.0000", "-inf" if found.not_finite else ""))


def _statistics(found: Statistics, profile: TerminalProfile) -> Iterator[Text]:
    numbers = (found.minimum, found.maximum, found.mean, found.std)
    named = zip(("min", "max", "mean", "std"), numbers, strict=True)
    parts = [f"{name} {places(number)}" for name, number in named]
    yield from _field("values", ", ".join(parts), profile)
    if found.masked:
        masked = counted(found.masked, "cell lies", "cells lie")
        yield from _field("masked", f"{masked} in the future, shown as {_MASKED}", profile)
    if found.not_finite:
        yield Text(
            f"{counted(found.not_finite, 'value')} not finite, left out of min and max", NOTICE
        )


def _field(name: str, text: str, profile: TerminalProfile) -> Iterator[Text]:
    """Write one named line of the heading, broken between words where it is too long."""
    lines = wrap(transliterate(text, profile.glyphs), max(20, profile.width - _FIELD))
    for i, line in enumerate(lines):
        yield Text.assemble((f"{'' if i else name:<{_FIELD}}", FAINT), line)


def _parameter(parameter: Parameter) -> str:
    shared = ", shared: counted at embed" if parameter.shared else ""
    count = counted(parameter.count, "number")
    return f"{parameter.name} {shape_of(parameter.shape)}, {count}{shared}"


def _right(text: str, width: int) -> str:
    return " " * (width - cell_len(text)) + text
