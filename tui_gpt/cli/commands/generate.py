"""`tui-gpt generate`: let a model write on, and print what decided each token."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

import click

from tui_gpt.cli.options import (
    Globals,
    Prompt,
    global_options,
    model_option,
    prompt_options,
    say_notices,
)

if TYPE_CHECKING:
    from tui_gpt.records.analyses.generation import GenerationStep, Sampling
    from tui_gpt.records.trace import Run
    from tui_gpt.views.profile import TerminalProfile


def _finite(
    context: click.Context, parameter: click.Parameter, value: float | None
) -> float | None:
    """Refuse inf and nan, which lie in no range and outside none."""
    if value is not None and not math.isfinite(value):
        raise click.BadParameter(f"{value} is no number to compute with")
    return value


@click.command(
    help="Let a model write on after a prompt, one token at a time, and print what decided each. "
    "The highest logit is taken, the lowest id among equal ones; with --temperature, --top-k or "
    "--top-p a token is drawn instead. Greedy text often ends in a loop: nothing is penalised to "
    "hide it. An end-of-text token is a token like any other and ends nothing.",
)
@model_option
@prompt_options
@click.option("-n", "count", type=click.IntRange(1), default=20, show_default=True, help="Steps.")
@click.option(
    "--top", type=click.IntRange(1), default=10, show_default=True, help="Candidates a step."
)
@click.option("--no-cache", is_flag=True, help="Compute every position anew at every step.")
@click.option(
    "--temperature",
    type=click.FloatRange(0),
    callback=_finite,
    metavar="X",
    help="Divide the logits by this and draw; 0 is greedy.",
)
@click.option("--top-k", type=click.IntRange(1), metavar="K", help="Draw from the best K.")
@click.option(
    "--top-p",
    type=click.FloatRange(0, 1, min_open=True),
    callback=_finite,
    metavar="P",
    help="Draw from the fewest that reach this probability.",
)
@click.option(
    "--sample-seed",
    type=click.IntRange(0, 2**63 - 1),
    default=123,
    show_default=True,
    metavar="N",
    help="Of the draws.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line.")
@global_options
def generate(
    *,
    model: str,
    prompt: Prompt,
    count: int,
    top: int,
    no_cache: bool,
    temperature: float | None,
    top_k: int | None,
    top_p: float | None,
    sample_seed: int,
    as_json: bool,
    common: Globals,
) -> None:
    """Refuse what can be refused without torch, then print each step when it is there."""
    from tui_gpt.cli.output import write
    from tui_gpt.records.analyses.generation import Sampling
    from tui_gpt.session import Session, use_threads

    if temperature is None:
        temperature = 0.0 if top_k is None and top_p is None else 1.0
    sampling = Sampling(temperature=temperature, top_k=top_k, top_p=top_p, seed=sample_seed)
    session = Session.open(model)
    run = prompt.prepare(session, slide=True)
    session.load()
    use_threads(common.n_threads)
    stepper = session.stepper(top=max(2, top))  # the margin needs two
    ids = [token.id for token in run.tokens]
    steps = islice(stepper.steps(ids, sampling=sampling, cache=not no_cache), count)
    if as_json:
        say_notices(run.notices)
        write(_as_it_comes(_json_lines(steps, top)))
    else:
        write(_as_it_comes(_table(run, steps, sampling, common.profile())))


def _as_it_comes(pieces: Iterable[str]) -> Iterator[str]:
    """Send each piece before the next is computed."""
    for piece in pieces:
        yield piece
        sys.stdout.flush()


def _json_lines(steps: Iterable[GenerationStep], top: int) -> Iterator[str]:
    import json

    from tui_gpt.records.export.trace_json import generation_object

    for step in steps:
        yield json.dumps(generation_object(step, top), allow_nan=False) + "\n"


def _table(
    run: Run, steps: Iterable[GenerationStep], sampling: Sampling, profile: TerminalProfile
) -> Iterator[str]:
    """Give the lines that people read."""
    from tui_gpt.cli.output import drawn
    from tui_gpt.records.analyses.generation import find_loop
    from tui_gpt.views.commands.generate import table_end, table_head, table_row

    taken: list[GenerationStep] = []
    yield from drawn(table_head(run, sampling, profile), profile)
    for step in steps:
        taken.append(step)
        yield from drawn([table_row(step, profile)], profile)
    size = run.model.config.block_size
    loop = find_loop([token.id for token in run.tokens] + [step.token.id for step in taken], size)
    yield from drawn(table_end(run.tokens, taken, loop, size, profile.glyphs), profile)
