"""Generation as lines for people to read: a row a step, then the text as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.text import Text

from tui_gpt.records.analyses.generation import GenerationStep, Loop, Sampling
from tui_gpt.records.tokens import Token, joined_text
from tui_gpt.records.trace import Run
from tui_gpt.views.commands.trace import FAINT, HEADING, NOTICE, places, run_heading
from tui_gpt.views.numbers import counted
from tui_gpt.views.profile import Glyphs, TerminalProfile
from tui_gpt.views.stage_text import wrapped
from tui_gpt.views.text import fit, label, sanitize, transliterate

_WIDTH = 80
"""Cells of a sentence's lines."""

_TOKEN = 12
_HEAD = f"{'step':>4}  {'token':<{_TOKEN}}{'id':>6}{'logit':>9}{'prob':>8}{'margin':>8}"
_HEAD += f"{'entropy':>9}{'read':>9}  then"


def table_head(run: Run, sampling: Sampling, profile: TerminalProfile) -> Iterator[Text]:
    """Say what reads which prompt and how it chooses, and name the columns."""
    yield from run_heading(run, profile)
    yield Text(
        transliterate(how_chosen(sampling), profile.glyphs), "" if sampling.is_greedy else NOTICE
    )
    yield Text()
    yield Text(_HEAD, FAINT)


def table_row(step: GenerationStep, profile: TerminalProfile) -> Text:
    """Write one step: the token, what decided it, the positions read, who came next."""
    glyphs = profile.glyphs
    first, count = step.window
    read = transliterate(f"{first}…{first + count - 1}", glyphs) if count > 1 else str(first)
    entropy = step.ranking.entropy
    line = Text.assemble(
        (f"{step.step:>4}  ", FAINT),
        (fit(label(step.token, glyphs), _TOKEN - 1, glyphs) + " ", HEADING),
        (f"{step.token.id:>6}", FAINT),
        f"{places(step.chosen.logit):>9}{places(step.chosen.prob):>8}",
        f"{places(step.ranking.margin):>8}{places(entropy):>9}",
        (f"{read:>9}", NOTICE if step.cropped else FAINT),
    )
    room = profile.width - line.cell_len
    for one in step.ranking.best:
        if one.token.id == step.token.id:
            continue
        said = f"  {label(one.token, glyphs)} {places(one.prob)}"
        room -= cell_len(said)
        if room < 0:
            break
        line.append(said, FAINT)
    return line


def table_end(
    prompt: Sequence[Token],
    steps: Sequence[GenerationStep],
    loop: Loop | None,
    block_size: int,
    glyphs: Glyphs,
) -> Iterator[Text]:
    """Give the whole text, the new part marked, and say whether the window slid or it loops."""
    yield Text()
    before = sanitize(written(prompt), glyphs, lines=True)
    after = sanitize(written([step.token for step in steps]), glyphs, lines=True)
    yield Text.assemble((before, FAINT), (after, HEADING))
    said = []
    slid = next((step for step in steps if step.cropped), None)
    if slid is not None:
        said.append(
            f"the window slid from step {slid.step} on: this model reads {block_size} tokens, "
            "so each of these steps is a fresh pass over the last ones"
        )
    if loop is not None:
        said.append(loop_words(loop, steps))
    if said:
        yield Text()
    for sentence in said:
        for line in wrapped(transliterate(sentence, glyphs), _WIDTH):
            yield Text(line, NOTICE)


def written(tokens: Sequence[Token]) -> str:
    """Put tokens together; ids without a meaning stand between brackets."""
    parts: list[str] = []
    run: list[Token] = []
    for token in tokens:
        if token.bytes:
            run.append(token)
            continue
        parts += [joined_text(run), label(token)]
        run = []
    return "".join([*parts, joined_text(run)])


def how_chosen(sampling: Sampling) -> str:
    """Say by which rule tokens are chosen."""
    if sampling.is_greedy:
        return "greedy: the highest logit each time, the lowest id among equal ones"
    parts = [f"temperature {sampling.temperature:g}"]
    if sampling.top_k is not None:
        parts.append(f"top-k {sampling.top_k}")
    if sampling.top_p is not None:
        parts.append(f"top-p {sampling.top_p:g}")
    return f"sampled, not greedy: {', '.join(parts)}, sample seed {sampling.seed}"


def loop_words(loop: Loop, steps: Sequence[GenerationStep]) -> str:
    """Explain a loop plainly, as far as it is certain."""
    size = counted(loop.period, "token")
    said = f"a loop: the last {size} came {loop.rounds} times in a row"
    greedy = all(step.chosen_by == "greedy" for step in steps[-loop.period :])
    if loop.for_ever and greedy:
        return (
            f"{said}; the model reads exactly what it read one round ago, "
            "and greedy choice then goes round for ever"
        )
    if greedy:
        return f"{said}; what was just said makes itself likelier, and greedy choice follows it"
    return said
