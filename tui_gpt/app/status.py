"""What is going on, in a few quiet words at the end of the line that is read."""

from __future__ import annotations

from tui_gpt.app.messages import Checking


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
