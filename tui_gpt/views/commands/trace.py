"""A trace and its models as lines for people to read: what ran, every stage, what comes next.

The lines are 80 cells wide at most, except that a wider terminal gets each stage's operation
too. Values of one stage are in `values.py`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from rich.cells import cell_len
from rich.text import Text

from tui_gpt.config import GPTConfig
from tui_gpt.records.stages import Stage
from tui_gpt.records.tensors import StageSummary
from tui_gpt.records.tokens import Token
from tui_gpt.records.trace import Candidate, ModelFacts, Run
from tui_gpt.views.model_text import ACTIVATION_WORDS
from tui_gpt.views.numbers import counted
from tui_gpt.views.profile import Glyphs, TerminalProfile
from tui_gpt.views.stage_text import AXIS_WORDS
from tui_gpt.views.text import fit, formula, label, prompt_words, sanitize, transliterate

HEADING, FAINT, BAR, NOTICE = "bold", "dim", "cyan", "bold yellow"
"""Styles out of the terminal's own colours, since these lines stand on its own background."""

_COLUMNS = ("stage", "shape", "parameters", "min", "max", "mean", "std")
_COLUMN_STYLES = ("", FAINT, FAINT, "", "", "", "")
"""What is known beforehand stands back behind what was measured."""
_GAP = "  "
_BAR_CELLS = 30
_EIGHTHS = " ▏▎▍▌▋▊▉"


def trace_table(
    run: Run,
    summaries: Sequence[StageSummary],
    prediction: Sequence[Candidate],
    profile: TerminalProfile,
) -> Iterator[Text]:
    """Show a whole trace: what ran, one row a stage, the candidates for the next token."""
    yield from run_heading(run, profile)
    yield Text()
    yield from _stage_rows(run, summaries, profile)
    yield Text()
    yield from _prediction(run.tokens[-1], prediction, profile.glyphs)


def run_heading(run: Run, profile: TerminalProfile) -> Iterator[Text]:
    """Say which model read which prompt, and everything that a person should know of."""
    glyphs = profile.glyphs
    config = run.model.config
    facts = (
        counted(config.n_layer, "block"),
        f"{config.n_embd} wide",
        counted(config.n_head, "head"),
        counted(run.model.n_parameters, "parameter"),
        run.model.source,
    )
    yield Text.assemble(
        (sanitize(run.model.name, glyphs), HEADING),
        (transliterate(" · " + " · ".join(facts), glyphs), FAINT),
    )
    yield Text.assemble(
        prompt_words(run, glyphs),
        (transliterate(f" · {counted(len(run.tokens), 'token')}", glyphs), FAINT),
    )
    for notice in run.notices:
        yield Text(f"notice: {transliterate(sanitize(notice), glyphs)}", NOTICE)


def model_lines(model: ModelFacts, path: str, default: bool, glyphs: Glyphs) -> Iterator[Text]:
    """Describe one model that can be opened.

    Args:
        model: Its facts.
        path: Where it is.
        default: It is the one that is opened without -m.
        glyphs: What the terminal can show.
    """
    remarks = [counted(model.n_parameters, "parameter"), model.source]
    if default:
        remarks.append("the default")
    yield Text.assemble(
        (sanitize(model.name, glyphs), HEADING), transliterate(" · " + " · ".join(remarks), glyphs)
    )
    yield Text("  " + transliterate(" · ".join(_sizes(model.config)), glyphs))
    yield Text("  " + transliterate(" · ".join(_choices(model.config)), glyphs))
    yield Text("  " + sanitize(path, glyphs), FAINT)


def shape_of(shape: Sequence[int]) -> str:
    """Write a shape as Python does: (19,), (4, 19, 19)."""
    return str(tuple(shape))


def axes_of(stage: Stage) -> str:
    """Name a stage's axes: head × query × key."""
    return " × ".join(AXIS_WORDS[axis] for axis in stage.axes)


def places(value: float | None) -> str:
    """Write a number to four places, 0 as 0 where it is exactly that, a missing one as -.

    A very large number has an exponent, so none is longer than eleven cells.
    """
    if value is None:
        return "-"
    if value == 0:
        return "0"
    if math.isfinite(value) and abs(value) >= 99_999.99:
        return f"{value:.4e}"
    return f"{value:.4f}"


def bar(share: float, cells: int, glyphs: Glyphs) -> str:
    """Draw a share of 1 as a bar.

    Returns:
        At most `cells` cells; eighths of a cell where there are glyphs for them.
    """
    if not share > 0:  # NaN included
        return ""
    share = min(share, 1.0)
    if glyphs == "ascii":
        return "#" * round(share * cells)
    whole, eighths = divmod(round(share * cells * 8), 8)
    return "█" * whole + _EIGHTHS[eighths].strip()


