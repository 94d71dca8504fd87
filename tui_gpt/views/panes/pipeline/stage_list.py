"""The stage list: one row a stage, a heading a block, and the residual stream as a gutter.

The gutter draws what the block does to the stream: `│` the stream, `├─╮` where a sub-layer
branches off, `│ │` while it works, `+─╯` where it is added. Nothing here is measured.
"""

from __future__ import annotations

from dataclasses import dataclass

from rich.segment import Segment

from tui_gpt.config import GPTConfig
from tui_gpt.records.block_plan import BlockPlan, block_plan
from tui_gpt.records.stages import Stage
from tui_gpt.views.palette import Palette
from tui_gpt.views.rows import Row, padded

NAME_WIDTH = 11
"""Cells of the longest name, attn_scores."""

_MARGIN = 2
"""Lines kept in sight above and below the chosen one."""

_STREAM, _ADDED = "│  ", "+─╯"
_ASCII = str.maketrans("│├─╮╯╷╵", "||-\\/,'")


@dataclass(frozen=True, slots=True)
class ListLine:
    """One line of the list: a stage, or the heading of a block."""

    index: int | None
    """The stage's place in the stage table; None for a heading."""
    gutter: str
    """Three cells."""
    name: str
    shape: str
    parameters: str
    """How many the stage owns; `tied` where it uses another's; empty for none."""


@dataclass(frozen=True, slots=True)
class ListLayout:
    """How wide the parts of the list are; 0 leaves a part out."""

    shape_width: int
    parameter_width: int

    @property
    def width(self) -> int:
        """Cells of a whole row: mark, gutter, blank, name, and the parts that are shown."""
        extra = sum(part + 1 for part in (self.shape_width, self.parameter_width) if part)
        return 5 + NAME_WIDTH + extra


def list_lines(stages: tuple[Stage, ...], config: GPTConfig) -> tuple[ListLine, ...]:
    """Lay out the list for one stage table."""
    lines: list[ListLine] = []
    layer: int | None = None
    plan = block_plan(config)
    for index, stage in enumerate(stages):
        if stage.layer is not None and stage.layer != layer:
            heading = f"block {stage.layer + 1} of {config.n_layer}"
            gutter = "│ │" if len(stage.reads) > 1 else _STREAM
            lines.append(ListLine(None, gutter, heading, "", ""))
        layer = stage.layer
        lines.append(
            ListLine(
                index,
                _gutter(stage, plan),
                stage.name,
                _shape(stage.shape),
                "tied"
                if any(parameter.shared for parameter in stage.parameters)
                else f"{stage.n_parameters:,}"
                if stage.n_parameters
                else "",
            )
        )
    return tuple(lines)


def list_layout(lines: tuple[ListLine, ...], width: int) -> ListLayout:
    """Decide what is shown on a screen of some width: shapes from 56 cells, counts from 76."""
    shape = max(len(line.shape) for line in lines)
    parameters = max(len(line.parameters) for line in lines)
    return ListLayout(shape if width >= 56 else 0, parameters if width >= 76 else 0)


def first_line(before: int, lines: tuple[ListLine, ...], index: int, height: int) -> int:
    """Move the list as little as needed to keep a stage in sight with some around it.

    Args:
        before: The first line shown so far.
        lines: The whole list.
        index: The chosen stage, in the stage table.
        height: Lines that are shown.

    Returns:
        The first line to show.
    """
    at = next(i for i, line in enumerate(lines) if line.index == index)
    margin = min(_MARGIN, (height - 1) // 2)
    first = max(min(before, at - margin), at + margin - height + 1)
    return max(0, min(first, len(lines) - height))


def list_rows(
    lines: tuple[ListLine, ...],
    layout: ListLayout,
    *,
    first: int,
    height: int,
    index: int,
    active: bool,
    palette: Palette,
) -> list[Row]:
    """Draw the part of the list that is in sight, a rule at its right.

    Args:
        lines: The whole list.
        layout: Which parts of a line are shown.
        first: The first line in sight.
        height: Rows to return; blank ones follow the last line.
        index: The chosen stage, in the stage table.
        active: The list has the arrow keys.
        palette: For this terminal.

    Returns:
        Rows of exactly `layout.width + 1` cells.
    """
    rule = Segment("|" if palette.profile.ascii else "│", palette.faint)
    rows = [
        [
            *list_row(line, layout, chosen=line.index == index, active=active, palette=palette),
            rule,
        ]
        for line in lines[first : first + height]
    ]
    blank: Row = [Segment(" " * layout.width, palette.plain), rule]
    return rows + [blank] * (height - len(rows))


def list_row(
    line: ListLine, layout: ListLayout, *, chosen: bool, active: bool, palette: Palette
) -> Row:
    """Draw one line of the list.

    Args:
        line: What it says.
        layout: Which parts are shown.
        chosen: The stage on the right is this one.
        active: The list has the keys.
        palette: For this terminal.

    Returns:
        A row of exactly `layout.width` cells.
    """
    ascii_only = palette.profile.ascii
    gutter = line.gutter.translate(_ASCII) if ascii_only else line.gutter
    text, faint, mark = palette.plain, palette.faint, " "
    if chosen:
        text = faint = palette.chosen if active else palette.chosen_elsewhere
        mark = ">" if ascii_only else "▸"
    stream, branch = (text, text) if chosen else (palette.stream, palette.branch)
    row: Row = [
        Segment(mark, text),
        Segment(gutter[:1], stream),
        Segment(gutter[1:], branch),
        Segment(" ", text),
    ]
    if line.index is None:
        row.append(Segment(line.name, palette.strong))
        return padded(row, layout.width, palette.plain)
    row.append(Segment(f"{line.name:<{NAME_WIDTH}}", text))
    if layout.shape_width:
        row.append(Segment(f" {line.shape:>{layout.shape_width}}", text))
    if layout.parameter_width:
        row.append(Segment(f" {line.parameters:>{layout.parameter_width}}", faint))
    return row


def _shape(shape: tuple[int, ...]) -> str:
    return f"({', '.join(str(size) for size in shape)})"


def _gutter(stage: Stage, plan: BlockPlan) -> str:
    """Draw what a stage does to the stream."""
    if stage.name == "tokens":
        return "   "
    if stage.name == "probs":
        return "╵  "
    if len(stage.reads) > 1 and stage.kind == "sum":
        return _ADDED  # positions join the embedding, or a sub-layer its stream
    if stage.layer is None:
        return "│ ╷" if stage.name == "pos_embed" else _STREAM
    if plan.opens_branch(stage.name):
        return "├─╮"
    return "│ │" if plan.in_branch(stage.name) else _STREAM
