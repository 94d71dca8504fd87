"""What is said about a stage: its heading, its legend, and one cell read aloud."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.segment import Segment

from tui_gpt.config import GPTConfig
from tui_gpt.records.stages import POSITION_AXES, ActivationName, Axis, Stage
from tui_gpt.records.tokens import Token
from tui_gpt.views.numbers import exact, short
from tui_gpt.views.palette import Palette
from tui_gpt.views.rows import Row, padded, spread, width_of
from tui_gpt.views.text import formula, named, transliterate

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tui_gpt.records.tensors import StageTensor, Statistics

_TITLES: dict[ActivationName, str] = {
    "tokens": "tokens",
    "embed": "token embedding",
    "pos_embed": "position embedding",
    "resid_pre": "stream entering",
    "ln_1": "LayerNorm 1",
    "q": "queries",
    "k": "keys",
    "v": "values",
    "attn_scores": "attention scores",
    "pattern": "attention pattern",
    "z": "mixed values",
    "attn_out": "attention output",
    "resid_mid": "stream after attention",
    "ln_2": "LayerNorm 2",
    "mlp_pre": "hidden pre-activations",
    "mlp_post": "hidden activations",
    "mlp_out": "feed-forward output",
    "resid_post": "stream leaving",
    "ln_final": "final LayerNorm",
    "logits": "logits",
    "probs": "probabilities",
}

AXIS_WORDS: dict[Axis, str] = {
    "T": "position",
    "Tq": "query",
    "Tk": "key",
    "H": "head",
    "D": "feature",
    "C": "feature",
    "F": "unit",
    "V": "token",
}


def heading(
    stage: Stage, config: GPTConfig, *, head: int, width: int, palette: Palette
) -> list[Row]:
    """Say what a stage is: title, operation and shape, formula, topic.

    Args:
        stage: Which one.
        config: Of its model.
        head: The head that is shown, where the stage has heads.
        width: Cells of each row.
        palette: For this terminal.

    Returns:
        From four rows on, as the topic and the formula need.
    """
    glyphs = palette.profile.glyphs
    times = " x " if palette.profile.ascii else " × "
    plain, faint = palette.plain, palette.faint
    place = f"Block {stage.layer + 1} of {config.n_layer}" if stage.layer is not None else ""
    separator = transliterate(" · ", glyphs)
    title = (
        f"{place}{separator}{_TITLES[stage.name]}" if place else _TITLES[stage.name].capitalize()
    )
    right: Row = []
    if stage.axes[0] == "H":
        right = [
            Segment(" head ", plain),
            Segment(f"{head + 1}", palette.accent),
            Segment(f"/{config.n_head} ", plain),
        ]
    shape = f"({', '.join(str(size) for size in stage.shape)})"
    axes = times.join(AXIS_WORDS[axis] for axis in stage.axes)
    rows = [spread([Segment(title, palette.strong)], right, width, plain)]
    operation, shape = formula(stage.operation, glyphs), f"{shape} {axes}"
    if len(operation) + 2 + len(shape) <= width:
        rows.append(spread([Segment(operation, plain)], [Segment(shape, plain)], width, plain))
        lines = []
    else:
        lines = [(text, plain) for text in (*wrapped(shape, width), *wrapped(operation, width))]
    lines += [
        *((text, palette.accent) for text in wrapped(formula(stage.formula, glyphs), width)),
        *((text, faint) for text in wrapped(transliterate(stage.topic, glyphs), width)),
    ]
    return rows + [padded([Segment(text, style)], width, plain) for text, style in lines]


def parameter_heading(
    stage: Stage, which: int, config: GPTConfig, *, width: int, palette: Palette
) -> list[Row]:
    """Say what a parameter is: its name, its shape, how many numbers, whose it is.

    Args:
        stage: The stage that uses it.
        which: Its place among the stage's parameters.
        config: Of the model.
        width: Cells of each row.
        palette: For this terminal.
    """
    glyphs = palette.profile.glyphs
    parameter = stage.parameters[which]
    shape = f"({', '.join(str(size) for size in parameter.shape)})"
    kind = "vector" if len(parameter.shape) == 1 else "output × input"
    if parameter.name in ("wte.weight", "wpe.weight", "lm_head.weight"):
        kind = f"{'position' if parameter.name == 'wpe.weight' else 'token'} × feature"
    place = f"block {stage.layer + 1} of {config.n_layer}, " if stage.layer is not None else ""
    shared = ", shared with the token table" if parameter.shared else ""
    lines = [
        (f"{parameter.name}", palette.strong),
        (f"{shape} {kind}", palette.plain),
        (f"{parameter.count:,} parameters of {place}{stage.name}{shared}", palette.plain),
        (
            f"{which + 1} of {len(stage.parameters)}: w shows the next, then the stage",
            palette.faint,
        ),
    ]
    return [
        padded([Segment(part, style)], width, palette.plain)
        for text, style in lines
        for part in wrapped(transliterate(text, glyphs), width)
    ]


def title_row(title: str, stage: Stage, right: Row, width: int, palette: Palette) -> Row:
    """Head a pane: its title, the stage's formula where there is room, and what is chosen.

    Returns:
        A row of exactly `width` cells.
    """
    glyphs = palette.profile.glyphs
    said, how = transliterate(title, glyphs), f"  {formula(stage.formula, glyphs)}"
    left: Row = [Segment(said, palette.strong)]
    if cell_len(said) + cell_len(how) + width_of(right) <= width:
        left.append(Segment(how, palette.faint))
    return spread(left, right, width, palette.plain)


def legend_row(scale: Row, found: Statistics, width: int, palette: Palette) -> Row:
    """Put the scale, the mean and the standard deviation on one line of exactly `width` cells.

    Args:
        scale: From `legend`, or words where there is none.
        found: The tensor's statistics.
        width: Cells of the row.
        palette: For this terminal.
    """
    room = width - width_of(scale)
    notes: Row = []
    if found.not_finite:
        notes.append(Segment(f"  {found.not_finite} not finite", palette.problem))
    for digits in (3, 2):
        numbers = f"  mean {short(found.mean, digits)} std {short(found.std, digits)}"
        if len(numbers) + width_of(notes) <= room:
            break
    masked = f"  {found.masked} masked" if found.masked else ""
    if len(numbers) + width_of(notes) + len(masked) <= room:
        numbers += masked
    return padded([*scale, *notes, Segment(numbers, palette.plain)], width, palette.plain)


def reading(
    tensor: StageTensor,
    head: int,
    cell: tuple[int, int],
    tokens: tuple[Token, ...],
    vocabulary: Callable[[int], Token] | None,
    palette: Palette,
) -> Row:
    """Read one cell aloud, with every digit it has.

    Args:
        tensor: The stage.
        head: The head that is shown.
        cell: (row, column) in the matrix that is shown.
        tokens: Of the run.
        vocabulary: Gives the token of an id, where the vocabulary is at hand.
        palette: For this terminal.
    """
    stage = tensor.stage
    glyphs = palette.profile.glyphs
    index = (head, *cell) if stage.axes[0] == "H" else cell[: len(stage.axes)]
    stored = (index[0] - tensor.first, *index[1:]) if tensor.first else index
    parts: list[str] = []
    for axis, i in zip(stage.axes, index, strict=True):
        words = f"L{stage.layer}H{i}" if axis == "H" else f"{AXIS_WORDS[axis]} {i}"
        if axis in POSITION_AXES:
            words += f" {named(tokens[i], glyphs)}"
        elif axis == "V" and vocabulary is not None:
            words += f" {named(vocabulary(i), glyphs)}"
        parts.append(words)
    joined = transliterate(" · ", glyphs).join(parts)
    if stage.name in ("attn_scores", "pattern"):
        verb = " reads " if stage.name == "pattern" else " asks "
        joined = transliterate(" · ", glyphs).join((parts[0], parts[1] + verb + parts[2]))
    masked = tensor.masked
    if masked is not None and masked[stored]:
        value = "masked: it lies in the future"
    else:
        value = exact(tensor.values[stored])
    return [
        Segment(f" {joined}  ", palette.plain),
        Segment(value, palette.accent),
    ]


def parameter_reading(
    name: str,
    values: NDArray[np.float32],
    cell: tuple[int, int],
    vocabulary: Callable[[int], Token] | None,
    palette: Palette,
) -> Row:
    """Read one cell of a parameter aloud, with every digit it has.

    Args:
        name: As in the state dict.
        values: (outputs, inputs), (rows, features) or (features,).
        cell: (row, column); a vector is one row.
        vocabulary: Gives the token of an id, where the vocabulary is at hand.
        palette: For this terminal.
    """
    glyphs = palette.profile.glyphs
    index = cell if values.ndim == 2 else cell[1:]
    where = ", ".join(str(i) for i in index)
    token = ""
    if name in ("wte.weight", "lm_head.weight") and vocabulary is not None:
        token = f" {named(vocabulary(cell[0]), glyphs)}"
    return [
        Segment(f" {name}[{where}]{token}  ", palette.plain),
        Segment(exact(values[index]), palette.accent),
    ]


def wrapped(text: str, width: int) -> list[str]:
    """Break a sentence between words; a word longer than the line is cut through."""
    lines: list[str] = []
    line = ""
    for word in text.split(" "):
        if line and len(line) + 1 + len(word) > width:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}" if line else word
        while len(line) > width > 0:
            lines.append(line[:width])
            line = line[width:]
    return [*lines, line]
