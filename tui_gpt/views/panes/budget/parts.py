"""Where the parameters sit: parts with bars, the sizes a model goes by, and how they reconcile."""

from __future__ import annotations

import re

from tui_gpt.config import PRESETS, GPTConfig
from tui_gpt.records.budget.counts import (
    FAMILY,
    Budget,
    Part,
    StateDictCount,
    budget,
    rounded,
    size_names,
)
from tui_gpt.views.numbers import counted
from tui_gpt.views.palette import Palette
from tui_gpt.views.panes.budget.table_rows import Cell, heading_row, sentence, table_row
from tui_gpt.views.rows import Row
from tui_gpt.views.sentence import gauge
from tui_gpt.views.text import sanitize
from tui_gpt.views.units import count_text

_NAME, _FORMULA, _COUNT, _SHARE = 17, 12, 12, 8
_NUMBERS = 29
_LABEL, _VALUE = 16, 15
_LONGEST_BAR = 40


def parts_rows(found: Budget, width: int, palette: Palette) -> list[Row]:
    """List every part: its shape, its parameters, its share of the model as a bar.

    The bar of the largest part is as long as there is room.

    Args:
        found: What was counted.
        width: Cells of each row; the shapes' numbers are there from 84 cells on.
        palette: For this terminal.

    Returns:
        Fifteen rows. Parts of a block are counted in one block, their share in all.
    """
    inside = [part for part in found.parts if part.in_block]
    first = found.parts.index(inside[0])
    n_layer = found.config.n_layer
    strong, plain, accent = palette.strong, palette.plain, palette.accent
    each = f"{counted(n_layer, 'block')}, each" if n_layer > 1 else "1 block"
    table = _Parts(found, width, palette)
    return [
        table.head(),
        *(table.part(part) for part in found.parts[:first]),
        table.sum(each, None, None, strong),
        *(table.part(part) for part in inside),
        table.sum("  one block", found.per_block, None, plain),
        table.sum(f"{n_layer:,} × one block", found.blocks, found.blocks, strong),
        *(table.part(part) for part in found.parts[first + len(inside) :]),
        table.sum("total", found.total, found.total, accent),
    ]


def names_rows(found: Budget, width: int, palette: Palette) -> list[Row]:
    """Say which sizes one model goes by, and why: the one that counts this shape is marked."""
    names = size_names(found)
    words = {2: "Two", 3: "Three"}[len(names)]
    rows = [heading_row(f"{words} sizes, one model: which is which", width, palette)]
    for size in names:
        style = palette.accent if size.current else palette.plain
        mark = "▸" if size.current else " "
        count = "" if size.count is None else f"{count_text(size.count, 13)}  "
        cells = [Cell(f"{mark}{size.name}", 7, style), Cell(count + size.why, width - 7, style)]
        rows.append(table_row(cells, width, palette))
    return rows


def counts_rows(
    found: Budget, state_dict: StateDictCount | None, width: int, palette: Palette
) -> list[Row]:
    """Reconcile the counts: exact ones, approximate ones with their error, the file's.

    Args:
        found: What was counted from the config.
        state_dict: What is in the weight file; None where there is none, or not yet.
        width: Cells of each row.
        palette: For this terminal.
    """
    config = found.config

    def line(label: str, count: str, why: str) -> Row:
        cells = [
            Cell(f" {label}", _LABEL, palette.plain),
            Cell(f"{count} ", -_VALUE, palette.accent),
            Cell(f" {why}", max(0, room + 1), palette.faint),
        ]
        return table_row(cells, width, palette)

    room = width - _LABEL - _VALUE - 1
    near = found.approx_blocks + found.approx_embedding
    embedding = found["token embedding"].count
    biases = f"{config.n_layer} · 3 · {config.n_embd}, counted"
    ffn, attention = found.ffn, found.attention
    apart = count_text(ffn - attention, 14, signed=True).replace("-", "−")
    shaped = 100 * found.share(found.embedding_shaped)
    return [
        heading_row("Counts", width, palette),
        line("tied", count_text(found.tied, 14), "head = token table"),
        line("untied", count_text(found.untied, 14), "head counted too"),
        line("no positions", count_text(found.without_positions, 14), "of this shape"),
        line("in a state dict", count_text(found.untied, 14), "a tied head: twice"),
        line("V·C matrices", count_text(found.embedding_shaped, 14), f"{shaped:.1f} % of all"),
        line(
            "q k v biases",
            count_text(found.qkv_biases, 14),
            biases if found.qkv_biases else "left out",
        ),
        heading_row("Approximate, beside the exact count", width, palette),
        *(
            line(label, f"≈{count_text(count, 13)}", _off(count, exact, of, room))
            for label, count, exact, of in (
                ("12·L·C²", found.approx_blocks, found.blocks, "all blocks"),
                ("V·C", found.approx_embedding, embedding, "token embedding"),
                ("12·L·C² + V·C", near, found.tied, "tied total"),
            )
        ),
        heading_row(f"In a block (head_dim {_head_dim(config)})", width, palette),
        line("FFN", count_text(ffn, 14), f"{100 * ffn / found.per_block:.1f} % of a block"),
        line(
            "attention",
            count_text(attention, 14),
            f"{100 * attention / found.per_block:.1f} % of a block",
        ),
        line("FFN − attention", apart, f"level at {found.parity:.4f}·C"),
        *(_file(found, state_dict, width, palette) if state_dict is not None else []),
    ]