def _stage_rows(
    run: Run, summaries: Sequence[StageSummary], profile: TerminalProfile
) -> Iterator[Text]:
    """Write the table, each block's rows under a heading that carries their ids' first part."""
    glyphs = profile.glyphs
    rows = [_cells(summary) for summary in summaries]
    total = ("in all", "", f"{run.model.n_parameters:,}", "", "", "", "")
    widths = [max(map(len, column)) for column in zip(_COLUMNS, total, *rows, strict=True)]
    operations = [formula(summary.stage.operation, glyphs) for summary in summaries]
    table = sum(widths) + len(_GAP) * len(widths)
    wide = table + max(map(cell_len, operations)) <= profile.width
    yield _line((*_COLUMNS, "operation" if wide else ""), widths, (FAINT,) * len(_COLUMNS))
    layer: int | None = None
    for summary, row, operation in zip(summaries, rows, operations, strict=True):
        if summary.stage.layer != layer:
            layer = summary.stage.layer
            yield Text()
            if layer is not None:
                yield _block_heading(layer, run, widths, glyphs)
        line = _line(row, widths)
        remark = _remark(summary, glyphs)
        line.append(f"{_GAP}{remark or (operation if wide else '')}", NOTICE if remark else FAINT)
        yield line
    yield Text()
    yield _line(total, widths)


def _cells(summary: StageSummary) -> tuple[str, ...]:
    """Write what stands in each column of one stage's row."""
    stage, found = summary.stage, summary.statistics
    name = stage.name if stage.layer is None else f"  {stage.name}"
    numbers = ["", "", "", ""]
    if found is not None:
        numbers = [places(value) for value in (found.minimum, found.maximum, found.mean, found.std)]
        if stage.name == "tokens":
            numbers[:2] = [f"{found.minimum:.0f}", f"{found.maximum:.0f}"]
    return (name, shape_of(stage.shape), _owned(stage), *numbers)


def _line(
    cells: Sequence[str], widths: Sequence[int], styles: Sequence[str] = _COLUMN_STYLES
) -> Text:
    """Put cells in columns, the first to the left and the others to the right."""
    line = Text()
    for i, (cell, width, style) in enumerate(zip(cells, widths, styles, strict=False)):
        line.append(f"{_GAP}{cell:>{width}}" if i else f"{cell:<{width}}", style)
    if len(cells) > len(widths):
        line.append(f"{_GAP}{cells[-1]}", FAINT)
    return line


def _block_heading(layer: int, run: Run, widths: Sequence[int], glyphs: Glyphs) -> Text:
    name = transliterate(
        f"block {layer + 1} of {run.model.config.n_layer} · blocks.{layer}.", glyphs
    )
    count = sum(stage.n_parameters for stage in run.stages if stage.layer == layer)
    room = sum(widths[:3]) + 2 * len(_GAP) - len(name)
    return Text.assemble((name, HEADING), (f"{count:>{room},}", FAINT))


def _remark(summary: StageSummary, glyphs: Glyphs) -> str:
    """Say why a stage has no numbers, or that some of them are not finite."""
    if summary.statistics is None:
        return f"missing: {transliterate(sanitize(summary.missing or ''), glyphs)}"
    broken = summary.statistics.not_finite
    return f"{broken:,} not finite" if broken else ""


def _owned(stage: Stage) -> str:
    """Count the parameters that belong to a stage; say so where another stage counts them."""
    if any(parameter.shared for parameter in stage.parameters):
        return "shared"
    return f"{stage.n_parameters:,}" if stage.parameters else ""


def _prediction(last: Token, prediction: Iterable[Candidate], glyphs: Glyphs) -> Iterator[Text]:
    candidates = list(prediction)
    names = [label(candidate.token, glyphs) for candidate in candidates]
    width = max(5, min(16, max((cell_len(name) for name in names), default=0)))
    title = transliterate(f"next token after “{label(last, glyphs)}”", glyphs)
    head = f"{'token':<{width}}{'id':>8}{'logit':>11}{'prob':>9}  probability from 0 to 1"
    yield Text(title, HEADING)
    if not candidates:
        yield Text("    no prediction: the logits are missing or not finite", NOTICE)
        return
    yield Text(f"    {head}", FAINT)
    for place, (candidate, name) in enumerate(zip(candidates, names, strict=True), start=1):
        yield Text.assemble(
            (f"{place:>2}  ", FAINT),
            fit(name, width, glyphs),
            (f"{candidate.token.id:>8}", FAINT),
            f"{places(candidate.logit):>11}{places(candidate.prob):>9}  ",
            (bar(candidate.prob, _BAR_CELLS, glyphs), BAR),
        )


def _sizes(config: GPTConfig) -> tuple[str, ...]:
    return (
        counted(config.n_layer, "block"),
        f"{config.n_embd} wide",
        f"{counted(config.n_head, 'head')} of {config.head_dim}",
        f"{config.n_inner:,} hidden units",
        f"context {config.block_size:,}",
        f"vocabulary {config.vocab_size:,}",
    )


def _choices(config: GPTConfig) -> tuple[str, ...]:
    biases = "all biases" if config.qkv_bias else "no q k v biases" if config.bias else "no biases"
    return (
        f"{config.norm}-norm",
        f"{config.positions} positions",
        ACTIVATION_WORDS[config.activation],
        "tied head" if config.tied else "untied head",
        biases,
    )
