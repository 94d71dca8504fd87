"""Cells that are sums of products: linear maps, attention scores, mixed values."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tui_gpt.analysis.explain.cell import Cell, inner, known, number, read
from tui_gpt.records.analyses.explanation import LISTED, CellRef, Explanation, Operand, Term
from tui_gpt.records.stages import HEAD_AXES
from tui_gpt.records.tensors import Values

_IN_FORMULA = 2
"""Terms written into the formula; the table below it lists the others."""


@dataclass(frozen=True, slots=True)
class _Factors:
    """The two rows of numbers that are multiplied pairwise, and what each place is called."""

    inputs: Values
    """(n,)"""
    weights: Values
    """(n,)"""
    label: Callable[[int], str]
    input_cell: Callable[[int], CellRef]
    weight_cell: Callable[[int], CellRef]


def linear(cell: Cell) -> Explanation:
    """`q k v attn_out mlp_pre mlp_out logits`: a row of activations times a row of weights."""
    stage, source, width = cell.stage, cell.stage.reads[0], cell.config.head_dim
    if stage.axes[0] in HEAD_AXES:
        head, place, feature = cell.index
        output = head * width + feature
    else:
        place, output = cell.index

    def joined(i: int) -> str:
        return f"L{stage.layer}H{i // width} feature {i % width}"

    def head_cell(i: int) -> CellRef:
        return CellRef.of_stage(source, i // width, place, i % width)

    def row_cell(i: int) -> CellRef:
        return CellRef.of_stage(source, place, i)

    weight = stage.parameters[0].name
    values = cell.values(source)
    heads = values.ndim == 3  # (H, T, D), joined before the map
    word = "unit" if cell.stage_of(source).axes[-1] == "F" else "feature"
    factors = _Factors(
        inputs=values[:, place].reshape(-1) if heads else values[place],
        weights=cell.parameter(weight)[output],
        label=joined if heads else _numbered(word),
        input_cell=head_cell if heads else row_cell,
        weight_cell=lambda i: CellRef.of_parameter(weight, output, i),
    )
    biases = [
        cell.of_parameter("bias", parameter.name, output) for parameter in stage.parameters[1:]
    ]
    return _sum_of(cell, factors, bias=biases[0] if biases else None)


def score(cell: Cell) -> Explanation:
    """`attn_scores`: how well a query fits a key; nothing where the key is yet to come."""
    head, query, key = cell.index
    queries, keys = cell.stage.reads
    reason = unseen(query, key, cell.config.window)
    if reason is not None:
        return Explanation(
            stage=cell.stage.id,
            index=cell.index,
            value=None,
            value_float64=None,
            formula=f"{cell.stage.formula}, masked: {reason[0]}",
            operands=(
                Operand("query position", None, query),
                Operand("key position", None, key),
            ),
            reason=reason[1],
        )
    shared = key_head(cell, head)
    factors = _Factors(
        inputs=cell.values(queries)[head, query],
        weights=cell.values(keys)[shared, key],
        label=_numbered("feature"),
        input_cell=lambda i: CellRef.of_stage(queries, head, query, i),
        weight_cell=lambda i: CellRef.of_stage(keys, shared, key, i),
    )
    return _sum_of(cell, factors, divisor=math.sqrt(cell.config.head_dim))


def mixed_value(cell: Cell) -> Explanation:
    """`z`: one feature of the values, mixed over the keys.

    The future takes part with its weight of 0, as it does in the model.
    """
    head, query, feature = cell.index
    pattern, values = cell.stage.reads
    shared = key_head(cell, head)
    factors = _Factors(
        inputs=cell.values(pattern)[head, query],
        weights=cell.values(values)[shared, :, feature],
        label=_numbered("key"),
        input_cell=lambda i: CellRef.of_stage(pattern, head, query, i),
        weight_cell=lambda i: CellRef.of_stage(values, shared, i, feature),
    )
    return _sum_of(cell, factors)


def key_head(cell: Cell, head: int) -> int:
    """Give the key and value head that a query head reads."""
    return head // (cell.config.n_head // cell.config.n_key_head)


def unseen(query: int, key: int, window: int | None) -> tuple[str, str] | None:
    """Say why a query has nothing to do with a key, briefly and at length; None where it has."""
    if key > query:
        return f"key {key} is later than query {query}", (
            f"key {key} lies in the future of query {query}: "
            "a position reads itself and earlier ones only"
        )
    if window is not None and key <= query - window:
        return f"key {key} is outside the window of query {query}", (
            f"key {key} lies outside the window of query {query}: "
            f"a position reads itself and {window - 1} before it"
        )
    return None


def _sum_of(
    cell: Cell, factors: _Factors, *, bias: Operand | None = None, divisor: float | None = None
) -> Explanation:
    """List the largest products, and add up the others.

    Args:
        cell: What is explained.
        factors: What is multiplied.
        bias: Added to the products.
        divisor: √D, by which each product is divided.
    """
    products = factors.inputs.astype(np.float64) * factors.weights.astype(np.float64)  # (n,)
    if divisor is not None:
        products /= divisor
    largest = _largest(products)
    others = np.ones(len(products), np.bool_)
    others[largest] = False
    terms = tuple(
        Term(
            label=factors.label(i),
            input=number(factors.inputs[i]),
            weight=number(factors.weights[i]),
            product=float(products[i]),
            input_cell=factors.input_cell(i),
            weight_cell=factors.weight_cell(i),
        )
        for i in largest
    )
    added = 0.0 if bias is None else known(bias)
    operands = [] if bias is None else [bias]
    if divisor is not None:
        operands.append(Operand("√D", None, divisor))
    return Explanation(
        stage=cell.stage.id,
        index=cell.index,
        value=cell.value,
        value_float64=float(products.sum()) + added,
        formula=f"{cell.stage.formula} = "
        f"{_written(terms, len(products), bias, divisor)} = {read(cell.value)}",
        operands=tuple(operands),
        terms=terms,
        remainder=float(products[others].sum()),
        bias=added,
        n_terms=len(products),
    )


def _largest(products: NDArray[np.float64]) -> list[int]:
    """Choose the places of the largest by magnitude; NaN first, ties by the lower place."""
    sizes = np.where(np.isnan(products), np.inf, np.abs(products))
    order: list[int] = np.argsort(-sizes, kind="stable")[:LISTED].tolist()
    return order


def _written(
    terms: tuple[Term, ...], n_terms: int, bias: Operand | None, divisor: float | None
) -> str:
    """Write the first terms out: `0.5 · 1.2 + 0.1 · 0.3 + … + 0.02`."""
    parts = [
        f"{inner(term.input) if i else read(term.input)} · {inner(term.weight)}"
        for i, term in enumerate(terms[:_IN_FORMULA])
    ]
    if n_terms > _IN_FORMULA:
        parts.append("…")
    text = " + ".join(parts)
    if divisor is not None:
        text = f"({text}) / {read(divisor)}"
    return text if bias is None else f"{text} + {inner(known(bias))}"


def _numbered(word: str) -> Callable[[int], str]:
    return lambda i: f"{word} {i}"
