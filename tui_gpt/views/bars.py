"""The lines around a pane: title, tabs with the status, footer."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.segment import Segment

from tui_gpt.records.trace import Run
from tui_gpt.views.numbers import counted
from tui_gpt.views.palette import Palette
from tui_gpt.views.rows import Row, padded, spread, width_of
from tui_gpt.views.text import fit, prompt_words, sanitize, transliterate


def title_bar(run: Run, width: int, palette: Palette) -> Row:
    """Name the program, the model with its size, and the prompt as far as it fits.

    Returns:
        A row of exactly `width` cells.
    """
    glyphs = palette.profile.glyphs
    model = run.model
    name = fit_name(sanitize(model.name, glyphs), 28, palette)
    facts = transliterate(
        f" · {counted(model.config.n_layer, 'block')} · {counted(model.n_parameters, 'parameter')}",
        glyphs,
    )
    left: Row = [
        Segment(" tui-gpt ", palette.bar_key),
        Segment(f" {name}", palette.bar_key),
        Segment(facts, palette.bar),
    ]
    used = sum(cell_len(segment.text) for segment in left)
    prompt = prompt_words(run, glyphs)
    room = width - used - 2
    if room < min(cell_len(prompt), 12):
        left, room = left[1:2], width - cell_len(left[1].text) - 2
    right = [Segment(f"{_shortened(prompt, max(room, 0), palette)} ", palette.bar)]
    return spread(left, right, width, palette.bar)


def tab_bar(panes: Sequence[tuple[str, str]], chosen: str, width: int, palette: Palette) -> Row:
    """List the panes with their keys; where there is no room, the others have their key alone.

    Args:
        panes: (key, title) of each pane.
        chosen: The key of the one that is shown.
        width: Cells of the row.
        palette: For this terminal.
    """
    whole = sum(len(key) + cell_len(title) + 3 for key, title in panes) <= width
    row: Row = [
        Segment(f" {key} {title} ", palette.chosen)
        if key == chosen
        else Segment(f" {key} {title} " if whole else f" {key} ", palette.plain)
        for key, title in panes
    ]
    return padded(row, width, palette.plain)


def reading_bar(reading: Row, status: str, width: int, palette: Palette) -> Row:
    """Read one number aloud, and say quietly what is going on where there is room.

    Args:
        reading: What the number is, and last the number itself, which is never cut.
        status: Quiet words, or nothing.
        width: Cells of the row.
        palette: For this terminal.
    """
    if width_of(reading) > width:
        return spread(reading[:-1], reading[-1:], width, palette.plain)
    words = transliterate(f" {status} ", palette.profile.glyphs) if status else ""
    room = width - width_of(reading)
    if cell_len(words) > room:
        words = ""
    return spread(reading, [Segment(words, palette.faint)], width, palette.plain)


def footer(hints: Sequence[tuple[str, str]], width: int, palette: Palette, *, keep: int = 0) -> Row:
    """List keys and what they do, as many as fit whole.

    Args:
        hints: (keys, label); the first ones go first where there is little room.
        width: Cells of the row.
        palette: For this terminal.
        keep: How many of the last ones must stay.
    """
    glyphs = palette.profile.glyphs
    written = [(f" {transliterate(keys, glyphs)}", f" {words} ") for keys, words in hints]
    widths = [cell_len(keys) + cell_len(words) for keys, words in written]
    first_kept = len(written) - keep
    room = width - sum(widths[first_kept:])
    row: Row = []
    for i, (keys, words) in enumerate(written):
        if i < first_kept:
            room -= widths[i]
            if room < 0:
                continue
        row += [Segment(keys, palette.bar_key), Segment(words, palette.bar)]
    return padded(row, width, palette.bar)


def fit_name(name: str, width: int, palette: Palette) -> str:
    """Keep the end of a name or path that is too long, which tells more than its start."""
    if cell_len(name) <= width:
        return name
    return fit(name, width, palette.profile.glyphs, keep_end=True)


def _shortened(text: str, width: int, palette: Palette) -> str:
    return text if cell_len(text) <= width else fit(text, width, palette.profile.glyphs)
