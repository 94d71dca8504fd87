"""What a model takes in bytes: its weights, its training, its cache, and every stage of a pass.

Bytes are exact. Ids are int64, activations float32. Blocks are alike, so one is laid out.

Axes: B batch, T context, L n_layer, C n_embd, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from math import prod

from tui_gpt.config import GPTConfig
from tui_gpt.errors import ImpossibleShape
from tui_gpt.records.budget.counts import budget
from tui_gpt.records.stages import ActivationName, stage_id, stage_table

FLOAT, HALF, BYTE, ID = 4, 2, 1, 8
"""Bytes of float32, of float16 and bfloat16, of int8, and of a token id (int64)."""

BLOCKS_KEPT = 2
"""Blocks that capture on demand keeps; `trace.record` says the same of itself."""

ROWS_TOGETHER = 64
"""Positions whose logits capture on demand computes at once; `trace.record` says so too."""

_LARGEST_BATCH = 2**31 - 1


@dataclass(frozen=True, slots=True)
class ShapeRow:
    """Stages that follow each other and have one shape."""

    names: tuple[ActivationName, ...]
    in_block: bool
    """True where every block has them."""
    shape: tuple[int, ...]
    """Batch first; positions have no batch axis."""
    itemsize: int
    """Bytes an element."""

    @property
    def broadcast(self) -> bool:
        """True where one block of numbers serves the whole batch."""
        return self.names == ("pos_embed",)

    @property
    def elements(self) -> int:
        """Numbers in one of the stages."""
        return prod(self.shape)

    @property
    def bytes(self) -> int:
        """Bytes of one of the stages."""
        return self.elements * self.itemsize


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes of one model for a batch and a context."""

    batch: int
    context: int
    n_parameters: int
    kv_numbers: int
    """Keys and values of every block: 2·L·B·T·K·D."""
    patterns: int
    """Attention patterns of every block: float32, L·B·H·T²."""
    full_capture: int
    """Every stage of one pass kept."""
    on_demand: int
    """At most, where only the stream is kept and a block is run again when it is opened."""

    @property
    def weights(self) -> dict[str, int]:
        """Bytes of the weights by number format; int8 without its scales."""
        count = self.n_parameters
        return {
            "float32": FLOAT * count,
            "float16": HALF * count,
            "bfloat16": HALF * count,
            "int8": BYTE * count,
        }

    @property
    def gradients(self) -> int:
        """One float32 a parameter."""
        return FLOAT * self.n_parameters

    @property
    def adam(self) -> int:
        """Two float32 a parameter: Adam's running mean and running square."""
        return 2 * FLOAT * self.n_parameters

    @property
    def training(self) -> int:
        """Weights, gradients and Adam in float32, activations left out: 16 bytes a parameter."""
        return FLOAT * self.n_parameters + self.gradients + self.adam

    def to_dict(self) -> dict[str, int]:
        """Give every figure by name, for JSON."""
        return {
            **self.weights,
            "gradients": self.gradients,
            "adam": self.adam,
            "training": self.training,
            "kv_cache": FLOAT * self.kv_numbers,
            "kv_cache_float16": HALF * self.kv_numbers,
            "patterns": self.patterns,
            "full_capture": self.full_capture,
            "on_demand": self.on_demand,
        }


def memory(config: GPTConfig, *, batch: int, context: int) -> Memory:
    """Work out what a model takes.

    Raises:
        ImpossibleShape: See `check_batch`.
    """
    rows = shape_rows(config, batch=batch, context=context)
    outside = sum(row.bytes * len(row.names) for row in rows if not row.in_block)
    block = sum(row.bytes * len(row.names) for row in rows if row.in_block)
    stream = batch * context * config.n_embd
    output = 2 * batch * min(context, ROWS_TOGETHER) * config.vocab_size
    return Memory(
        batch=batch,
        context=context,
        n_parameters=budget(config).total,
        kv_numbers=2 * config.n_layer * batch * context * config.n_key_head * config.head_dim,
        patterns=FLOAT * config.n_layer * config.n_head * batch * context**2,
        full_capture=outside + config.n_layer * block,
        on_demand=FLOAT * ((config.n_layer + 1) * stream + output)
        + min(BLOCKS_KEPT, config.n_layer) * block,
    )


def shape_rows(config: GPTConfig, *, batch: int, context: int) -> tuple[ShapeRow, ...]:
    """List the stages from ids to probabilities with their shapes, one block for all of them.

    Raises:
        ImpossibleShape: See `check_batch`.
    """
    check_batch(config, batch=batch, context=context)
    stages = stage_table(replace(config, n_layer=1), context)
    single = [
        ShapeRow(
            names=(stage.name,),
            in_block=stage.layer is not None,
            shape=stage.shape if stage.name == "pos_embed" else (batch, *stage.shape),
            itemsize=ID if stage.name == "tokens" else FLOAT,
        )
        for stage in stages
    ]
    joined = groupby(single, key=lambda row: (row.in_block, row.broadcast, row.shape))
    return tuple(_together(list(rows)) for _, rows in joined)


def all_shapes(
    config: GPTConfig, rows: tuple[ShapeRow, ...]
) -> Iterator[tuple[str, tuple[int, ...], int, int, bool]]:
    """Write the rows out, every stage of every block.

    Args:
        config: Of the model.
        rows: From `shape_rows`.

    Yields:
        (stage id, shape, elements, bytes, broadcast), in the order of the stage table.
    """
    inside = [row for row in rows if row.in_block]
    first = rows.index(inside[0])
    yield from _written(rows[:first], None)
    for layer in range(config.n_layer):
        yield from _written(tuple(inside), layer)
    yield from _written(rows[first + len(inside) :], None)


def largest(rows: tuple[ShapeRow, ...]) -> tuple[ShapeRow, float]:
    """Find the largest stage, and how many times the next smaller one it is."""
    by_size = sorted(rows, key=lambda row: row.bytes, reverse=True)
    below = next((row for row in by_size if row.bytes < by_size[0].bytes), by_size[0])
    return by_size[0], by_size[0].bytes / below.bytes


def check_batch(config: GPTConfig, *, batch: int, context: int) -> None:
    """Refuse a batch or a context that the model cannot have.

    Raises:
        ImpossibleShape: With both numbers.
    """
    if not 1 <= batch <= _LARGEST_BATCH:
        raise ImpossibleShape(f"batch is {batch}; it must be from 1 to {_LARGEST_BATCH:,}")
    if context < 1:
        raise ImpossibleShape(f"context is {context}; it must be from 1 to {config.block_size:,}")
    if context > config.block_size:
        raise ImpossibleShape(
            f"context {context} is longer than block_size {config.block_size}; "
            f"take {config.block_size} or less"
        )


def _together(rows: list[ShapeRow]) -> ShapeRow:
    return replace(rows[0], names=tuple(name for row in rows for name in row.names))


def _written(
    rows: tuple[ShapeRow, ...], layer: int | None
) -> Iterator[tuple[str, tuple[int, ...], int, int, bool]]:
    for row in rows:
        for name in row.names:
            yield stage_id(name, layer), row.shape, row.elements, row.bytes, row.broadcast
