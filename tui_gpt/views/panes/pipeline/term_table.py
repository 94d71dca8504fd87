"""The products that add up to one number, as a table with bars: the largest, and the rest."""

from __future__ import annotations

import math

from rich.cells import cell_len
from rich.segment import Segment

from tui_gpt.records.analyses.explanation import CellRef, Explanation, Term
from tui_gpt.records.trace import Run
from tui_gpt.views.commands.trace import bar
from tui_gpt.views.numbers import counted, short
from tui_gpt.views.palette import Palette
from tui_gpt.views.rows import Row
from tui_gpt.views.stage_text import wrapped
from tui_gpt.views.text import fit, named, transliterate

_ROOMY = 56
"""Cells from which on numbers have three digits; below they have two."""
_MOST_BAR = 30
_LEAST_BAR = 5


def term_rows(
    explanation: Explanation, run: Run, width: int, palette: Palette, chosen: CellRef | None
) -> list[Row]:
    """Write the table of products, and what is added to those that are listed.

    Args:
        explanation: Of a cell that is a sum of products.
        run: The run it belongs to, for the tokens' names.
        width: Cells that a row may take, 40 at least.
        palette: For this terminal.
        chosen: Marked wherever it stands among the factors.
    """
    glyphs = palette.profile.glyphs
    table = _Table(explanation, [_label(term, run, palette) for term in explanation.terms], width)
    head = f"{table.blank}{table.right('input')}{table.right('weight')}{table.right('product')}"
    rows: list[Row] = [
        *(
            [Segment(line, palette.plain)]
            for line in wrapped(transliterate(_products(explanation), glyphs), width)
        ),
        [Segment(head, palette.faint)],
    ]

    def factor(value: float, cell: CellRef) -> Row:
        mark = chosen is not None and cell == chosen
        text = table.number(value)
        gap = len(text) - len(text.lstrip())
        style = palette.cursor if mark else palette.plain
        return [Segment(text[:gap], palette.plain), Segment(text[gap:], style)]

    for term, name in zip(explanation.terms, table.names, strict=True):
        rows.append(
            [
                Segment(fit(name, table.label_cells, glyphs), palette.plain),
                *factor(term.input, term.input_cell),
                *factor(term.weight, term.weight_cell),
                *_product(term.product, table, palette),
            ]
        )
    more = explanation.n_terms - len(explanation.terms)
    if more:
        rows.append(_sum_row(f"{more} more", explanation.remainder, table, palette))
    if any(operand.role == "bias" for operand in explanation.operands):
        rows.append(_sum_row("bias", explanation.bias, table, palette))
    total = explanation.value_float64
    assert total is not None  # only a masked cell has none, and it has no terms either
    name = f"{'sum':<{table.label_cells + 2 * (table.cells + 1)}}"
    return [*rows, [Segment(name, palette.faint), Segment(table.number(total), palette.accent)]]


class _Table:
    """The columns of the terms: label, three numbers, a bar."""

    def __init__(self, explanation: Explanation, labels: list[str], width: int) -> None:
        self.digits, self.cells = (3, 8) if width >= _ROOMY else (2, 7)
        numbers = 3 * (self.cells + 1)
        room = max(1, width - numbers - 1 - _LEAST_BAR)
        widest = max(cell_len(name) for name in labels)
        # A number says more than the word before it.
        self.names = (
            labels if widest <= room else [name.replace("feature ", "f") for name in labels]
        )
        more = len(f"{explanation.n_terms} more")
        self.label_cells = min(room, max(more, *(cell_len(name) for name in self.names)))
        self.bar_cells = min(_MOST_BAR, max(0, width - self.label_cells - numbers - 1))
        parts = [term.product for term in explanation.terms]
        sizes = [abs(part) for part in (*parts, explanation.remainder, explanation.bias)]
        self.longest = max((size for size in sizes if size < math.inf), default=0.0)

    @property
    def blank(self) -> str:
        """What stands above the labels."""
        return " " * self.label_cells

    def right(self, text: str) -> str:
        """Put a word above a column of numbers."""
        return f" {text:>{self.cells}}"

    def number(self, value: float) -> str:
        """Write a number in its column."""
        return self.right(short(value, self.digits))


def _sum_row(name: str, value: float, table: _Table, palette: Palette) -> Row:
    """Write a sum of products, or the bias, under the products."""
    return [
        Segment(fit(name, table.label_cells, palette.profile.glyphs), palette.faint),
        Segment(" " * 2 * (table.cells + 1), palette.plain),
        *_product(value, table, palette),
    ]


def _product(value: float, table: _Table, palette: Palette) -> Row:
    """Write a product with its bar: full for a positive one, shaded for a negative one."""
    share = abs(value) / table.longest if table.longest else 0.0
    drawn = bar(share, table.bar_cells, palette.profile.glyphs)
    style = palette.accent
    if value < 0:
        style = palette.branch
        drawn = ("-" if palette.profile.ascii else "▒") * len(drawn)
    return [
        Segment(table.number(value), palette.plain),
        Segment(" ", palette.plain),
        Segment(drawn, style),
    ]


def _products(explanation: Explanation) -> str:
    """Say what is multiplied, and how many products are listed."""
    first, n_terms = explanation.terms[0], explanation.n_terms
    listed = len(explanation.terms)
    which = (
        counted(n_terms, "product")
        if listed == n_terms
        else f"{listed} largest of {n_terms:,} products"
    )
    factors = " × ".join(
        cell.stage.rpartition(".")[2] if cell.stage is not None else f"{cell.parameter}"
        for cell in (first.input_cell, first.weight_cell)
    )
    scaled = any(operand.role == "√D" for operand in explanation.operands)
    return f"{which}: {factors}{' / √D' if scaled else ''}"


def _label(term: Term, run: Run, palette: Palette) -> str:
    """Name a term; a key by its token too."""
    if not term.label.startswith("key "):
        return term.label
    return f"{term.label} {named(run.tokens[term.input_cell.index[-1]], palette.profile.glyphs)}"
