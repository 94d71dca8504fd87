"""Pane 4: the residual stream by depth, what each sub-layer wrote, the lens, the identities.

One row a depth. What is missing is a dash with its reason below, never a digit.
"""

from __future__ import annotations

from rich.segment import Segment

from tui_gpt.records.analyses.identities import Identities
from tui_gpt.records.analyses.lens import Lens
from tui_gpt.records.analyses.stream import Stream
from tui_gpt.records.block_plan import block_plan
from tui_gpt.records.tokens import Token
from tui_gpt.views.numbers import short
from tui_gpt.views.palette import Palette
from tui_gpt.views.panes.stream.depth_chart import columns_of, share_text, stream_chart
from tui_gpt.views.panes.stream.identity_rows import identity_list, verdict
from tui_gpt.views.rows import Row, blank_rows, fitted, padded
from tui_gpt.views.stage_text import wrapped
from tui_gpt.views.text import sanitize, transliterate

_BESIDE = 140
"""Cells from which the identities stand beside the chart."""


def stream_pane(
    record: Stream,
    lens: Lens | None,
    identities: Identities | None,
    tokens: tuple[Token, ...],
    *,
    position: int,
    chosen: int | None,
    no_lens: str = "",
    no_identities: str = "",
    width: int,
    height: int,
    palette: Palette,
) -> list[Row]:
    """Draw the stream at one position.

    Args:
        record: The stream.
        lens: Of the same position; None while there is none.
        identities: Of the run; None while there are none.
        tokens: Of the run.
        position: Whose norms, shares and lens are shown.
        chosen: The depth that is read, from 0; the chart scrolls to it.
        no_lens: Why there is no lens; empty while it is on its way.
        no_identities: Why there are none; empty while they are on their way.
        width: Cells of each row.
        height: Rows to return.
        palette: For this terminal.
    """
    beside = width >= _BESIDE
    chart_width = min(width * 3 // 5, 120) if beside else width
    list_width = width - chart_width - 2 if beside else width
    says = verdict(identities, no_identities, list_width, palette)
    notes = _notes(record, lens, no_lens, position, chart_width, palette)
    room = height if beside else max(4, height - len(says))
    chart = stream_chart(record, lens, tokens, position, chosen, chart_width, room, palette)
    if len(chart) + 1 + len(notes) <= room:
        chart += [*blank_rows(1, chart_width, palette.plain), *notes]
    if beside:
        listed = says + blank_rows(1, list_width, palette.plain)
        if identities is not None:
            listed += identity_list(identities, list_width, height - len(listed), palette)
        left = fitted(chart, chart_width, height, palette.plain)
        right = fitted(listed, list_width, height, palette.plain)
        line = Segment("| " if palette.profile.ascii else "│ ", palette.faint)
        return [[*a, line, *b] for a, b in zip(left, right, strict=True)]
    rows = chart
    if len(rows) + 1 + len(says) <= height:
        rows = [*rows, *blank_rows(1, width, palette.plain)]
    rows = [*rows, *says]
    if identities is not None:
        rows += identity_list(identities, width, height - len(rows), palette)
    return fitted(rows, width, height, palette.plain)


def stream_reading(record: Stream, position: int, chosen: int, palette: Palette) -> Row:
    """Read one depth in words: the norms here and on average, the cosine, the share.

    Args:
        record: The stream.
        position: Whose norm and share are read.
        chosen: The depth, from 0.
        palette: For this terminal.
    """
    point = record.points[chosen]
    plain, accent = palette.plain, palette.accent
    row: Row = [Segment(f" {point.stage.id}", plain)]
    if point.norm is None:
        return [*row, Segment("  missing", palette.problem)]
    row += [
        Segment("  norm ", plain),
        Segment(_digits(point.norm[position]), accent),
        Segment(transliterate(" · mean ", palette.profile.glyphs), plain),
        Segment(_digits(point.mean_norm), accent),
    ]
    if point.cosine is not None:
        row += [
            Segment(transliterate(" · mean cosine ", palette.profile.glyphs), plain),
            Segment(_digits(point.cosine), accent),
        ]
    written = point.written
    if written is not None and written.share is not None:
        row += [
            Segment(transliterate(" · written ", palette.profile.glyphs), plain),
            Segment(_digits(written.share[position]), accent),
        ]
    return row


def _notes(
    record: Stream, lens: Lens | None, no_lens: str, position: int, width: int, palette: Palette
) -> list[Row]:
    """Say what the columns mean, and first of all what is missing and why."""
    glyphs = palette.profile.glyphs
    columns = columns_of(record, position, width)
    reasons = [point.missing for point in record.points]
    reasons += [point.written.missing for point in record.points if point.written is not None]
    if lens is not None:
        reasons += [point.missing for point in lens.points]
    elif no_lens:
        reasons.append(f"the lens: {no_lens}")
    said = dict.fromkeys(sanitize(reason) for reason in reasons if reason)  # each once, in order
    lines = [
        (line, palette.problem)
        for reason in said
        for line in wrapped(transliterate(f"missing: {reason}", glyphs), width - 2)
    ]
    post = block_plan(record.config).stream_is_normed
    words = (
        f"{'Post-norm: the stream is taken after each LayerNorm. ' if post else ''}"
        f"norm: length of this position's vector (full bar {short(columns.longest)}); "
        "cosine: mean over pairs of positions; written: the sub-layer's share of the stream it "
        f"read (full bar {share_text(columns.largest)}); lens: the best next token if the model "
        "stopped here"
    )
    lines += [(line, palette.faint) for line in wrapped(transliterate(words, glyphs), width - 2)]
    return [padded([Segment(f" {text}", style)], width, palette.plain) for text, style in lines]


def _digits(value: float | None) -> str:
    return "-" if value is None else f"{value:.7g}".replace("nan", "NaN")
