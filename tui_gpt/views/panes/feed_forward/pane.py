"""Pane 3: the hidden layer of a block, before and after the activation, and what fires.

Above, `mlp_pre` and `mlp_post` side by side, scrolled together to the chosen token and unit.
Below, the units that fire at the chosen token, the chosen unit's place on the activation curve,
and the tokens that fire it. Last, one unit in numbers, and how many units are off.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from rich.segment import Segment

from tui_gpt.config import Activation, GPTConfig
from tui_gpt.records.analyses.feed_forward import FeedForward
from tui_gpt.records.stage_values import StageValues
from tui_gpt.records.tokens import Token
from tui_gpt.views.chart import curve_rows
from tui_gpt.views.heatmap import frame_for, heatmap_rows, legend
from tui_gpt.views.matrix import matrix_of
from tui_gpt.views.numbers import short
from tui_gpt.views.palette import Palette
from tui_gpt.views.panes.feed_forward.unit_lists import firing_tokens, firing_units
from tui_gpt.views.rows import Row, fitted, padded, width_of
from tui_gpt.views.sentence import at_position, percent
from tui_gpt.views.stage_text import title_row
from tui_gpt.views.text import transliterate
from tui_gpt.views.window import finished, has_halves, reason_rows, window

_WIDE = 64
"""Cells from which there is room for heatmaps side by side, and for the curve."""

_HIGH = 18
"""Rows from which there is room for the heatmaps."""

_CURVE = 4.0
"""The curve shows at least the inputs from −4 to 4."""

_NAMES: dict[Activation, str] = {"gelu": "GELU", "gelu_tanh": "GELU", "relu": "ReLU"}


@dataclass(frozen=True, slots=True)
class FeedForwardPanel:
    """What was drawn, and the part of the heatmaps that is on the screen now."""

    rows: list[Row]
    top: int
    left: int
    page: int
    """Tokens on the screen."""


def ffn_pane(
    record: FeedForward,
    config: GPTConfig,
    tokens: tuple[Token, ...],
    *,
    position: int,
    unit: int,
    dense: bool,
    top: int,
    left: int,
    width: int,
    height: int,
    palette: Palette,
) -> FeedForwardPanel:
    """Draw the hidden layer of one block.

    Args:
        record: Of that block.
        config: Of the model.
        tokens: Of the run.
        position: The chosen token, from 0.
        unit: The chosen unit, from 0.
        dense: Two tokens a line in the heatmaps, where colours allow it.
        top: The first token of the last drawing.
        left: The first unit of the last drawing.
        width: Cells of each row.
        height: Rows to return.
        palette: For this terminal.
    """
    rows = [_heading(record, config, unit, width, palette)]
    page = 1
    if width >= _WIDE and height >= _HIGH:
        halves = dense and has_halves(palette)
        lines = -(-record.n_positions // 2) if halves else record.n_positions
        maps = _Maps(record, tokens, position, unit, halves, palette)
        panel = maps.draw(top, left, width, min(lines + 2, max(9, height // 2 - 1)))
        rows, top, left, page = [*rows, *panel.rows], panel.top, panel.left, panel.page
    room = max(0, height - len(rows) - 2)
    rows += _below(record, tokens, position, unit, width, room, palette)
    rows += [
        padded(row, width, palette.plain)
        for row in (
            _in_numbers(record, tokens, position, unit, width, palette),
            _off(record, tokens, position, width, palette),
        )
    ]
    return FeedForwardPanel(finished(rows, width, height, palette), top, left, page)


def _heading(
    record: FeedForward, config: GPTConfig, unit: int, width: int, palette: Palette
) -> Row:
    """Say which block it is, what the activation computes, and which unit is chosen."""
    glyphs = palette.profile.glyphs
    block = f"Block {record.layer + 1} of {config.n_layer} · " if width >= _WIDE else ""
    right: Row = [
        Segment(f" L{record.layer} unit {unit}", palette.accent),
        Segment(transliterate(f" · 0…{record.n_units - 1} ", glyphs), palette.plain),
    ]
    return title_row(f" {block}feed-forward", record.post.stage, right, width, palette)


@dataclass(frozen=True, slots=True)
class _Maps:
    """The two heatmaps, which scroll as one."""

    record: FeedForward
    tokens: tuple[Token, ...]
    position: int
    unit: int
    halves: bool
    palette: Palette

    def draw(self, top: int, left: int, width: int, height: int) -> FeedForwardPanel:
        """Draw both side by side in rows of exactly `width` cells."""
        record, palette = self.record, self.palette
        rule = Segment("|" if palette.profile.ascii else "│", palette.faint)
        half = (width - 1) // 2
        before = self._one(record.pre, record.pre_range, top, left, half, height)
        after = self._one(record.post, record.post_range, top, left, half, height)
        where = before if record.pre.tensor is not None else after
        rows = [
            padded([*a, rule, *b], width, palette.plain)
            for a, b in zip(before.rows, after.rows, strict=True)
        ]
        return FeedForwardPanel(rows, where.top, where.left, where.page)

    def _one(
        self,
        source: StageValues,
        ends: tuple[float, float] | None,
        top: int,
        left: int,
        width: int,
        height: int,
    ) -> FeedForwardPanel:
        """Draw one of them under its name and scale."""
        palette = self.palette
        title: Row = [Segment(f" {source.stage.name}  ", palette.strong)]
        if source.tensor is None:
            rows = [
                padded(title, width, palette.plain),
                *reason_rows(f"missing: {source.missing}", width, height - 1, palette),
            ]
            return FeedForwardPanel(rows, top, left, 1)
        bound = max(abs(end) for end in ends or (0.0,))
        matrix = matrix_of(source.tensor, 0, self.tokens, None, palette, bound=bound)
        frame = frame_for(matrix, width, height - 1, dense=self.halves)
        cell = (self.position, self.unit)
        top, left = window(frame, matrix.shape, cell, top, left)
        scale: Row = [Segment("no finite value", palette.problem)]
        if ends is not None:
            scale = legend(matrix, *ends, palette)
        picture = heatmap_rows(
            matrix,
            frame,
            top=top,
            left=left,
            cursor=cell,
            width=width,
            palette=palette,
        )
        rows = [padded([*title, *scale], width, palette.plain), *picture]
        return FeedForwardPanel(
            fitted(rows, width, height, palette.plain), top, left, max(1, frame.rows)
        )


def _below(
    record: FeedForward,
    tokens: tuple[Token, ...],
    position: int,
    unit: int,
    width: int,
    height: int,
    palette: Palette,
) -> list[Row]:
    """Put the two lists side by side, the curve between them where there is room."""
    rule = Segment("|" if palette.profile.ascii else "│", palette.faint)
    with_curve = width >= _WIDE and height >= 5
    units_width = min(48, max(26, width * 35 // 100)) if with_curve else (width - 1) * 55 // 100
    tokens_width = min(48, width * 30 // 100) if with_curve else width - 1 - units_width
    units = firing_units(
        record,
        tokens,
        position=position,
        unit=unit,
        width=units_width,
        height=height,
        palette=palette,
    )
    firing = firing_tokens(
        record,
        tokens,
        position=position,
        unit=unit,
        width=tokens_width,
        height=height,
        palette=palette,
    )
    if not with_curve:
        return [[*a, rule, *b] for a, b in zip(units, firing, strict=True)]
    middle = width - units_width - tokens_width - 2
    curve = _curve(record, position, unit, middle, height, palette)
    return [[*a, rule, *b, rule, *c] for a, b, c in zip(units, curve, firing, strict=True)]


def _curve(
    record: FeedForward, position: int, unit: int, width: int, height: int, palette: Palette
) -> list[Row]:
    """Draw the activation with this unit's value at this token on it."""
    name = _NAMES[record.curve.activation]
    point = _value(record, position, unit)
    title = f" {name}(x)"
    if point is not None:
        title = f" {name}({short(point[0])}) = {short(point[1])}"
    inputs = np.zeros(0) if record.pre.tensor is None else record.pre.tensor.values[:, unit]
    inputs = inputs[np.isfinite(inputs)]
    window = (
        min(-_CURVE, float(inputs.min(initial=0.0))),
        max(_CURVE, float(inputs.max(initial=0.0))),
    )
    if point is not None and not all(math.isfinite(value) for value in point):
        point = None
    rows: list[Row] = [[Segment(title, palette.strong)]]
    rows += curve_rows(
        record.curve,
        window=window,
        point=point,
        width=width,
        height=min(height - 1, max(5, width // 3)),
        palette=palette,
    )
    return fitted(rows, width, height, palette.plain)


def _value(record: FeedForward, position: int, unit: int) -> tuple[float, float] | None:
    """Give one unit's value before and after the activation; None where one is missing."""
    if record.pre.tensor is None or record.post.tensor is None:
        return None
    before = record.pre.tensor.values[position, unit]
    return float(before), float(record.post.tensor.values[position, unit])


def _in_numbers(
    record: FeedForward,
    tokens: tuple[Token, ...],
    position: int,
    unit: int,
    width: int,
    palette: Palette,
) -> Row:
    """Say what one unit does at one token, and how many units fire more strongly."""
    name = at_position(tokens, position, palette)
    row: Row = [Segment(f" unit {unit} at {name}: ", palette.plain)]
    for source, arrow in (
        (record.pre, ""),
        (record.post, transliterate(" → ", palette.profile.glyphs)),
    ):
        named = f"{source.stage.name} " if width >= _WIDE else ""
        row.append(Segment(f"{arrow}{named}", palette.plain))
        if source.tensor is None:
            row.append(Segment("missing", palette.problem))
        else:
            number = short(float(source.tensor.values[position, unit]))
            row.append(Segment(number, palette.accent))
    if record.post.tensor is not None and width >= _WIDE:
        rank = int(np.flatnonzero(record.units(position) == unit)[0]) + 1
        row.append(Segment(f", rank {rank} of {record.n_units}", palette.plain))
    return row


def _off(
    record: FeedForward, tokens: tuple[Token, ...], position: int, width: int, palette: Palette
) -> Row:
    """Say how many units are off, at this token, over all, and throughout; and what that means."""
    glyphs = palette.profile.glyphs
    meaning = " off (mlp_post ≤ 0): " if width >= _WIDE else " off: "
    row: Row = [Segment(transliterate(meaning, glyphs), palette.plain)]
    if record.off_share is None or record.off_overall is None:
        return [*row, Segment("not known, mlp_post is missing", palette.problem)]
    here = float(record.off_share[position])
    if math.isnan(here) or math.isnan(record.off_overall):
        return [*row, Segment("not known, a value of mlp_post is NaN", palette.problem)]
    row += [
        Segment(percent(here), palette.accent),
        Segment(f" at {at_position(tokens, position, palette)}, ", palette.plain),
        Segment(percent(record.off_overall), palette.accent),
        Segment(" over all", palette.plain),
    ]
    notes = [" tokens", f", {record.n_silent} units at every one"]
    if record.curve.activation != "relu":
        notes.append("; a GELU that is off still lets up to −0.17 through")
    for note in notes:
        text = transliterate(note, glyphs)
        if width_of(row) + len(text) <= width:
            row.append(Segment(text, palette.plain))
    return row
