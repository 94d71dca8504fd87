"""What one step of generation was like: the entropy among the others, the margin, the cost.

Below them a loop, once the text has become one, and how far kept keys and values agree with
a whole pass.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from rich.segment import Segment
from rich.style import Style

from tui_gpt.config import GPTConfig
from tui_gpt.records.analyses.generation import (
    CacheCheck,
    GenerationStep,
    Reshaped,
    Walk,
    find_loop,
)
from tui_gpt.views.chart import series_rows
from tui_gpt.views.commands.generate import loop_words
from tui_gpt.views.numbers import counted, short
from tui_gpt.views.palette import Palette
from tui_gpt.views.rows import Row, fitted, padded
from tui_gpt.views.stage_text import wrapped
from tui_gpt.views.text import fit, transliterate

_CHART = 38
"""Cells of the chart at most."""

_FACTS = 36
"""Cells beside the chart that its facts need; below that they stand under it."""


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
    on_its_way: bool = False
    """The step after the shown one is being computed."""


def step_facts(
    side: Side, step: GenerationStep, width: int, height: int, palette: Palette
) -> list[Row]:
    """Draw the entropy of the steps, and beside it, or below, what there is to say.

    Args:
        side: The model's walk.
        step: The one that is looked at.
        width: Cells of each row.
        height: Rows; one more where the facts stand below.
        palette: For this terminal.
    """
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
    facts.append((_cost(step), palette.plain))
    if loop is not None:
        facts.append((loop_words(loop, taken), palette.accent))
    if side.check is not None:
        facts.append((_check(side.check), palette.faint))
    return [(transliterate(words, glyphs), style) for words, style in facts]


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
