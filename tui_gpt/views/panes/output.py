"""Pane 5: the whole vocabulary's answer after one position, best first.

Probabilities are drawn from 0 to 1. A logit that is no number is named and never ranked; what
is missing is said to be so, with its reason, and no digit stands in its place.
"""

from __future__ import annotations

import math
from math import prod

import numpy as np
from rich.cells import cell_len
from rich.segment import Segment

from tui_gpt.records.analyses.output import Output, Ranked, Ranking
from tui_gpt.records.tokens import Token
from tui_gpt.views.commands.trace import bar, places
from tui_gpt.views.numbers import counted, exact, short
from tui_gpt.views.palette import Palette
from tui_gpt.views.rows import Row, fitted, padded, spread, width_of
from tui_gpt.views.sentence import at_position
from tui_gpt.views.stage_text import wrapped
from tui_gpt.views.text import fit, label, sanitize, transliterate

_TOKEN = 16
"""Cells of a token's label; a longer one is cut."""

_NUMBERS = 5 + 2 + 8 + 11 + 9 + 2
"""Cells of a candidate's row without its token and its bar."""

_BAR = 80
"""Cells of the longest bar."""

_CAME = " came next"


def output_pane(
    record: Output,
    tokens: tuple[Token, ...],
    *,
    chosen: int | None,
    width: int,
    height: int,
    palette: Palette,
) -> list[Row]:
    """Draw one position's answer.

    Args:
        record: Of that position.
        tokens: Of the run.
        chosen: The candidate that is read, from 0; the list scrolls to it.
        width: Cells of each row.
        height: Rows to return.
        palette: For this terminal.
    """
    above = [_title(record, tokens, width, palette), *_problems(record, width, palette)]
    below = _summary(record, tokens, width, palette)
    ranking = record.ranking
    rows = above
    if ranking is not None and ranking.best:
        room = max(1, height - len(above) - len(below) - 1)
        rows = [*above, _head(width, palette)]
        rows += _candidates(ranking, record.came, chosen, room, width, palette)
    rows = rows[: max(1, height - len(below))]
    return fitted([*rows, *below], width, height, palette.plain)


def output_reading(record: Output, chosen: int, palette: Palette) -> Row:
    """Read one candidate with every digit it has; nothing where there is none.

    Args:
        record: What is shown.
        chosen: The candidate, from 0.
        palette: For this terminal.
    """
    best = () if record.ranking is None else record.ranking.best
    if not 0 <= chosen < len(best):
        return []
    one = best[chosen]
    said = f" rank {one.rank} {_named(one.token, palette)} logit "
    row = [Segment(said, palette.plain), Segment(_digits(one.logit), palette.accent)]
    if one.prob is not None:
        row += [
            Segment("  probability ", palette.plain),
            Segment(_digits(one.prob), palette.accent),
        ]
    return row


