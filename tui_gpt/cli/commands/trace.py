"""`tui-gpt trace`: the numbers of one forward pass, without the screen."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tui_gpt.cli.commands.trace_explain import explanation_lines, parse_index
from tui_gpt.cli.options import (
    Globals,
    Prompt,
    global_options,
    model_option,
    prompt_options,
    say_notices,
)
from tui_gpt.errors import MissingStage, UsageError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from rich.text import Text

    from tui_gpt.records.analyses.explanation import Explanation
    from tui_gpt.records.stages import Axis, Parameter, Stage
    from tui_gpt.records.trace import Trace
    from tui_gpt.session import Session
    from tui_gpt.views.profile import Glyphs, TerminalProfile

_NOT_RECORDINGS = (".json", ".csv", ".txt")
"""Endings that say a person took -o for the place where the printed output goes."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """One trace and what of it is to be printed."""

    session: Session
    trace: Trace
    stage: Stage | None
    """Its values too."""
    parameter: tuple[Parameter, NDArray[np.float32]] | None
    """This one's values too."""
    explanation: Explanation | None
    """Of one cell of the stage."""


@click.command(
    help="Run a prompt through a model and print every stage with its shape and statistics, or "
    "the values of one stage or parameter, or where one value comes from.",
)
@model_option
@prompt_options
@click.option("--stage", "stage_id", metavar="ID", help="Print this stage's values.")
@click.option(
    "--explain",
    "cell",
    metavar="I,J,...",
    help="Say where the value at this index of the stage comes from.",
)
@click.option(
    "--parameter", "parameter_name", metavar="NAME", help="Print this parameter's values."
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json", "csv"]),
    default="table",
    show_default=True,
)
@click.option(
    "-o",
    "recording",
    metavar="RECORDING",
    type=click.Path(path_type=Path),
    help="Write every stage to this .safetensors file, and print nothing.",
)
@global_options
def trace(
    *,
    model: str,
    prompt: Prompt,
    stage_id: str | None,
    cell: str | None,
    parameter_name: str | None,
    form: str,
    recording: Path | None,
    common: Globals,
) -> None:
    """Refuse what can be refused without torch, then compute, then print."""
    if stage_id is not None and parameter_name is not None:
        raise UsageError("give one of --stage and --parameter, not both")
    index = None if cell is None else parse_index(cell, stage_id, form)
    if recording is not None and recording.suffix in _NOT_RECORDINGS:
        raise UsageError(
            f"-o {recording} writes a recording, a .safetensors file; "
            f"for text, JSON or CSV leave -o out and write `> {recording}`"
        )

    from tui_gpt.records.analyses.explanation import check_cell
    from tui_gpt.records.stages import find_stage
    from tui_gpt.session import Session, use_threads

    session = Session.open(model)
    run = prompt.prepare(session)
    stage = None if stage_id is None else find_stage(run.stages, stage_id)
    if stage is not None and index is not None:
        check_cell(stage, index)
    weight = None if parameter_name is None else _parameter(session, parameter_name)
    session.load()
    use_threads(common.n_threads)
    traced = session.trace(run)
    explanation = (
        session.explain(traced, stage.id, index)
        if stage is not None and index is not None
        else None
    )
    asked = _Asked(session, traced, stage, weight, explanation)
    if recording is not None:
        _record(asked, recording)
        return

    from tui_gpt.cli.output import write

    match form:
        case "json":
            write(_json(asked))
        case "csv":
            write(_csv(asked, common.profile().glyphs))
        case _:
            write(_table(asked, common.profile()))


def _parameter(session: Session, name: str) -> tuple[Parameter, NDArray[np.float32]]:
    values = session.parameter(name)
    return next(known for known in session.parameters() if known.name == name), values


def _record(asked: _Asked, path: Path) -> None:
    from tui_gpt.records.recording import save_recording

    save_recording(path, asked.trace, asked.session.weights_sha256())
    say_notices(asked.trace.run.notices)