def family_rows(width: int, palette: Palette) -> list[Row]:
    """Put the four sizes of GPT-2 side by side: heads, both names, the counts."""
    faint, plain = palette.faint, palette.plain
    columns = (("", 13), ("C / heads", 15), ("paper", -6), ("now", -6), ("tied", -14))
    head = [Cell(text, cells, faint) for text, cells in columns]
    rows = [
        heading_row("The four sizes of GPT-2", width, palette),
        table_row(head, width, palette),
    ]
    for name, paper in FAMILY.items():
        config = PRESETS[name]
        count = budget(config).total
        cells = [
            Cell(f" {name}", 13, plain),
            Cell(_head_dim(config), 15, faint),
            Cell(paper, -6, plain),
            Cell(rounded(count), -6, plain),
            Cell(f"{count:,}", -14, palette.accent),
        ]
        rows.append(table_row(cells, width, palette))
    return rows


class _Parts:
    """The columns of the parts table for one width."""

    def __init__(self, found: Budget, width: int, palette: Palette) -> None:
        self._found = found
        self._width = width
        self._palette = palette
        used = _NAME + _FORMULA + _COUNT + _SHARE + 1
        self._numbers = _NUMBERS if width >= used + _NUMBERS + 5 else 0
        self._largest = max(found.share(part.count) for part in found.parts)
        self._bar = max(0, min(_LONGEST_BAR, width - used - self._numbers))

    def head(self) -> Row:
        faint = self._palette.faint
        cells = [Cell(" part", _NAME, faint), Cell("shape", _FORMULA + self._numbers, faint)]
        cells += [Cell("parameters", -_COUNT, faint), Cell("share", -_SHARE, faint)]
        return table_row(cells, self._width, self._palette)

    def part(self, part: Part) -> Row:
        """Write one part; of a part that owns nothing, why."""
        palette = self._palette
        name = f" {'  ' if part.in_block else ''}{part.name}"
        cells = [Cell(name, _NAME, palette.plain)]
        if part.note:
            cells.append(Cell(part.note, _FORMULA + self._numbers + 4, palette.faint))
            cells.append(Cell("0", 4 - _COUNT, palette.plain))
        else:
            cells.append(Cell(part.formula, _FORMULA, palette.faint))
            if self._numbers:
                cells.append(Cell(f" {_with_commas(part.numbers)}", self._numbers, palette.plain))
            cells.append(Cell(count_text(part.each, _COUNT - 1), -_COUNT, palette.plain))
        return table_row([*cells, *self._share(part.count)], self._width, palette)

    def sum(self, label: str, count: int | None, of_all: int | None, style: object) -> Row:
        """Write a line that adds up, or begins, what stands around it."""
        palette = self._palette
        shown = palette.accent if style is palette.accent else palette.strong
        if style is palette.plain:
            shown = palette.plain
        room = _FORMULA + self._numbers + _COUNT
        number = "" if count is None else count_text(count, room - 1)
        cells = [Cell(f" {label}", _NAME, shown), Cell(number, -room, shown)]
        if of_all is not None:
            cells.append(Cell(_share_text(self._found.share(of_all)), -_SHARE, shown))
        return table_row(cells, self._width, palette)

    def _share(self, count: int) -> list[Cell]:
        palette = self._palette
        if not count:
            return []
        share = self._found.share(count)
        bar = f" {gauge(share / self._largest, self._bar, palette)}" if self._bar > 2 else ""
        return [
            Cell(_share_text(share), -_SHARE, palette.plain),
            Cell(bar, self._bar + 1, palette.stream),
        ]


def _share_text(share: float) -> str:
    """Say a share with one place; what is too small for it is not nothing."""
    return "<0.1 %" if 0 < share < 0.0005 else f"{100 * share:.1f} %"


def _with_commas(numbers: str) -> str:
    return re.sub(r"\d+", lambda found: f"{int(found[0]):,}", numbers)


def _off(near: int, exact: int, of: str, room: int) -> str:
    """Say how far an approximation is off, and from what, as far as there is room."""
    if near == exact:
        return f"no error: {of}" if len(of) + 10 <= room else "no error"
    off, percent = f"{near - exact:+,}", f"{100 * (near - exact) / exact:+.2f} %"
    said = [f"{off}, {percent} of {of} {exact:,}", f"{off}, {percent} of {of}", f"{off}, {percent}"]
    return next((text for text in said if len(text) <= room), percent).replace("-", "−")


def _head_dim(config: GPTConfig) -> str:
    return f"{config.n_embd}/{config.n_head} = {config.head_dim}"


def _file(found: Budget, state_dict: StateDictCount, width: int, palette: Palette) -> list[Row]:
    """Say what the weight file holds, and what it does not hold and why."""
    same = state_dict.n_parameters == found.total
    said = [
        f"{counted(state_dict.n_tensors, 'tensor')} with "
        f"{counted(state_dict.n_parameters, 'parameter')}: "
        + ("equal to the config's total" if same else f"the config's total is {found.total:,}")
    ]
    for key, count in state_dict.twice:
        said.append(f"{sanitize(key)} ({count:,}) is stored again: it is the token table")
    for key, count in state_dict.buffers:
        said.append(f"{sanitize(key)} ({count:,}) is a buffer: not learned, not counted")
    if found.config.tied and not state_dict.twice:
        said.append("the head is not stored: it is the token table")
    if found.config.positions == "sinusoidal":
        size = found.config.block_size * found.config.n_embd
        said.append(f"the position table ({size:,} numbers) is a computed buffer, not stored")
    rows = [heading_row("In the weight file", width, palette)]
    for text in said:
        rows += sentence(text, width, palette)
    return rows
