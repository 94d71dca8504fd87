"""Bytes of a model, and the shape of every stage: two tables."""

from __future__ import annotations

from tui_gpt.config import GPTConfig
from tui_gpt.records.budget.memory import FLOAT, HALF, Memory, ShapeRow, largest
from tui_gpt.records.stages import ActivationName
from tui_gpt.views.numbers import counted
from tui_gpt.views.palette import Palette
from tui_gpt.views.panes.budget.table_rows import Cell, heading_row, sentence, table_row
from tui_gpt.views.rows import Row
from tui_gpt.views.units import binary, both, brief, count_text, decimal, two_units

_SHAPE, _ELEMENTS, _SIZE = 20, 12, 8
_BROADCAST = 23
"""Cells for a shape with the word broadcast after it."""

_ALL_NAMES = 29
"""Cells for every name of a group: attn_out, resid_mid, ln_2."""


def bytes_rows(found: Memory, width: int, palette: Palette) -> list[Row]:
    """List what a model takes: weights, training, cache, capture.

    Args:
        found: The bytes.
        width: Cells of each row.
        palette: For this terminal.
    """

    def line(label: str, n_bytes: int) -> Row:
        cells = [
            Cell(f" {label}", 20, palette.plain),
            Cell(count_text(n_bytes, 14), -15, palette.plain),
            Cell(decimal(n_bytes), -10, palette.accent),
            Cell(binary(n_bytes), -10, palette.plain),
        ]
        return table_row(cells, width, palette)

    weights = found.weights
    full, part = found.full_capture, found.on_demand
    return [
        heading_row(f"Weights: {counted(found.n_parameters, 'parameter')}", width, palette),
        line("float32", weights["float32"]),
        line("float16, bfloat16", weights["float16"]),
        line("int8 (no scales)", weights["int8"]),
        *sentence(two_units(weights["float32"]), width, palette, palette.faint),
        heading_row("Training in float32: 16 bytes a parameter", width, palette),
        line("gradients", found.gradients),
        line("Adam's two means", found.adam),
        line("weights and both", found.training),
        heading_row(f"Batch {found.batch:,}, context {found.context:,}", width, palette),
        line("KV cache, float32", FLOAT * found.kv_numbers),
        line("KV cache, float16", HALF * found.kv_numbers),
        line("every stage kept", full),
        line("  patterns alone", found.patterns),
        line("on demand, at most", part),
        *sentence(
            f"On demand keeps the stream and runs a block again: {_times(full / part)} less",
            width,
            palette,
            palette.faint,
        ),
    ]


def shapes_rows(
    config: GPTConfig, rows: tuple[ShapeRow, ...], width: int, palette: Palette
) -> list[Row]:
    """List every stage's shape from ids to probabilities; the largest stands out.

    Args:
        config: Of the model.
        rows: Its stages; those of one block stand for all.
        width: Cells of each row.
        palette: For this terminal.
    """
    top, times = largest(rows)
    room = _SHAPE if width < 60 else _BROADCAST
    spare = width - room - _ELEMENTS - _SIZE
    name = min(max(15, spare), _ALL_NAMES + 2)
    indent = "  " if name > 20 else ""
    exact = width >= name + room + _ELEMENTS + _SIZE + 16
    heads = [(" stage", name + 1), ("shape", room - 1), ("elements", -_ELEMENTS)]
    heads += [("bytes each", -16)] if exact else []
    faint = palette.faint
    said = [*(Cell(text, cells, faint) for text, cells in heads), Cell("each", -_SIZE, faint)]
    drawn = [table_row(said, width, palette)]
    inside = False
    for row in rows:
        if row.in_block and not inside:
            blocks = counted(config.n_layer, "block")
            drawn.append(heading_row(f"{blocks}, each", width, palette))
        inside = row.in_block
        style = palette.accent if row.bytes == top.bytes else palette.plain
        mark = "▸" if row.bytes == top.bytes else " "
        shown = _names(row.names, name - 1 - len(indent))
        shape = f" {_shape(row.shape)}"
        if row.broadcast and len(shape) + 11 <= room:
            shape += " broadcast"
        cells = [
            Cell(
                f"{mark}{indent if inside else ''}{shown}",
                name,
                style,
            ),
            Cell(shape, room, style),
            Cell(count_text(row.elements, _ELEMENTS - 1), -_ELEMENTS, style),
        ]
        if exact:
            cells.append(Cell(count_text(row.bytes, 15), -16, style))
        cells.append(Cell(brief(row.bytes), -_SIZE, style))
        drawn.append(table_row(cells, width, palette))
    batch = rows[0].shape[0]
    positions = next(row for row in rows if row.broadcast)
    return [
        *drawn,
        *sentence(_dwarf(top, times, rows), width, palette, palette.accent),
        *sentence(
            f"pos_embed has no batch axis: one {_shape(positions.shape)} is broadcast over "
            f"{'all ' if batch > 1 else ''}{counted(batch, 'row')}. Block after block the stream "
            f"is {_shape(rows[1].shape)}: {counted(config.n_layer, 'row')} of one shape.",
            width,
            palette,
            palette.faint,
        ),
    ]


def _dwarf(top: ShapeRow, times: float, rows: tuple[ShapeRow, ...]) -> str:
    """Say which stage is the largest, and what follows."""
    why = {
        "logits": "; nobody keeps logits",
        "attn_scores": "; it grows with the square of the context",
    }.get(top.names[0], "")
    return (
        f"{top.names[0]}: {top.bytes:,} bytes = {both(top.bytes)}, {_times(times)} the next "
        f"largest{why}"
    )


def _times(ratio: float) -> str:
    return f"{ratio:,.1f} times" if ratio < 100 else f"{ratio:,.0f} times"


def _names(names: tuple[ActivationName, ...], cells: int) -> str:
    """Name all stages of a row, or the first and how many more."""
    text = ", ".join(names)
    if len(text) > cells and names == ("q", "k", "v"):
        text = "q k v"
    return text if len(text) <= cells else f"{names[0]} +{len(names) - 1}"


def _shape(shape: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, shape))})"
