"""What is said beside the numbers: what is going on, and what stays in sight with a run."""

from __future__ import annotations

from tui_gpt.app.work.messages import Checking
from tui_gpt.app.work.questions import Broken
from tui_gpt.records.trace import Run


def going_on(
    *, has_trace: bool, waits: bool, loads: bool, recorded: bool, checking: Checking | None
) -> str:
    """Choose the words.

    Args:
        has_trace: There are numbers on the screen.
        waits: New ones are being computed.
        loads: The model is being fetched ahead of the first prompt.
        recorded: The numbers on the screen were computed at another time.
        checking: How far the reading of weights is, while they are read.
    """
    if checking is not None and (waits or loads):
        return f"checking {checking.done} of {checking.count} tensors…"
    if waits:
        return "running…" if has_trace else "loading torch to run it…"
    if not has_trace:
        return ""
    if loads:
        return "recorded · loading torch…"
    return "recorded run" if recorded else "computed here"


def standing(run: Run, broken: Broken | None) -> tuple[str, ...]:
    """List what must be in sight with a run: what was done to its prompt, and the first NaN.

    Args:
        run: The run on the screen.
        broken: Where the first number is that is none; None while that is not known.
    """
    if broken is None or broken.first is None:
        return run.notices
    where = f"{broken.first.stage.id}[{', '.join(str(i) for i in broken.first.index)}]"
    return (f"not finite: {where} is the first such number", *run.notices)
