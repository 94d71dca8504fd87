"""`tui-gpt models --inspect MODEL`: how the model's files became its parameters."""

from __future__ import annotations

import json

from tui_gpt.cli.options import Globals

_WIDEST = 160
"""Cells; a line that is longer is hard to follow."""


def inspect(name: str, *, as_json: bool, common: Globals) -> None:
    """Read the whole model as opening it does, then print."""
    from tui_gpt.cli.output import drawn, write
    from tui_gpt.records.loader_report import report_object
    from tui_gpt.session import Session, use_threads
    from tui_gpt.views.commands.loader_report import report_lines

    session = Session.open(name)
    use_threads(common.n_threads)
    report = session.report()
    if as_json:
        write([json.dumps(report_object(report), indent=2, allow_nan=False), "\n"])
        return
    profile = common.profile()
    width = min(max(profile.width, 40), _WIDEST)
    write(drawn(report_lines(report, width, profile.glyphs), profile))
