"""Cells that are shares of a whole row: exp(x − row maximum) / row sum."""

from __future__ import annotations

import numpy as np

from tui_gpt.analysis.explain.cell import Cell, inner, known, number, output_row, read
from tui_gpt.analysis.explain.products import unseen
from tui_gpt.records.analyses.explanation import CellRef, Explanation, Operand
from tui_gpt.records.tensors import Values


def softmax(cell: Cell) -> Explanation:
    """`pattern`, `probs`: a share of a row."""
    return _attention(cell) if cell.stage.axes[-1] == "Tk" else _probability(cell)


def _attention(cell: Cell) -> Explanation:
    """`pattern`: what part of its reading a query takes from a key; 0 from the future."""
    head, query, key = cell.index
    (scores,) = cell.stage.reads
    where = CellRef.of_stage(scores, head, query, key)
    window = cell.config.window
    first = 0 if window is None else max(0, query + 1 - window)
    seen = cell.values(scores)[head, query, first : query + 1]  # only what the query may see
    reason = unseen(query, key, window)
    if reason is None:
        return _share(cell, Operand("score", where, number(seen[key - first])), seen)
    maximum, total = _row(seen)
    return Explanation(
        stage=cell.stage.id,
        index=cell.index,
        value=cell.value,
        value_float64=0.0,
        formula=f"{cell.stage.formula} = 0, since {reason[0]}",
        operands=(Operand("score", where, None), maximum, total),
        reason=reason[1],
    )


def _probability(cell: Cell) -> Explanation:
    """`probs`: the share of one vocabulary entry among all of them."""
    place, entry = cell.index
    (logits,) = cell.stage.reads
    row = output_row(cell.trace, logits, place)  # (V,)
    where = CellRef.of_stage(logits, place, entry)
    return _share(cell, Operand("logit", where, number(row[entry])), row)


def _share(cell: Cell, x: Operand, row: Values) -> Explanation:
    """Explain one share of a row, in float64."""
    maximum, total = _row(row)
    power = float(np.exp(known(x) - known(maximum)))
    numbers = f"exp({read(known(x))} − {inner(known(maximum))}) / {read(known(total))}"
    return cell.explained(numbers, float(np.float64(power) / known(total)), (x, maximum, total))


def _row(row: Values) -> tuple[Operand, Operand]:
    """Derive what a whole row shares: its maximum, and the sum of exp(x − maximum)."""
    maximum = row.max()
    total = np.exp(row.astype(np.float64) - maximum).sum()
    return Operand("row maximum", None, float(maximum)), Operand("row sum", None, float(total))
