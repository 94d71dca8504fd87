"""A loader report as lines: what was read, how it is turned, what was left out.

The lines are as wide as they are asked to be; a name that does not fit keeps its end, which
tells it from others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text

from tui_gpt.records.loader_report import COMPUTED_IN, LoaderReport, SkippedRow, TensorRow
from tui_gpt.views.commands.trace import FAINT, HEADING, NOTICE, shape_of
from tui_gpt.views.model_text import shape_words
from tui_gpt.views.numbers import counted
from tui_gpt.views.profile import Glyphs
from tui_gpt.views.stage_text import wrapped
from tui_gpt.views.text import fit, sanitize, transliterate

_ARROW = " → "
_TURNED = "ᵀ"
_TURNED_WORDS = (
    "transposed: GPT-2's Conv1D keeps (inputs, outputs), and here it is (outputs, inputs)"
)
_SMALLEST_NAME = 12


@dataclass(frozen=True, slots=True)
class ReportStyles:
    """How the parts of a report are set off; by default in the terminal's own colours."""

    heading: Style | str = HEADING
    faint: Style | str = FAINT
    notice: Style | str = NOTICE


def report_lines(
    report: LoaderReport, width: int, glyphs: Glyphs, styles: ReportStyles | None = None
) -> Iterator[Text]:
    """Show the whole report.

    Args:
        report: The record.
        width: Cells of a line, 40 or more.
        glyphs: What the terminal can show.
        styles: For a screen with a background of its own.
    """
    styles = styles or ReportStyles()

    def words(text: str, style: Style | str = "", indent: str = "") -> Iterator[Text]:
        for line in wrapped(transliterate(sanitize(text), glyphs), width - len(indent)):
            yield Text(indent + line, style)

    model, config = report.model, report.model.config
    yield from words(model.name, styles.heading)
    head = "tied to the token table" if report.tied else "of its own"
    stored = ", ".join(report.dtypes)
    yield from words(
        f"{counted(model.n_parameters, 'parameter')} · {counted(config.n_layer, 'block')} · "
        f"{config.n_embd} wide · {counted(config.n_head, 'head')} · {shape_words(config)}"
    )
    yield from words(f"output head: {head}")
    yield from words(f"stored as {stored}, computed in {COMPUTED_IN}")
    yield from words(f"tokenizer: {report.tokenizer}")
    yield Text()
    yield from words(f"{counted(len(report.files), 'file')} read", styles.heading)
    for path in report.files:
        yield from words(path, indent="  ")
    if report.notices:
        yield Text()
        for notice in report.notices:
            yield from words(notice, styles.notice, indent="  ")
    yield Text()
    keys = len({row.key for row in report.tensors if row.key is not None})
    if not keys:
        yield from words(
            f"{counted(len(report.tensors), 'tensor')}, drawn from a seed", styles.heading
        )
    else:
        made = counted(len(report.tensors), "parameter tensor")
        yield from words(f"{counted(keys, 'tensor')} → {made}", styles.heading)
    if any(row.transposed for row in report.tensors):
        yield from words(f"{_TURNED} {_TURNED_WORDS}", styles.faint)
    for prefix in sorted({row.prefix for row in report.tensors if row.prefix}):
        yield from words(f"each key without {prefix}", styles.faint)
    yield from _table(report, width, glyphs, styles.faint)
    if report.skipped:
        yield Text()
        yield from words(f"{counted(len(report.skipped), 'tensor')} left out", styles.heading)
        for row in report.skipped:
            yield from words(_left_out(row), indent="  ")


def _table(report: LoaderReport, width: int, glyphs: Glyphs, faint: Style | str) -> Iterator[Text]:
    """Write one line a parameter, and below it what does not fit."""
    rows = report.tensors
    keys = [sanitize((row.key or row.parameter).removeprefix(row.prefix), glyphs) for row in rows]
    shapes = [shape_of(row.shape) for row in rows]
    room = max(map(cell_len, shapes))
    names = max(_SMALLEST_NAME, min(max(map(cell_len, keys)), width - room - 1))
    mixed = len(report.dtypes) > 1
    for row, key, shape in zip(rows, keys, shapes, strict=True):
        became = transliterate(sanitize(_became(row, key)), glyphs)
        if mixed:
            became = f"  {row.dtype}{became}"
        line = Text.assemble(
            fit(key, names, glyphs, keep_end=cell_len(key) > names), (f" {shape:>{room}}", faint)
        )
        remark = transliterate(sanitize(row.remark if row.key is not None else ""), glyphs)
        rest = f"{became}  {remark}" if remark else became
        if cell_len(line.plain) + cell_len(rest) <= width:
            yield Text.assemble(line, rest)
            continue
        if cell_len(line.plain) + cell_len(became) <= width:
            yield Text.assemble(line, became)
            rest = remark
        else:
            yield line
        for part in wrapped(rest.strip(), width - 4):
            yield Text(f"    {part}")


def _became(row: TensorRow, key: str) -> str:
    """Say what is different in the program; nothing where nothing is."""
    mark = f" {_TURNED}" if row.transposed else ""
    if row.parameter == key and row.shape == row.parameter_shape and not mark:
        return ""
    folder = key.rpartition(".")[0].rpartition(".")[0]
    name = "" if row.parameter == key else f"{row.parameter.removeprefix(folder + '.')} "
    part = f", {row.part}" if row.part else ""
    return f"{mark}{_ARROW}{name}{shape_of(row.parameter_shape)}{part}"


def _left_out(row: SkippedRow) -> str:
    return f"{row.key} {shape_of(row.shape)} {row.dtype}: {row.reason}"
