"""A model in one line."""

from __future__ import annotations

from tui_gpt.config import GPTConfig
from tui_gpt.records.trace import ModelFacts
from tui_gpt.views.numbers import counted
from tui_gpt.views.text import harmless

ACTIVATION_WORDS = {"gelu": "GELU", "gelu_tanh": "tanh GELU", "relu": "ReLU"}


def describe(model: ModelFacts) -> str:
    """Name a model with what tells it from others; `spoken` makes it ASCII where needed."""
    config = model.config
    return (
        f"{harmless(model.name):<16} {model.n_parameters:>8,} parameters · "
        f"{counted(config.n_layer, 'block')} · {shape_words(config)}"
    )


def shape_words(config: GPTConfig) -> str:
    """Say how a model is built: norm, positions, activation, head."""
    parts = [f"{config.norm}-norm", config.positions, ACTIVATION_WORDS[config.activation]]
    if config.tied:
        parts.append("tied")
    return ", ".join(parts)
