"""The chart of the stream pane: one row a depth, with norm, cosine, share and lens.

What is missing is a dash, what is no number says so, and neither has a bar.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from rich.segment import Segment
from rich.style import Style

from tui_gpt.records.analyses.lens import Lens, LensPoint
from tui_gpt.records.analyses.stream import Stream, StreamPoint
from tui_gpt.records.tokens import Token
from tui_gpt.views.commands.trace import bar
from tui_gpt.views.numbers import short
from tui_gpt.views.palette import Palette
from tui_gpt.views.panes.output import first_shown
from tui_gpt.views.rows import Row, padded, spread, width_of
from tui_gpt.views.sentence import at_position
from tui_gpt.views.text import fit, label

_NAME, _NUMBER, _MEAN, _COSINE, _SHARE, _PROB, _NATS = 14, 7, 8, 7, 8, 8, 7
"""Cells of the columns that have one width."""

_TOKEN = (10, 16)
"""Cells of the lens's token, at least and at most."""

_BAR = 20
"""Cells of the longest bar."""


def stream_chart(
    record: Stream,
    lens: Lens | None,
    tokens: tuple[Token, ...],
    position: int,
    chosen: int | None,
    width: int,
    height: int,
    palette: Palette,
) -> list[Row]:
    """Draw the title, the heads of the columns, and the depths that fit around the chosen one.

    Args:
        record: The stream.
        lens: Of the same position; None while there is none.
        tokens: Of the run.
        position: Whose norms, shares and lens are shown.
        chosen: The depth that is read, from 0.
        width: Cells of each row.
        height: Rows at most, but never fewer than three.
        palette: For this terminal.
    """
    columns = columns_of(record, position, width)
    count = len(record.points)
    room = max(1, min(count, height - 2))
    first = first_shown(count, room, chosen)
    part = "" if room == count else f" rows {first + 1}-{first + room} of {count} "
    where = at_position(tokens, position, palette)
    title: Row = [Segment(f" The stream by depth at {where}", palette.strong)]
    if width_of(title) + len(part) > width:
        part = ""
    mean = _column("mean", columns.mean)
    cosine = _column("cosine", columns.cosine)
    prob, nats = _column("prob", columns.prob), _column("nats", columns.nats)
    head = (
        f" {'':<{_NAME}}{'norm':>{_NUMBER}} {'':<{columns.norm_bar}}{mean}{cosine}"
        f"{'written':>{_SHARE}} {'':<{columns.share_bar}}{mean}  {fit('lens', columns.token)}"
        f"{prob}{nats}"
    )
    rows = [
        spread(title, [Segment(part, palette.faint)], width, palette.plain),
        padded([Segment(head, palette.faint)], width, palette.plain),
    ]
    for depth in range(first, first + room):
        point = record.points[depth]
        read = None if lens is None else lens.points[depth]
        name = Segment(
            fit(point_name(record, depth), _NAME),
            palette.chosen if depth == chosen else palette.strong,
        )
        row = [Segment(" ", palette.plain), name, *_stream_cells(point, position, columns, palette)]
        rows.append(padded([*row, *_lens_cells(read, columns, palette)], width, palette.plain))
    return rows


def point_name(record: Stream, depth: int) -> str:
    """Name a depth by the sub-layer that wrote last: `embedding`, `block 1 attn`, `block 1 FFN`."""
    if depth == 0:
        return "embedding"
    return f"block {(depth + 1) // 2} {'attn' if depth % 2 else 'FFN'}"


@dataclass(frozen=True, slots=True)
class Columns:
    """What the bars are drawn against, and the cells they have."""

    longest: float
    """The largest finite norm at this position."""
    largest: float
    """The largest finite share at this position."""
    mean: int
    """For the means over the positions; 0 where there is no room for them."""
    cosine: int
    """As above, and so on."""
    prob: int
    nats: int
    norm_bar: int
    share_bar: int
    token: int


