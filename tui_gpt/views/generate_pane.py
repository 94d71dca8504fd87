"""Pane 7: a text that grows by one token at a time, and what decided the new one.

From the top: which step and which branch, the text with what is still read of it, the
candidates as bars, a chart of the entropy with what this step cost, and the options.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style

from tui_gpt.config import GPTConfig
from tui_gpt.records.generation import (
    CacheCheck,
    ChosenBy,
    GenerationStep,
    Reshaped,
    Walk,
    find_loop,
)
from tui_gpt.records.tokens import Token
from tui_gpt.views.candidate_rows import candidate_rows, head_row, listed_candidates
from tui_gpt.views.chart import series_rows
from tui_gpt.views.generation_table import loop_words
from tui_gpt.views.growing_text import GrowingText, text_rows
from tui_gpt.views.numbers import counted, exact, short
from tui_gpt.views.palette import Palette
from tui_gpt.views.rows import Row, fitted, padded, spread, width_of
from tui_gpt.views.stage_text import wrapped
from tui_gpt.views.text import fit, harmless, label, named, spoken
from tui_gpt.views.window import finished

_CHART = 38
"""Cells of the chart at most."""

_FACTS = 36
"""Cells beside the chart that its facts need; below that they stand under it."""

_NARROW = 60
"""Cells below which words are left out."""

_CHOSEN_BY: Mapping[ChosenBy, tuple[str, str]] = {
    "greedy": ("greedy", "greedy"),
    "sampled": ("drawn, not greedy", "drawn"),
    "person": ("your choice, not the model's", "yours"),
}
"""In full, and where there is little room."""


@dataclass(frozen=True, slots=True)
class Side:
    """One model's walk."""

    model: str
    config: GPTConfig
    walk: Walk
    reshaped: Reshaped | None = None
    """The shown step's probabilities under the chosen options."""
    check: CacheCheck | None = None
    """The shown step computed with and without kept keys and values."""
    reason: str = ""
    """Why there is no step; empty while it is on its way."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """All that the pane shows."""

    main: Side
    other: Side | None
    """A second model on the same prompt."""
    beside: str
    """Its name; empty where there is none."""
    no_other: str
    """Why it has nothing to show; empty while that is on its way."""
    chosen: int | None
    """The candidate that the keys are at; None is at the token that was taken."""
    options: Sequence[tuple[str, str]]
    """(name, value) each."""
    option: int | None
    """The one that has the arrow keys; None where the steps have them."""
    running: bool


def generate_pane(sheet: Sheet, *, width: int, height: int, palette: Palette) -> list[Row]:
    """Draw one walk, or two side by side.

    Args:
        sheet: What to show.
        width: Cells of each row.
        height: Rows to return.
        palette: For this terminal.
    """
    options = _options(sheet, width, palette)
    room = height - len(options)
    if not sheet.beside:
        body = _side(sheet.main, sheet, width, room, palette, main=True)
    else:
        left = (width - 1) // 2
        right = width - left - 1
        one = _side(sheet.main, sheet, left, room, palette, main=True)
        two = _second(sheet, right, room, palette)
        rule = Segment("|" if palette.profile.ascii else "│", palette.faint)
        body = [[*a, rule, *b] for a, b in zip(one, two, strict=True)]
    return finished([*body, *options], width, height, palette)


def generate_reading(sheet: Sheet, palette: Palette) -> Row:
    """Read the chosen candidate with every digit it has."""
    step = sheet.main.walk.shown
    if step is None:
        return []
    listed = listed_candidates(step)
    ids = [one.token.id for one in listed]
    at = ids.index(step.token.id) if sheet.chosen is None else min(sheet.chosen, len(listed) - 1)
    one = listed[at]
    row = [
        Segment(f" rank {one.rank} {_short_name(one.token, palette)} logit ", palette.plain),
        Segment(_digits(one.logit), palette.accent),
    ]
    if one.prob is not None:
        row += [
            Segment("  probability ", palette.plain),
            Segment(_digits(one.prob), palette.accent),
        ]
    return row


def _second(sheet: Sheet, width: int, height: int, palette: Palette) -> list[Row]:
    """Draw the other model's walk, or why there is none."""
    if sheet.other is not None:
        return _side(sheet.other, sheet, width, height, palette, main=False)
    title = Segment(f" {harmless(sheet.beside, palette.profile.glyphs)}", palette.strong)
    rows: list[Row] = [[title], *_waiting(sheet.no_other, width, palette)]
    return fitted(rows, width, height, palette.plain)


