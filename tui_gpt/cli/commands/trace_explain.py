"""`tui-gpt trace --explain`: its index, and its answer as lines for people to read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from tui_gpt.errors import UsageError

if TYPE_CHECKING:
    from rich.text import Text

    from tui_gpt.records.analyses.explanation import Explanation
    from tui_gpt.records.trace import Run
    from tui_gpt.session import Session
    from tui_gpt.views.profile import TerminalProfile


def parse_index(listed: str, stage_id: str | None, form: str) -> tuple[int, ...]:
    """Read --explain.

    Args:
        listed: What was given.
        stage_id: What was given with --stage, which it needs.
        form: Of the output.

    Raises:
        UsageError: It is no list of whole numbers, or does not go with the rest.
    """
    if stage_id is None:
        raise UsageError(f"--explain {listed} names a cell of a stage: give --stage too")
    if form == "csv":
        raise UsageError("an explanation has no CSV: give --format table or json")
    try:
        return tuple(int(part) for part in listed.split(","))
    except ValueError:
        raise UsageError(
            f"--explain {listed!r}: expected whole numbers with commas between"
        ) from None


def explanation_lines(
    session: Session, run: Run, explanation: Explanation, profile: TerminalProfile
) -> Iterator[Text]:
    """Give the rows that the explorer shows, in the terminal's own colours."""
    from rich.text import Text

    from tui_gpt.views.commands.trace import run_heading
    from tui_gpt.views.palette import palette
    from tui_gpt.views.panes.pipeline.explanation import NARROWEST, WIDEST, explanation_rows

    yield from run_heading(run, profile)
    yield Text()
    own = profile if profile.colour == "none" else replace(profile, colour="16")
    for row in explanation_rows(
        explanation,
        run,
        width=min(max(profile.width, NARROWEST), WIDEST),
        palette=palette(own),
        vocabulary=session.token,
    ):
        yield Text.assemble(*((segment.text, segment.style or "") for segment in row))
