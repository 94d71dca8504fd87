"""What the explorer shows first, found on the command line before the screen is touched."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tui_gpt.records.trace import ModelFacts, Run

if TYPE_CHECKING:
    from tui_gpt.session import Session


@dataclass(frozen=True, slots=True)
class InitialView:
    """What the explorer shows first."""

    session: Session | None
    """None where a recording's model is not at hand."""
    run: Run
    recording: Path | None
    """Holds the run's numbers, if there is one."""
    stage_id: str
    models: Callable[[], tuple[ModelFacts, ...]]
    """Lists what can be chosen without a path, when it is asked for."""
    crop: bool = False
    """Prompts that are too long keep their end."""
    bos: bool = True
    """Put the tokens around a text that the tokenizer adds."""
