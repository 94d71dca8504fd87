"""`tui-gpt explore`: open the explorer, or say at once why it cannot be opened."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import NoReturn

import click

from tui_gpt.cli.environment import has_terminal
from tui_gpt.cli.options import Globals, Prompt, global_options, model_option, prompt_options
from tui_gpt.errors import UsageError
from tui_gpt.records.stages import find_stage

FIRST_STAGE = "blocks.0.pattern"


@click.command(
    help="Open the explorer on a prompt, or on RECORDING, a file that `tui-gpt trace -o` wrote. "
    "Press ? inside for the keys.",
)
@click.argument("recording", type=click.Path(path_type=Path), required=False)
@model_option
@prompt_options
@click.option("--stage", metavar="ID", default=FIRST_STAGE, show_default=True)
@global_options
def explore(
    *, recording: Path | None, model: str, prompt: Prompt, stage: str, common: Globals
) -> None:
    """Find model and prompt without torch, then hand the terminal over."""
    reason = has_terminal()
    if reason is not None:
        raise UsageError(
            f"the explorer needs a terminal, and {reason}; `tui-gpt trace` prints the same numbers"
        )
    from tui_gpt.app.initial_view import InitialView
    from tui_gpt.session import Session, bundled_recording, known_models, recorded_session

    path: Path | None
    if recording is not None:
        from tui_gpt.records.recording import Recording

        opened = Recording(recording)
        session, run, path = recorded_session(opened), opened.run, recording
    else:
        session = Session.open(model)
        run = prompt.prepare(session)
        path = bundled_recording(run.model.name, run.prompt)
    find_stage(run.stages, stage)
    initial_view = InitialView(session, run, path, stage, known_models, prompt.crop, prompt.bos)
    _run(initial_view, common)


def _run(initial_view: object, common: Globals) -> NoReturn:
    from tui_gpt.app.explorer import ExplorerApp
    from tui_gpt.app.initial_view import InitialView

    assert isinstance(initial_view, InitialView)
    profile = common.profile()
    app = ExplorerApp(initial_view, profile, common.n_threads)
    app.run(mouse=profile.mouse)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):
            stream.flush()
    # Nothing waits for the background: its threads may sit inside `import torch`.
    os._exit(app.return_code or 0)
