"""What pane 1 draws: the stage or parameter as a matrix on its scale, and one cell aloud.

Imported when the first values are there, since it needs numpy.
"""

from __future__ import annotations

from dataclasses import dataclass

from tui_gpt.app.panes.pane import Scene
from tui_gpt.app.place.place import Place
from tui_gpt.app.work.questions import (
    ParameterOf,
    PooledOf,
    RobustBound,
    SharedBound,
    Shown,
    ValuesOf,
)
from tui_gpt.records.tensors import Statistics
from tui_gpt.views.matrix import Matrix, bin_for, is_sequential, matrix_of, parameter_matrix, pooled
from tui_gpt.views.numbers import short
from tui_gpt.views.panes.pipeline.matrix_panel import frame_of
from tui_gpt.views.rows import Row
from tui_gpt.views.stage_text import parameter_reading, reading

_WHOLE_CELLS = 4_000_000
"""Cells of logits that are computed at once; of more, only the rows around the cell are."""

_ROWS_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class Prepared:
    """A matrix that is ready to be drawn."""

    matrix: Matrix
    found: Statistics
    cell: tuple[int, int]
    """As the matrix is drawn: turned and pooled."""
    notes: tuple[str, ...]
    """What a person must know of the scale and of what is left out."""


def source_of(place: Place) -> ValuesOf | ParameterOf:
    """Say which values pane 1 shows."""
    stage = place.stage
    if place.parameter is not None:
        return ParameterOf(stage.parameters[place.parameter].name)
    if stage.name in ("logits", "probs") and stage.shape[0] * stage.shape[1] > _WHOLE_CELLS:
        group = place.position - place.position % _ROWS_AT_ONCE
        first = max(0, group - _ROWS_AT_ONCE)
        return ValuesOf(stage.id, (first, min(stage.shape[0], group + 2 * _ROWS_AT_ONCE)))
    return ValuesOf(stage.id)


def read_cell(scene: Scene) -> Row | None:
    """Read the cell of the place aloud; None while its values are not there."""
    shown = scene.ask(source_of(scene.place))
    return None if shown is None else _reading(scene, shown)


def prepare(scene: Scene, width: int, height: int) -> Prepared | None:
    """Build the matrix of the place for a space; None while its values are not there.

    Args:
        scene: Where we are, and what is known.
        width: Cells of the space.
        height: Lines of the space, legend included.
    """
    place = scene.place
    source = source_of(place)
    shown = scene.ask(source)
    if shown is None:
        return None
    bound, notes = _scale(scene, shown.found)
    matrix = _matrix(scene, shown, bound)
    cell = place.cell[::-1] if place.turned and matrix.first == 0 else place.cell
    if matrix.values.shape[0] < matrix.shape[0]:
        last = matrix.first + matrix.values.shape[0] - 1
        notes.append(f"of positions {matrix.first} to {last}, computed so far")
    if place.overview:
        frame = frame_of(matrix, width, height - 1, scene.palette, dense=place.dense)
        bin = bin_for(matrix.shape, frame.rows, frame.columns)
        if bin != (1, 1):
            made = scene.ask(PooledOf(source, place.head, place.turned, bin))
            if made is not None:
                matrix = pooled(matrix, made)
                cell = (cell[0] // bin[0], cell[1] // bin[1])
                notes.insert(0, f"overview: each cell the largest of {bin[0]} × {bin[1]}")
    return Prepared(matrix, shown.found, cell, tuple(notes))


def _scale(scene: Scene, found: Statistics) -> tuple[float, list[str]]:
    """Choose the magnitude that is drawn strongest, and say how where it is not the largest."""
    place = scene.place
    bound = max(abs(found.minimum or 0.0), abs(found.maximum or 0.0))
    parameter = None if place.parameter is None else place.stage.parameters[place.parameter].name
    if place.stage.name == "tokens" or (is_sequential(place.stage) and parameter is None):
        return bound, []
    if place.shared and parameter is None and place.stage.layer is not None:
        shared = scene.ask(SharedBound(place.stage.name))
        if shared is not None:
            return shared, [f"one scale for all blocks: ±{short(shared)}"]
    if place.robust:
        robust = scene.ask(RobustBound(None if parameter else place.stage.id, parameter))
        if robust is not None:
            return robust, [f"scale ±{short(robust)} holds 99 of 100 values"]
    return bound, []


def _matrix(scene: Scene, shown: Shown, bound: float) -> Matrix:
    place = scene.place
    if shown.tensor is None:
        assert shown.weights is not None
        return parameter_matrix(
            shown.parameter,
            shown.weights,
            scene.vocabulary,
            scene.palette,
            bound=bound,
            turned=place.turned,
        )
    return matrix_of(
        shown.tensor,
        place.head,
        place.run.tokens,
        scene.vocabulary,
        scene.palette,
        bound=bound,
        turned=place.turned,
    )


def _reading(scene: Scene, shown: Shown) -> Row:
    """Read the cell aloud; nothing where its row is not computed."""
    place, palette, vocabulary = scene.place, scene.palette, scene.vocabulary
    if shown.tensor is None:
        assert shown.weights is not None
        return parameter_reading(shown.parameter, shown.weights, place.cell, vocabulary, palette)
    held = place.cell[0] - shown.tensor.first
    if place.stage.axes[0] != "H" and not 0 <= held < shown.tensor.values.shape[0]:
        return []
    return reading(shown.tensor, place.head, place.cell, place.run.tokens, vocabulary, palette)
