"""Pane 7: a text that grows by one token at a time, and what decided the new one.

From the top: which step and which branch, the text with what is still read of it, the
candidates as bars, a chart of the entropy with what this step cost, and the options.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.segment import Segment

from tui_gpt.records.analyses.generation import ChosenBy, Walk
from tui_gpt.records.tokens import Token
from tui_gpt.views.numbers import exact
from tui_gpt.views.palette import Palette
from tui_gpt.views.panes.generate.candidate_rows import candidate_rows, head_row, listed_candidates
from tui_gpt.views.panes.generate.growing_text import GrowingText, text_rows
from tui_gpt.views.panes.generate.step_facts import Side, step_facts
from tui_gpt.views.rows import Row, fitted, padded, spread, width_of
from tui_gpt.views.stage_text import wrapped
from tui_gpt.views.text import fit, label, named, sanitize, transliterate
from tui_gpt.views.window import finished

_NARROW = 60
"""Cells below which words are left out."""

_LOW = 12
"""Rows below which the text has one line and the facts none."""

_CHOSEN_BY: Mapping[ChosenBy, tuple[str, str]] = {
    "greedy": ("greedy", "greedy"),
    "sampled": ("drawn, not greedy", "drawn"),
    "person": ("your choice, not the model's", "yours"),
}
"""In full, and where there is little room."""


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
    title = Segment(f" {sanitize(sheet.beside, palette.profile.glyphs)}", palette.strong)
    rows: list[Row] = [[title], *_waiting(sheet.no_other, width, palette)]
    return fitted(rows, width, height, palette.plain)


def _side(
    side: Side, sheet: Sheet, width: int, height: int, palette: Palette, *, main: bool
) -> list[Row]:
    """Draw one model's walk."""
    step = side.walk.shown
    rows = [_title(side, sheet, width, palette, main=main)]
    rows.append(_window(side, width, palette))
    low = height < _LOW
    lines = 1 if low else max(2, min(8, (height - 8) // 4)) + (width < _NARROW)
    text = [[Segment(" ", palette.plain), *row] for row in _text(side, width - 1, lines, palette)]
    rows += fitted(text, width, lines, palette.plain)
    if step is None:
        rows += _waiting(side.reason, width, palette)
        return fitted(rows, width, height, palette.plain)
    tall = max(4, min(9, height // 3))
    below = [] if low else step_facts(side, step, width, tall, palette)
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
    how = "" if step is None else _CHOSEN_BY[step.chosen_by][width < _NARROW]
    left: Row = []
    if sheet.beside:
        name = transliterate(f" {sanitize(side.model, glyphs)} ·", glyphs)
        left.append(Segment(name, palette.plain))
    left.append(Segment(f" Step {walk.at}", palette.strong))
    if step is not None:
        name = _short_name(step.token, palette)
        left += [
            Segment(": ", palette.plain),
            Segment(name, palette.accent),
            Segment(f" {how}", palette.plain if step.chosen_by == "greedy" else palette.problem),
        ]
    right = _branch_words(walk) if main else ""
    if sheet.running and main:
        right = "running "
    elif side.on_its_way:
        right = f"step {walk.at + 1} is on its way… "
    return spread(
        left, [Segment(transliterate(right, glyphs), palette.accent)], width, palette.plain
    )


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
            Segment(transliterate(words, glyphs), palette.faint),
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
        return [
            padded(
                [Segment(f" {transliterate(words, glyphs)}", palette.faint)], width, palette.plain
            )
        ]
    lines = wrapped(transliterate(sanitize(f"missing: {reason}"), glyphs), width - 2)
    return [[Segment(f" {line}", palette.problem)] for line in lines]


def _options(sheet: Sheet, width: int, palette: Palette) -> list[Row]:
    """Write the options on as many lines as they need."""
    glyphs = palette.profile.glyphs
    rows: list[Row] = [[]]
    for i, (name, value) in enumerate(sheet.options):
        is_chosen = i == sheet.option
        words = transliterate(f" {name} ", glyphs)
        shown = transliterate(sanitize(f"{value} "), glyphs)
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