def columns_of(record: Stream, position: int, width: int) -> Columns:
    """Share a width out among the columns, and find what a full bar stands for."""
    fixed = 1 + _NAME + _NUMBER + 1 + _SHARE + 1 + 2  # what there always is, but for the token
    has = {"cosine": _COSINE, "prob": _PROB, "nats": _NATS}
    while has and fixed + sum(has.values()) + _TOKEN[0] > width:
        has.popitem()  # the last column goes first: a number is whole or not there
    fixed += sum(has.values())
    mean = _MEAN if width >= fixed + 2 * _MEAN + 3 * _TOKEN[0] else 0
    fixed += 2 * mean
    token = max(_TOKEN[0], min(_TOKEN[1], (width - fixed) // 3))
    spare = max(0, min(2 * _BAR, width - fixed - token))
    norms = [point.norm[position] for point in record.points if point.norm is not None]
    shares = [
        point.written.share[position]
        for point in record.points
        if point.written is not None and point.written.share is not None
    ]
    return Columns(
        longest=max((float(x) for x in norms if math.isfinite(x)), default=0.0),
        largest=max((float(x) for x in shares if math.isfinite(x)), default=0.0),
        mean=mean,
        cosine=has.get("cosine", 0),
        prob=has.get("prob", 0),
        nats=has.get("nats", 0),
        norm_bar=spare - spare // 2,
        share_bar=spare // 2,
        token=token,
    )


def _stream_cells(point: StreamPoint, position: int, columns: Columns, palette: Palette) -> Row:
    """Write norm, cosine and share of one depth, each missing one as a dash."""
    norm = None if point.norm is None else float(point.norm[position])
    problem, plain = palette.problem, palette.plain
    style = problem if point.norm is None else plain
    row = _barred(
        _amount(norm), norm, columns.longest, (_NUMBER, columns.norm_bar), palette.stream, palette
    )
    cosine = "-" if point.cosine is None else f"{point.cosine:.2f}".replace("nan", "NaN")
    row.append(Segment(_column(_amount(point.mean_norm), columns.mean), style))
    row.append(Segment(_column(cosine, columns.cosine), style))
    written = point.written
    if written is None:
        return [*row, Segment(" " * (_SHARE + 1 + columns.share_bar + columns.mean), plain)]
    share = None if written.share is None else float(written.share[position])
    cells = (_SHARE, columns.share_bar)
    row += _barred(share_text(share), share, columns.largest, cells, palette.branch, palette)
    style = problem if written.share is None else plain
    return [*row, Segment(_column(share_text(written.mean), columns.mean), style)]


def _barred(
    text: str,
    value: float | None,
    full: float,
    cells: tuple[int, int],
    style: Style,
    palette: Palette,
) -> Row:
    """Write a number and its bar; what is no number is in the style of a problem."""
    known = value is not None and math.isfinite(value)
    drawn = bar(value / full, cells[1], palette.profile.glyphs) if known and full and value else ""
    return [
        Segment(f"{text:>{cells[0]}} ", palette.accent if known else palette.problem),
        Segment(drawn.ljust(cells[1]), style),
    ]


def _lens_cells(read: LensPoint | None, columns: Columns, palette: Palette) -> Row:
    """Write the best token of one depth with its probability, and the entropy."""
    width = columns.token + columns.prob + columns.nats
    gap = Segment("  ", palette.plain)
    if read is None:
        return [gap, Segment(" " * width, palette.plain)]
    if read.ranking is None:
        return [gap, Segment(fit("-", width), palette.problem)]
    if not read.ranking.best:
        return [gap, Segment(fit("no prediction", width), palette.problem)]
    glyphs = palette.profile.glyphs
    best, entropy = read.ranking.best[0], read.ranking.entropy
    name = fit(label(best.token, glyphs), columns.token, glyphs)
    prob = "-" if best.prob is None else "NaN" if math.isnan(best.prob) else f"{best.prob:.3f}"
    nats = "-" if entropy is None else f"{entropy:.2f}"
    hole = palette.problem if entropy is None else None
    return [
        gap,
        Segment(name, palette.strong),
        Segment(_column(prob, columns.prob), hole or palette.accent),
        Segment(_column(nats, columns.nats), hole or palette.plain),
    ]


def _column(text: str, cells: int) -> str:
    """Write something at the right of its column; nothing where there is no column."""
    return f"{text:>{cells}}" if cells else ""


def _amount(value: float | None) -> str:
    return short(value).replace("nan", "NaN")


def share_text(share: float | None) -> str:
    """Say a share in percent; it may be more than all of it, and NaN where 0 is added to 0."""
    if share is None or math.isnan(share):
        return "-" if share is None else "NaN"
    if math.isinf(share):
        return "inf"
    percent = 100 * share
    return f"{percent:.1f} %" if 0 < percent < 10 else f"{percent:.0f} %"
