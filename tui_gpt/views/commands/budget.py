"""A budget as lines for people to read: the sections of pane 6, one below the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from rich.text import Text

from tui_gpt.config import GPTConfig
from tui_gpt.records.budget.counts import StateDictCount, budget
from tui_gpt.records.budget.memory import memory, shape_rows
from tui_gpt.views.model_text import ACTIVATION_WORDS
from tui_gpt.views.numbers import counted
from tui_gpt.views.palette import Palette, palette
from tui_gpt.views.panes.budget.compare import compare_rows
from tui_gpt.views.panes.budget.memory import bytes_rows, shapes_rows
from tui_gpt.views.panes.budget.parts import counts_rows, family_rows, names_rows, parts_rows
from tui_gpt.views.panes.budget.table_rows import heading_row, sentence
from tui_gpt.views.profile import TerminalProfile
from tui_gpt.views.rows import Row
from tui_gpt.views.text import sanitize

_NARROWEST, _WIDEST = 80, 110


def budget_lines(
    name: str,
    config: GPTConfig,
    *,
    batch: int,
    context: int,
    state_dict: StateDictCount | None,
    other: tuple[str, GPTConfig] | None,
    profile: TerminalProfile,
) -> Iterator[Text]:
    """Print everything that is known of a shape.

    Args:
        name: What it was started from; outside text.
        config: The shape.
        batch: Of the shape table.
        context: Of the shape table and the cache.
        state_dict: What is in the weight file, where there is one.
        other: Name and shape of what it is compared with.
        profile: What the terminal can show.
    """
    width = max(_NARROWEST, min(profile.width, _WIDEST))
    own = profile if profile.colour == "none" else replace(profile, colour="16")
    styles = palette(own)  # the terminal's own colours: these lines stand on its background
    found = budget(config)
    sections = [
        _heading(name, config, width, styles),
        parts_rows(found, width, styles),
        names_rows(found, width, styles),
        counts_rows(found, state_dict, width, styles),
        family_rows(width, styles),
        bytes_rows(memory(config, batch=batch, context=context), width, styles),
        [
            heading_row(f"Shapes for batch {batch:,}, context {context:,}", width, styles),
            *shapes_rows(config, shape_rows(config, batch=batch, context=context), width, styles),
        ],
    ]
    if other is not None:
        against = budget(other[1])
        sections.append(compare_rows(found, against, (name, other[0]), width, styles))
    for i, section in enumerate(sections):
        if i:
            yield Text()
        for row in section:
            yield Text.assemble(*((segment.text, segment.style or "") for segment in row))


def _heading(name: str, config: GPTConfig, width: int, styles: Palette) -> list[Row]:
    """Name the shape with every field that changes a count."""
    expansion = config.n_inner / config.n_embd
    biases = "all biases" if config.qkv_bias else "no q k v biases" if config.bias else "no biases"
    facts = (
        counted(config.n_layer, "block"),
        f"n_embd {config.n_embd:,}",
        f"{counted(config.n_head, 'head')} of {config.head_dim}",
        f"expansion {expansion:.6g}: n_inner {config.n_inner:,}",
        f"vocabulary {config.vocab_size:,}",
        f"block_size {config.block_size:,}",
        "tied" if config.tied else "untied",
        biases,
        f"{config.positions} positions",
        f"{config.norm}-norm",
        ACTIVATION_WORDS[config.activation],
    )
    return [
        heading_row(sanitize(name, styles.profile.glyphs), width, styles),
        *sentence(" · ".join(facts), width, styles),
    ]
