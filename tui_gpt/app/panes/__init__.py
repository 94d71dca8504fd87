"""The panes, one a file: what each asks about a run, how it is drawn, what arrows move in it.

A pane's file is imported when the pane is first shown, so that the first frame waits for none.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tui_gpt.app.panes.pane import Pane


@dataclass(frozen=True, slots=True)
class Listed:
    """A pane as the tabs name it."""

    key: str
    """The digit that shows it."""
    title: str
    module: str
    """Of this package."""
    name: str
    """The class in it."""

    def open(self) -> Pane:
        """Make the pane."""
        made: Pane = getattr(import_module(f"{__name__}.{self.module}"), self.name)()
        return made


PANES = (
    Listed("1", "Pipeline", "pipeline", "PipelinePane"),
    Listed("2", "Attention", "attention", "AttentionPane"),
    Listed("3", "FFN", "feed_forward", "FeedForwardPane"),
    Listed("4", "Stream", "stream", "StreamPane"),
    Listed("5", "Output", "output", "OutputPane"),
    Listed("6", "Budget", "budget", "BudgetPane"),
    Listed("7", "Generate", "generate", "GeneratePane"),
)
"""In the order of their digits."""