def _side(
    side: Side, sheet: Sheet, width: int, height: int, palette: Palette, *, main: bool
) -> list[Row]:
    """Draw one model's walk."""
    step = side.walk.shown
    rows = [_title(side, sheet, width, palette, main=main)]
    rows.append(_window(side, width, palette))
    lines = max(2, min(8, (height - 8) // 4)) + (width < _NARROW)
    text = [[Segment(" ", palette.plain), *row] for row in _text(side, width - 1, lines, palette)]
    rows += fitted(text, width, lines, palette.plain)
    if step is None:
        rows += _waiting(side.reason, width, palette)
        return fitted(rows, width, height, palette.plain)
    below = _below(side, step, width, max(4, min(9, height // 3)), palette)
    room = max(1, height - len(rows) - len(below) - 1)
    rows.append(head_row(side.reshaped, width, palette))
    candidates = candidate_rows(
        step,
        side.reshaped,
        chosen=sheet.chosen if main else None,
        has_keys=main and sheet.option is None,
        width=width,
        height=room,
        palette=palette,
    )
    rows += fitted(candidates, width, room, palette.plain)
    return fitted([*rows, *below], width, height, palette.plain)


def _title(side: Side, sheet: Sheet, width: int, palette: Palette, *, main: bool) -> Row:
    glyphs = palette.profile.glyphs
    walk, step = side.walk, side.walk.shown
    how = (
        ""
        if step is None
        else {"greedy": "greedy", "sampled": "drawn, not greedy"}.get(
            step.chosen_by, "your choice, not the model's"
        )
    )
    left: Row = []
    if sheet.beside:
        name = spoken(f" {harmless(side.model, glyphs)} ·", glyphs)
        left.append(Segment(name, palette.plain))
    left.append(Segment(f" Step {walk.at}", palette.strong))
    if step is not None:
        name = _short_name(step.token, palette)
        left += [
            Segment(": ", palette.plain),
            Segment(name, palette.accent),
            Segment(f" {how}", palette.plain if step.chosen_by == "greedy" else palette.problem),
        ]
    right = _branch_words(walk) if main and not sheet.running else "running " if main else ""
    return spread(left, [Segment(spoken(right, glyphs), palette.accent)], width, palette.plain)


def _branch_words(walk: Walk) -> str:
    if len(walk.branches) == 1:
        return ""
    if walk.current == 0:
        return f"trunk, 1 of {len(walk.branches)} ways "
    return f"branch {walk.current + 1} of {len(walk.branches)}, from step {walk.branch.split} "


def _window(side: Side, width: int, palette: Palette) -> Row:
    """Say which positions are read, and how many have fallen out."""
    glyphs = palette.profile.glyphs
    n_read, size = len(side.walk.read), side.config.block_size
    first = max(0, n_read - size)
    words = f" reads {first}…{n_read - 1}: {min(n_read, size)} of {size:,}"
    if width >= _NARROW:
        words += " positions"
    fallen = f", {first:,} fell out" + ("" if width < _NARROW else " of the window")
    if not first:
        fallen = ""
    return padded(
        [
            Segment(spoken(words, glyphs), palette.faint),
            Segment(fallen, palette.accent),
        ],
        width,
        palette.plain,
    )


def _text(side: Side, width: int, lines: int, palette: Palette) -> list[Row]:
    walk, step = side.walk, side.walk.shown
    read = walk.read
    tokens = read if step is None else (*read, step.token)
    n_prompt = len(walk.prompt)
    text = GrowingText(
        tokens,
        n_prompt,
        max(0, len(read) - side.config.block_size),
        step is not None,
        frozenset(
            n_prompt + taken.step
            for taken in walk.branch.steps[: walk.at]
            if taken.chosen_by == "person"
        ),
    )
    return text_rows(text, width, lines, palette)


def _waiting(reason: str, width: int, palette: Palette) -> list[Row]:
    glyphs = palette.profile.glyphs
    if not reason:
        words = "computing, once torch and the weights are there…"
        return [padded([Segment(f" {spoken(words, glyphs)}", palette.faint)], width, palette.plain)]
    lines = wrapped(spoken(harmless(f"missing: {reason}"), glyphs), width - 2)
    return [[Segment(f" {line}", palette.problem)] for line in lines]


def _below(
    side: Side, step: GenerationStep, width: int, height: int, palette: Palette
) -> list[Row]:
    """Draw the entropy of the steps, and beside it, or below, what there is to say."""
    steps = side.walk.branch.steps
    ceiling = math.log(side.config.vocab_size)
    facts = _facts(side, step, palette)
    beside = width >= _CHART + _FACTS
    cells = min(_CHART + max(0, width - 120) // 2, width - 2) if beside else width - 2
    if not beside:
        height = max(3, height - 1)
    cells = max(8, cells)
    first = max(0, min(side.walk.at - cells // 2, len(steps) - cells))
    chart = series_rows(
        [one.ranking.entropy for one in steps[first : first + cells]],
        first=first,
        ceiling=ceiling,
        at=side.walk.at,
        width=cells,
        height=height - 1,
        palette=palette,
    )
    name = f" entropy, 0 to ln {side.config.vocab_size:,} = {ceiling:.2f}, by step"
    title = [Segment(fit(name, cells + 1), palette.faint)]
    left = [title, *([Segment(" ", palette.plain), *row] for row in chart)]
    if not beside:
        room = width - 2
        said = [[Segment(f" {fit(line, room).rstrip()}", style)] for line, style in facts[:2]]
        return fitted([*left, *said], width, height + 2, palette.plain)
    room = width - cells - 4
    right: list[Row] = []
    for line, style in facts:
        right += [[Segment(f"  {part}", style)] for part in wrapped(line, room)]
    left = [padded(row, cells + 2, palette.plain) for row in left]
    pairs = zip(left, fitted(right, width - cells - 2, height, palette.plain), strict=True)
    return [[*a, *b] for a, b in pairs]


def _facts(side: Side, step: GenerationStep, palette: Palette) -> list[tuple[str, Style]]:
    """Say what decided the step and what it cost, the most important first."""
    glyphs = palette.profile.glyphs
    facts: list[tuple[str, Style]] = []
    ranking = step.ranking
    if ranking.n_flagged:
        said = f"{counted(ranking.n_flagged, 'logit')} NaN or infinite, left out: id "
        facts.append((said + ", ".join(map(str, ranking.flagged)), palette.problem))
    entropy = "not known" if ranking.entropy is None else f"{ranking.entropy:.4f} nats"
    margin = "" if ranking.margin is None else f", margin {short(ranking.margin)}"
    if ranking.margin == 0:
        margin += ", a tie: the lowest id wins"
    facts.append((f"entropy {entropy}{margin}", palette.plain))
    walk = side.walk
    taken = walk.branch.steps[: walk.at + 1]
    ids = [token.id for token in (*walk.read, step.token)]
    loop = find_loop(ids, side.config.block_size)
    if loop is not None:
        facts.append((loop_words(loop, taken), palette.accent))
    facts.append((_cost(step), palette.plain))
    if side.check is not None:
        facts.append((_check(side.check), palette.faint))
    return [(spoken(words, glyphs), style) for words, style in facts]


def _cost(step: GenerationStep) -> str:
    kept = f", {step.kept:,} kept" if step.cached else ", none kept"
    return f"cost {_time(step.seconds)}: {counted(step.computed, 'position')}{kept}"


def _check(check: CacheCheck) -> str:
    same = "same token" if check.same_choice else "ANOTHER TOKEN"
    apart = "equal" if check.difference == 0 else f"within {check.difference:.0e}"
    if check.cached_positions == check.full_positions:
        return f"without cache {_time(check.full_seconds)}: the same full pass"
    return (
        f"fastest of {check.runs}: {_time(check.cached_seconds)} with cache, "
        f"{_time(check.full_seconds)} without ({counted(check.full_positions, 'position')}); "
        f"logits {apart}, {same}"
    )


def _time(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{1000 * seconds:.1f} ms"


def _options(sheet: Sheet, width: int, palette: Palette) -> list[Row]:
    """Write the options on as many lines as they need."""
    glyphs = palette.profile.glyphs
    rows: list[Row] = [[]]
    for i, (name, value) in enumerate(sheet.options):
        is_chosen = i == sheet.option
        words = spoken(f" {name} ", glyphs)
        shown = spoken(harmless(f"{value} "), glyphs)
        if rows[-1] and width_of(rows[-1]) + cell_len(words) + cell_len(shown) > width:
            rows.append([])
        rows[-1] += [
            Segment(words, palette.chosen if is_chosen else palette.faint),
            Segment(shown, palette.chosen if is_chosen else palette.strong),
        ]
    return [padded(row, width, palette.plain) for row in rows]


def _short_name(token: Token, palette: Palette) -> str:
    glyphs = palette.profile.glyphs
    name = label(token, glyphs)
    return named(token, glyphs) if cell_len(name) <= 16 else fit(name, 16, glyphs)


def _digits(value: float) -> str:
    """Give every digit of a float32."""
    import numpy as np

    return exact(np.float32(value)).replace("nan", "NaN")
