"""The candidates of one step as bars, and what picked which of them.

Probabilities are drawn from 0 to 1, greedy ones first and reshaped ones beside them. Three
things can pick a row, each with a mark of its own: the highest logit, the highest softmax
probability, and what was really taken where that is neither (drawn by chance, or a person's
choice).
"""

from __future__ import annotations

import math

from rich.segment import Segment

from tui_gpt.records.analyses.generation import GenerationStep, Reshaped
from tui_gpt.records.analyses.output import Ranked
from tui_gpt.views.commands.trace import places
from tui_gpt.views.palette import Palette
from tui_gpt.views.panes.output import prob_text
from tui_gpt.views.rows import Row, padded
from tui_gpt.views.sentence import gauge
from tui_gpt.views.text import fit, label, transliterate

_NARROW = 60
"""Cells below which ids and logits are left out."""

_NUMBER = 9


def head_row(reshaped: Reshaped | None, width: int, palette: Palette) -> Row:
    """Name the columns."""
    glyphs = palette.profile.glyphs
    token, bar_cells = _columns(reshaped, width)
    words = f"  {'token':<{token}}"
    if width >= _NARROW:
        words += f"{'id':>7}{'logit':>{_NUMBER}}"
    words += f"{'prob':>{_NUMBER}} " + fit("from 0 to 1" if bar_cells > 10 else "", bar_cells)
    if reshaped is not None:
        words += f"{'what-if':>{_NUMBER}} " + fit("reshaped" if bar_cells > 7 else "", bar_cells)
    if width >= _NARROW:
        words += " highest"
    return padded([Segment(transliterate(words, glyphs), palette.faint)], width, palette.plain)


def candidate_rows(
    step: GenerationStep,
    reshaped: Reshaped | None,
    *,
    chosen: int | None,
    has_keys: bool,
    width: int,
    height: int,
    palette: Palette,
) -> list[Row]:
    """Draw the candidates around the chosen one, best first.

    Args:
        step: What was decided.
        reshaped: The same probabilities under temperature, top-k and top-p.
        chosen: The candidate that the keys are at; None is at the token that was taken.
        has_keys: The arrow keys are here.
        width: Cells of each row.
        height: Rows at most.
        palette: For this terminal.
    """
    listed = _listed(step, height)
    at = place_of(step) if chosen is None else chosen
    first = max(0, min(at - height // 2, len(listed) - height))
    return [
        _row(step, reshaped, i, one, i == at and has_keys, width, palette)
        for i, one in list(enumerate(listed))[first : first + height]
    ]


def place_of(step: GenerationStep) -> int:
    """Find the row of the token that was taken; one that is not listed comes after the others."""
    ids = [one.token.id for one in step.ranking.best]
    return ids.index(step.token.id) if step.token.id in ids else len(ids)


def listed_candidates(step: GenerationStep) -> tuple[Ranked, ...]:
    """List the best candidates, and the token that was taken where it is none of them."""
    best = step.ranking.best
    return best if place_of(step) < len(best) else (*best, step.chosen)


def _listed(step: GenerationStep, height: int) -> tuple[Ranked, ...]:
    return listed_candidates(step) if height > 0 else ()


def _row(
    step: GenerationStep,
    reshaped: Reshaped | None,
    i: int,
    one: Ranked,
    has_cursor: bool,
    width: int,
    palette: Palette,
) -> Row:
    glyphs = palette.profile.glyphs
    token, bar_cells = _columns(reshaped, width)
    taken = one.token.id == step.token.id
    pointer = (">" if palette.profile.ascii else "▸") if taken else " "
    name = fit(label(one.token, glyphs), token, glyphs)
    style = palette.chosen if has_cursor else palette.strong if taken else palette.plain
    row: Row = [Segment(f"{pointer} ", palette.accent), Segment(name, style)]
    if width >= _NARROW:
        row += [
            Segment(f"{one.token.id:>7}", palette.faint),
            Segment(f"{places(one.logit):>{_NUMBER}}", palette.plain),
        ]
    row += _share(one.prob, bar_cells, palette, faint=False)
    if reshaped is not None:
        row += _share(_reshaped_prob(reshaped, i, one), bar_cells, palette, faint=True)
    row.append(Segment(_marks(step, one, width, palette), palette.accent))
    return padded(row, width, palette.plain)


def _share(prob: float | None, cells: int, palette: Palette, *, faint: bool) -> Row:
    known = prob is not None and math.isfinite(prob)
    bar = gauge(prob if known and prob is not None else 0.0, cells, palette)
    return [
        Segment(f"{prob_text(prob):>{_NUMBER}} ", palette.plain if faint else palette.accent),
        Segment(bar, palette.branch if faint else palette.stream),
    ]


def _reshaped_prob(reshaped: Reshaped, i: int, one: Ranked) -> float | None:
    if one.token.id == reshaped.drawn.token.id:
        return reshaped.drawn_prob
    return reshaped.probs[i] if i < len(reshaped.probs) else None


def _marks(step: GenerationStep, one: Ranked, width: int, palette: Palette) -> str:
    """Name what picks this row; in a narrow column by letters."""
    found = []
    if one.token.id == step.argmax_logits:
        found.append("logit")
    if one.token.id == step.argmax_probs:
        found.append("softmax")
    if one.token.id == step.token.id and step.chosen_by != "greedy":
        found.append("drawn" if step.chosen_by == "sampled" else "yours")
    if width < _NARROW:
        return " " + "".join({"logit": "L", "softmax": "S"}.get(word, "*") for word in found)
    arrow = "<" if palette.profile.ascii else "◂"
    return "".join(f" {arrow}{word}" for word in found)


def _columns(reshaped: Reshaped | None, width: int) -> tuple[int, int]:
    """Share the width out: cells of a token, cells of each bar."""
    if width < _NARROW:
        token, marks, fixed = 9, 4, 2 + 9 + _NUMBER + 1
    else:
        token, marks, fixed = 12, 23, 2 + 12 + 7 + 2 * _NUMBER + 1
    room = width - fixed - marks
    if reshaped is not None:
        room = (room - _NUMBER - 1) // 2
    return token, max(0, min(room, 60))
