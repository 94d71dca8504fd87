"""The panes, one a file: what each asks about a run, how it is drawn, what arrows move in it."""

from tui_gpt.app.panes.attention import AttentionPane
from tui_gpt.app.panes.budget import BudgetPane
from tui_gpt.app.panes.feed_forward import FeedForwardPane
from tui_gpt.app.panes.generate import GeneratePane
from tui_gpt.app.panes.output import OutputPane
from tui_gpt.app.panes.pane import Pane
from tui_gpt.app.panes.pipeline import PipelinePane
from tui_gpt.app.panes.stream import StreamPane

PANES: tuple[type[Pane], ...] = (
    PipelinePane,
    AttentionPane,
    FeedForwardPane,
    StreamPane,
    OutputPane,
    BudgetPane,
    GeneratePane,
)
"""In the order of their digits."""
