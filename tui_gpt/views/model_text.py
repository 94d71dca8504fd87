"""A model in one line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text

from tui_gpt.config import GPTConfig
from tui_gpt.records.trace import ModelFacts
from tui_gpt.views.numbers import counted
from tui_gpt.views.profile import Glyphs
from tui_gpt.views.text import sanitize, transliterate

ACTIVATION_WORDS = {"gelu": "GELU", "gelu_tanh": "tanh GELU", "relu": "ReLU"}


def describe(model: ModelFacts) -> str:
    """Name a model with what tells it from others; `transliterate` makes it ASCII where needed."""
    config = model.config
    return (
        f"{sanitize(model.name):<16} {model.n_parameters:>8,} parameters · "
        f"{counted(config.n_layer, 'block')} · {shape_words(config)}"
    )


def shape_words(config: GPTConfig) -> str:
    """Say how a model is built: norm, positions, activation, head."""
    parts = [f"{config.norm}-norm", config.positions, ACTIVATION_WORDS[config.activation]]
    if config.tied:
        parts.append("tied")
    return ", ".join(parts)


def untrained_lines(models: Sequence[ModelFacts], glyphs: Glyphs) -> Iterator[Text]:
    """List the shapes that can be filled with random numbers, a line each."""
    head = " · random numbers from a seed (--seed N, default 123)"
    yield Text.assemble(("untrained:PRESET", "bold"), transliterate(head, glyphs))
    width = max(len(model.name) for model in models)
    for model in models:
        config = model.config
        facts = (
            f"{model.n_parameters:>13,} parameters",
            counted(config.n_layer, "block"),
            f"{config.n_embd} wide",
            f"{config.norm}-norm",
            *(["tied"] if config.tied else []),
        )
        name = sanitize(model.name, glyphs)
        yield Text(f"  {name:<{width}} {transliterate(' · '.join(facts), glyphs)}")