def first_shown(count: int, room: int, chosen: int | None) -> int:
    """Say which line of a list comes first so that the chosen one is in sight, near its middle."""
    return max(0, min((chosen or 0) - room // 2, count - room))


def _title(record: Output, tokens: tuple[Token, ...], width: int, palette: Palette) -> Row:
    glyphs = palette.profile.glyphs
    where = at_position(tokens, record.position, palette)
    last = record.position + 1 == record.n_positions
    place = ", the last position" if last else f", of {counted(record.n_positions, 'position')}"
    parts: list[Row] = [
        [Segment(f" The next token after {where}", palette.strong)],
        [Segment(place, palette.plain)],
    ]
    right: Row = [
        Segment(transliterate(f" vocabulary {record.vocab_size:,} ", glyphs), palette.faint)
    ]
    left = _as_fits(parts, width)
    if width_of(left) + width_of(right) > width:
        right = []
    return spread(left, right, width, palette.plain)


def _problems(record: Output, width: int, palette: Palette) -> list[Row]:
    """Say what is missing or broken, a sentence each."""
    glyphs = palette.profile.glyphs
    said = [f"missing: {sanitize(reason)}" for reason in record.missing]
    ranking = record.ranking
    if ranking is not None and ranking.n_flagged:
        said.append(_flagged(ranking, record.vocab_size))
    broken = record.not_finite
    if broken is not None:
        stage = broken.stage
        index = ", ".join(str(i) for i in broken.index)
        said.append(
            f"the first stage with a number that is not finite is {stage.id}: "
            f"{broken.cells:,} of {counted(prod(stage.shape), 'cell')}, the first at ({index})"
        )
    lines = (line for text in said for line in wrapped(transliterate(text, glyphs), width - 2))
    return [[Segment(f" {line}", palette.problem)] for line in lines]


def _flagged(ranking: Ranking, vocab_size: int) -> str:
    """Name the logits that are no numbers."""
    if not ranking.best:
        return (
            f"no prediction: all {vocab_size:,} logits are NaN or infinite, so no token is likelier"
        )
    ids = ", ".join(str(token_id) for token_id in ranking.flagged)
    more = ", …" if ranking.n_flagged > len(ranking.flagged) else ""
    verb = "logit is" if ranking.n_flagged == 1 else "logits are"
    none = "; softmax over such a row gives no probabilities" if ranking.entropy is None else ""
    return f"{ranking.n_flagged:,} {verb} NaN or infinite and not ranked: id {ids}{more}{none}"


def _head(width: int, palette: Palette) -> Row:
    cells = _token_cells(width)
    text = f"{'rank':>5}  {'token':<{cells}}{'id':>8}{'logit':>11}{'prob':>9}  "
    if width >= len(text) + 30:
        text += "bar: probability from 0 to 1"
    return padded([Segment(text, palette.faint)], width, palette.plain)


def _candidates(
    ranking: Ranking,
    came: Ranked | None,
    chosen: int | None,
    room: int,
    width: int,
    palette: Palette,
) -> list[Row]:
    """Draw the candidates that fit around the chosen one."""
    cells = max(0, min(_BAR, width - _NUMBERS - _token_cells(width) - len(_CAME) - 1))
    first = first_shown(len(ranking.best), room, chosen)
    return [
        _candidate(one, came, first + i == chosen, cells, width, palette)
        for i, one in enumerate(ranking.best[first : first + room])
    ]


def _candidate(
    one: Ranked, came: Ranked | None, is_chosen: bool, cells: int, width: int, palette: Palette
) -> Row:
    glyphs = palette.profile.glyphs
    name = fit(label(one.token, glyphs), _token_cells(width), glyphs)
    prob = one.prob if one.prob is not None and math.isfinite(one.prob) else 0.0
    row: Row = [
        Segment(f"{one.rank:>5}  ", palette.faint),
        Segment(name, palette.chosen if is_chosen else palette.strong),
        Segment(f"{one.token.id:>8}", palette.faint),
        Segment(f"{places(one.logit):>11}", palette.plain),
        Segment(f"{prob_text(one.prob):>9}  ", palette.accent),
        Segment(bar(prob, cells, glyphs).ljust(cells), palette.stream),
    ]
    if came is not None and came.token.id == one.token.id and width_of(row) + len(_CAME) <= width:
        row.append(Segment(_CAME, palette.accent))
    return padded(row, width, palette.plain)


def _summary(record: Output, tokens: tuple[Token, ...], width: int, palette: Palette) -> list[Row]:
    """Say how sure the model is, and what really came."""
    ranking = record.ranking
    glyphs = palette.profile.glyphs
    lines: list[Row] = []
    if ranking is not None:
        ceiling = f" nats of ln {record.vocab_size:,} = {record.ceiling:.2f}"
        entropy: Row = [Segment(" entropy ", palette.plain)]
        if ranking.entropy is None:
            entropy.append(Segment("not known: no probabilities that are numbers", palette.problem))
        else:
            entropy += [
                Segment(f"{ranking.entropy:.2f}", palette.accent),
                Segment(ceiling, palette.plain),
            ]
        lines.append(entropy)
    if ranking is not None and ranking.margin is not None:
        runner_up = _named(ranking.best[1].token, palette)
        lines.append(
            [
                Segment(" margin ", palette.plain),
                Segment(short(ranking.margin), palette.accent),
                Segment(f" to {runner_up}, the runner-up", palette.plain),
            ]
        )
        joined = [*lines[0], Segment(transliterate("  ·", glyphs), palette.faint), *lines[1]]
        if width_of(joined) <= width:
            lines = [joined]
    lines.append(_as_fits(_came(record, tokens, palette), width))
    return [padded(line, width, palette.plain) for line in lines]


def _token_cells(width: int) -> int:
    """Leave the numbers whole where there is little room."""
    return max(5, min(_TOKEN, width - _NUMBERS))


def _came(record: Output, tokens: tuple[Token, ...], palette: Palette) -> list[Row]:
    """Say which token really came next, and how likely it had been, in parts."""
    if record.position + 1 == record.n_positions:
        return [[Segment(" nothing came next: the prompt ends here", palette.faint)]]
    where = at_position(tokens, record.position + 1, palette)
    parts: list[Row] = [[Segment(f" what really came: {where}", palette.strong)]]
    came = record.came
    if came is None:
        return [*parts, [Segment(", its logit is missing", palette.problem)]]
    if came.rank is None:
        return [*parts, [Segment(", whose logit is NaN or infinite", palette.problem)]]
    parts.append([Segment(", rank ", palette.plain), Segment(f"{came.rank:,}", palette.accent)])
    if came.prob is None:
        return [*parts, [Segment(", its probability is missing", palette.problem)]]
    prob = prob_text(came.prob)
    return [*parts, [Segment(", probability ", palette.plain), Segment(prob, palette.accent)]]


def _as_fits(parts: list[Row], width: int) -> Row:
    """Put parts of a sentence on a line, leaving out what does not fit; the first one stays."""
    row = list(parts[0])
    for part in parts[1:]:
        if width_of(row) + width_of(part) > width:
            break
        row += part
    return row


def _named(token: Token, palette: Palette) -> str:
    glyphs = palette.profile.glyphs
    name = label(token, glyphs)
    if cell_len(name) > _TOKEN:
        name = fit(name, _TOKEN, glyphs)
    return f'"{name}"' if glyphs == "ascii" else f"“{name}”"


def prob_text(prob: float | None) -> str:
    """Write a probability to four places; one that is too small for them is not written as 0."""
    if prob is None or math.isnan(prob):
        return "-" if prob is None else "NaN"
    return f"{prob:.0e}" if 0 < prob < 0.00005 else places(prob)


def _digits(value: float) -> str:
    """Give every digit of a float32."""
    return exact(np.float32(value)).replace("nan", "NaN")
