"""Which hidden units fire for a token, and which tokens fire a unit: two lists with bars."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.segment import Segment

from tui_gpt.records.analyses.feed_forward import FeedForward
from tui_gpt.records.tokens import Token
from tui_gpt.views.numbers import counted, short
from tui_gpt.views.palette import Palette
from tui_gpt.views.rows import Row, blank_rows, fitted, padded
from tui_gpt.views.sentence import at_position, gauge
from tui_gpt.views.text import fit, transliterate
from tui_gpt.views.window import reason_rows

_NUMBER = 8
"""Cells of a rounded number."""

_NAMED = 6
"""Rows from which the columns of a list are named."""


def firing_units(
    record: FeedForward,
    tokens: tuple[Token, ...],
    *,
    position: int,
    unit: int,
    width: int,
    height: int,
    palette: Palette,
) -> list[Row]:
    """List the units that fire at a token, most first; the chosen one is always among them.

    Returns:
        `height` rows of exactly `width` cells.
    """
    if record.post.tensor is None:
        return reason_rows(f"missing: {record.post.missing}", width, height, palette)
    after = record.post.tensor.values[position]
    before = None if record.pre.tensor is None else record.pre.tensor.values[position]
    order = [i for i in record.units(position).tolist() if after[i] > 0]
    name = at_position(tokens, position, palette)
    count = counted(len(order), "unit")
    rows = [_title((f" {name} fires {count}", f" {name}: {count}", f" {count}"), width, palette)]
    digits = max(4, len(str(record.n_units - 1)))
    if height >= _NAMED:
        names = f" {'unit':>{digits}}{'pre':>{_NUMBER}}{'post':>{_NUMBER}}"
        rows.append([Segment(names, palette.faint)])
    shown = _with_chosen(order, unit, height - len(rows))
    largest = float(after[order[0]]) if order else 0.0
    bar = max(0, width - digits - 2 * _NUMBER - 3)
    for i in shown:
        if i is None:
            rows.append(
                [Segment(f" {transliterate('…', palette.profile.glyphs):>{digits}}", palette.faint)]
            )
            continue
        pre = "-" if before is None else short(float(before[i]))
        post = float(after[i])
        texts = (f" {i:>{digits}}", f"{pre:>{_NUMBER}}", f"{short(post):>{_NUMBER}}")
        rows.append(_line(texts, post, largest, bar, chosen=i == unit, palette=palette))
    return fitted(rows, width, height, palette.plain)


def firing_tokens(
    record: FeedForward,
    tokens: tuple[Token, ...],
    *,
    position: int,
    unit: int,
    width: int,
    height: int,
    palette: Palette,
) -> list[Row]:
    """List the tokens that fire a unit, most first; the chosen one is always among them.

    Returns:
        `height` rows of exactly `width` cells.
    """
    if record.post.tensor is None:
        return blank_rows(height, width, palette.plain)
    after = record.post.tensor.values[:, unit]
    order = [i for i in record.tokens(unit).tolist() if after[i] > 0]
    count = f"{len(order)} of {record.n_positions}"
    named = height >= _NAMED
    shown = _with_chosen(order, position, height - 1 - named)
    names = {i: at_position(tokens, i, palette) for i in shown if i is not None}
    widest = max((cell_len(name) for name in names.values()), default=0)
    name_width = max(5, min(widest, width - _NUMBER - 2))
    titles = (f" unit {unit} fires at {count} tokens", f" unit {unit}: {count} tokens")
    shorter = (f" fires at {count} tokens", f" at {count} tokens")
    rows = [_title((*titles, *shorter), width, palette)]
    if named:
        rows.append([Segment(f" {'token':<{name_width}}{'post':>{_NUMBER}}", palette.faint)])
    largest = float(after[order[0]]) if order else 0.0
    bar = max(0, width - name_width - _NUMBER - 3)
    for i in shown:
        if i is None:
            rows.append([Segment(f" {transliterate('…', palette.profile.glyphs)}", palette.faint)])
            continue
        post = float(after[i])
        name = fit(names[i], name_width, palette.profile.glyphs)
        texts = (f" {name}", "", f"{short(post):>{_NUMBER}}")
        rows.append(_line(texts, post, largest, bar, chosen=i == position, palette=palette))
    return fitted(rows, width, height, palette.plain)


def _with_chosen(order: Sequence[int], chosen: int, room: int) -> list[int | None]:
    """Take the first ones that fit, and the chosen one below a gap where it is not among them."""
    if chosen in order[:room]:
        return list(order[:room])
    return [*order[: max(0, room - 2)], None, chosen][-max(0, room) :] if room > 0 else []


def _title(texts: tuple[str, ...], width: int, palette: Palette) -> Row:
    """Take the first text that fits."""
    text = next((text for text in texts if cell_len(text) <= width), texts[-1])
    return padded([Segment(text, palette.strong)], width, palette.plain)


def _line(
    texts: tuple[str, str, str],
    value: float,
    largest: float,
    bar: int,
    *,
    chosen: bool,
    palette: Palette,
) -> Row:
    """Draw one line: name, a first number, the number that counts, its bar."""
    name, first, number = texts
    share = value / largest if 0 < largest < float("inf") else 0.0
    if chosen:
        pointer = ">" if palette.profile.ascii else "▸"
        row = [Segment(f"{pointer}{name[1:]}{first}{number}", palette.chosen)]
    else:
        row = [
            Segment(name, palette.plain),
            Segment(first, palette.plain),
            Segment(number, palette.accent),
        ]
    return [*row, Segment(f" {gauge(share, bar, palette)}", palette.stream)]