def _json(asked: _Asked) -> Iterator[str]:
    """Give the whole trace as JSON, with the values that were asked for at its end."""
    from tui_gpt.analysis.summary import slices, summaries
    from tui_gpt.records.export.trace_json import (
        explanation_object,
        json_text,
        parameter_object,
        stage_rows,
        trace_object,
    )

    trace, stage = asked.trace, asked.stage
    found = list(summaries(trace))
    document = trace_object(trace.run, found, trace.prediction())
    if stage is not None:
        there = any(summary.stage == stage and summary.statistics for summary in found)
        document["stage"] = stage.id
        document["values"] = stage_rows(slices(trace, stage)) if there else None
    if asked.explanation is not None:
        document["explain"] = explanation_object(asked.explanation)
    if asked.parameter is not None:
        weight, values = asked.parameter
        document["parameter"] = parameter_object(weight.name, weight.shape, values)
    return json_text(document)


def _csv(asked: _Asked, glyphs: Glyphs) -> Iterator[str]:
    """Give one row a stage, or one row a cell of what was asked for."""
    from tui_gpt.analysis.summary import slices, summaries, summary
    from tui_gpt.records.export.trace_csv import cell_rows, parameter_rows, stage_rows
    from tui_gpt.views.text import transliterate

    trace, stage = asked.trace, asked.stage
    if asked.parameter is not None:
        rows = parameter_rows(asked.parameter[1])
    elif stage is not None:
        summary(trace, stage)  # refuses a missing stage before the first row is out
        rows = cell_rows(stage.axes, slices(trace, stage))
    else:
        rows = stage_rows(list(summaries(trace)))
    say_notices(trace.run.notices)
    return _csv_text(
        [transliterate(cell, glyphs) if isinstance(cell, str) else cell for cell in row]
        for row in rows
    )


def _csv_text(rows: Iterable[Sequence[object]]) -> Iterator[str]:
    writer = csv.writer(_Echo(), lineterminator="\n")
    for row in rows:
        yield writer.writerow(row)  # gives what _Echo.write gives


class _Echo:
    """A file that hands back each line written to it."""

    def write(self, line: str) -> str:
        return line


def _table(asked: _Asked, profile: TerminalProfile) -> Iterator[str]:
    """Give the lines that people read, fitted to the terminal if there is one."""
    from tui_gpt.analysis.summary import summaries
    from tui_gpt.cli.output import drawn
    from tui_gpt.views.commands.trace import trace_table

    trace = asked.trace
    width = profile.width if sys.stdout is not None and sys.stdout.isatty() else None
    if asked.explanation is not None:
        lines = explanation_lines(asked.session, trace.run, asked.explanation, profile)
    elif asked.parameter is not None:
        lines = _parameter_table(asked, profile, width)
    elif asked.stage is not None:
        lines = _stage_table(asked, asked.stage, profile, width)
    else:
        lines = trace_table(trace.run, list(summaries(trace)), trace.prediction(), profile)
    return drawn(lines, profile)


def _parameter_table(asked: _Asked, profile: TerminalProfile, width: int | None) -> Iterator[Text]:
    from tui_gpt.records.tensors import statistics_of
    from tui_gpt.views.commands.values import parameter_heading, parameter_values

    assert asked.parameter is not None
    weight, values = asked.parameter
    found = statistics_of(values)
    yield from parameter_heading(asked.trace.run, weight, found, profile)
    yield from parameter_values(values, found, width=width, glyphs=profile.glyphs)


def _stage_table(
    asked: _Asked, stage: Stage, profile: TerminalProfile, width: int | None
) -> Iterator[Text]:
    from tui_gpt.analysis.summary import slices, summary
    from tui_gpt.records.tensors import StageSummary
    from tui_gpt.views.commands.values import stage_heading, stage_values
    from tui_gpt.views.text import label

    run, glyphs = asked.trace.run, profile.glyphs

    def label_at(axis: Axis, place: int) -> str:
        token = asked.session.token(place) if axis == "V" else run.tokens[place]
        return label(token, glyphs)

    try:
        found = summary(asked.trace, stage)
    except MissingStage as hole:
        yield from stage_heading(run, StageSummary(stage, None, str(hole)), profile)
        return
    yield from stage_heading(run, StageSummary(stage, found), profile)
    parts = slices(asked.trace, stage)
    yield from stage_values(parts, found, label_at, width=width, glyphs=glyphs)
