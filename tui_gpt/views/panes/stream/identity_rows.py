"""The standing identities in words: a verdict, and a list with errors as far as there is room."""

from __future__ import annotations

import math

from rich.segment import Segment

from tui_gpt.records.analyses.identities import Identities, Identity
from tui_gpt.records.stages import Stage
from tui_gpt.views.numbers import counted
from tui_gpt.views.palette import Palette
from tui_gpt.views.rows import Row, padded
from tui_gpt.views.stage_text import wrapped
from tui_gpt.views.text import fit, formula, sanitize, transliterate

_PLACE = 21
"""Cells of a stage's name in the list: `attn_scores, block 12`."""

_ERRORS = 18
"""Cells of an error beside its tolerance."""

_MARKS = {True: "ok", False: "NO", None: " ?"}


def verdict(record: Identities | None, why_not: str, width: int, palette: Palette) -> list[Row]:
    """Say in a sentence whether the recorded stages agree.

    Args:
        record: The identities, or None while there are none.
        why_not: Why there are none; empty while they are on their way.
        width: Cells of each row.
        palette: For this terminal.
    """
    style = palette.problem
    if record is None:
        style = palette.problem if why_not else palette.faint
        words = f"identities missing: {sanitize(why_not)}" if why_not else "checking the identities"
    elif record.violated:
        words = _violation(record)
    elif record.unchecked:
        words = _unchecked(record)
    else:
        style = palette.plain
        words = f"all {len(record.all)} identities hold{_largest(record)}"
    lines = wrapped(transliterate(words, palette.profile.glyphs), width - 1)
    return [padded([Segment(f" {line}", style)], width, palette.plain) for line in lines]


def identity_list(record: Identities, width: int, height: int, palette: Palette) -> list[Row]:
    """List identities: all in stage order, or where they do not fit the most telling ones.

    Returns:
        At most `height` rows of `width` cells, the first of them a heading; none where there is
        no room for a heading and one identity with its errors.
    """
    if height < 2:
        return []
    shown, which = list(record.all), "identity"
    if len(shown) > height - 1:
        shown = sorted(shown, key=_weight)[: height - 1]
        which = "identity (largest errors first)"
    words = width - 4 - _PLACE - 2 - _ERRORS
    if words < 0:
        return []
    which = fit(which, words, palette.profile.glyphs)
    head = f"    {fit('stage', _PLACE)}  {which}{'error / allowed':>{_ERRORS}}"
    rows: list[Row] = [padded([Segment(head, palette.faint)], width, palette.plain)]
    for identity in shown:
        rows.append(_line(identity, words, width, palette))
    return rows


def _line(identity: Identity, words: int, width: int, palette: Palette) -> Row:
    glyphs = palette.profile.glyphs
    style = palette.plain if identity.holds else palette.problem
    stage = identity.stage
    place = stage.name if stage.layer is None else f"{stage.name}, block {stage.layer + 1}"
    row: Row = [
        Segment(
            f" {_MARKS[identity.holds]} ", style if identity.holds is not True else palette.accent
        ),
        Segment(fit(place, _PLACE, glyphs) + "  ", style),
    ]
    if identity.error is None:
        reason = transliterate(f"missing: {sanitize(identity.unchecked)}", glyphs)
        return padded([*row, Segment(fit(reason, words + _ERRORS, glyphs), style)], width, style)
    claim = formula(identity.claim.replace("equals its operation: ", "= "), glyphs)
    numbers = f"{_error(identity.error)} / {_error(identity.tolerance)}"
    if identity.error == 0:
        numbers = "exact"
    row += [
        Segment(fit(claim, words, glyphs), style),
        Segment(f"{numbers:>{_ERRORS}}", style),
    ]
    return padded(row, width, palette.plain)


def _violation(record: Identities) -> str:
    """Name the first identity that does not hold, with its numbers."""
    first, n_others = record.violated[0], len(record.violated) - 1
    index = ", ".join(str(i) for i in first.index or ())
    others = {0: "no other is", 1: "1 other is"}.get(n_others, f"{n_others} others are")
    return (
        f"violated: “{_place(first.stage)} {first.claim}”, error {_error(first.error)} at "
        f"({index}), allowed {_error(first.tolerance)}: {first.reason}; {others} violated"
    )


def _unchecked(record: Identities) -> str:
    holding = len(record.all) - len(record.unchecked)
    return (
        f"{holding} of {counted(len(record.all), 'identity', 'identities')} hold"
        f"{_largest(record)}; {len(record.unchecked)} cannot be checked, "
        f"missing: {sanitize(record.unchecked[0].unchecked)}"
    )


def _largest(record: Identities) -> str:
    worst = record.worst
    if worst is None:
        return ""
    if not worst.error:
        return " exactly"
    return f"; largest error {_error(worst.error)} ({_place(worst.stage)})"


def _place(stage: Stage) -> str:
    return stage.name if stage.layer is None else f"{stage.name} of block {stage.layer + 1}"


def _error(error: float | None) -> str:
    if error is None or error == 0:
        return "0" if error == 0 else "-"
    if not math.isfinite(error):
        return "NaN" if math.isnan(error) else "infinite"
    return f"{error:.1e}"


def _weight(identity: Identity) -> tuple[int, float]:
    """Sort what does not hold first, then what could not be checked, then by falling error."""
    rank = {False: 0, None: 1, True: 2}[identity.holds]
    return rank, -(identity.error or 0.0) if rank == 2 else 0.0
