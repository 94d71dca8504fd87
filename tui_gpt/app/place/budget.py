"""The shape that is looked at in the budget pane: a value, and what each key makes of it.

Every change gives a shape that can be built, or the same one with the reason why not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, get_args

from tui_gpt.config import GPTConfig
from tui_gpt.errors import ImpossibleShape
from tui_gpt.records.budget.counts import inner_width
from tui_gpt.records.budget.memory import check_batch
from tui_gpt.views.panes.budget.pane import SECTIONS, Section

Field = Literal[
    "from", "n_layer", "n_embd", "n_head", "expansion", "vocab_size", "block_size",
    "tied", "qkv_bias", "bias", "positions", "batch", "context",
]  # fmt: skip

FIELDS: tuple[Field, ...] = get_args(Field)

VOCABULARIES = (
    64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32000, 37000, 50257, 65536, 100277,
    128256, 151936, 200019, 256000,
)  # fmt: skip
"""Sizes that vocabularies have: powers of two, then those of published models."""

_STEP = 0.25
"""Of the expansion."""


@dataclass(frozen=True, slots=True)
class BudgetPlace:
    """A shape that can be built, and which of its fields the keys change."""

    start: str
    """The preset or model it was started from."""
    origin: GPTConfig
    """The shape of that."""
    config: GPTConfig
    expansion: float
    """As it was chosen; n_inner is rounded from it."""
    qkv_bias: bool
    """As it was chosen; without biases at all the config has none."""
    batch: int
    context: int
    field: int = 0
    """Index into FIELDS."""
    section: Section = "parts"
    held: tuple[str, GPTConfig] | None = None
    """What is compared with."""
    refused: str = ""
    """Why the last change was not made."""

    @classmethod
    def of(cls, name: str, config: GPTConfig) -> BudgetPlace:
        """Start from a named shape, one row of its whole context."""
        expansion = config.n_inner / config.n_embd
        return cls(name, config, config, expansion, config.qkv_bias, 1, config.block_size)

    @property
    def name(self) -> str:
        """What the shape is called."""
        return self.start if self.config == self.origin else f"{self.start}, changed"

    def values(self) -> list[tuple[str, str]]:
        """Give every field as (name, value) to show."""
        config = self.config
        shown: dict[Field, str] = {
            "from": self.start,
            "n_layer": f"{config.n_layer:,}",
            "n_embd": f"{config.n_embd:,}",
            "n_head": f"{config.n_head:,} of {config.head_dim:,}",
            "expansion": f"{self.expansion:.4g} = {config.n_inner:,}",
            "vocab_size": f"{config.vocab_size:,}",
            "block_size": f"{config.block_size:,}",
            "tied": _yes(config.tied),
            "qkv_bias": _yes(config.qkv_bias),
            "bias": _yes(config.bias),
            "positions": config.positions,
            "batch": f"{self.batch:,}",
            "context": f"{self.context:,}",
        }
        return [(field, shown[field]) for field in FIELDS]

    def at_field(self, step: int) -> BudgetPlace:
        """Choose a field further down or up."""
        return replace(self, field=max(0, min(self.field + step, len(FIELDS) - 1)), refused="")

    def next_section(self) -> BudgetPlace:
        """Show the next section, the first after the last."""
        following = (SECTIONS.index(self.section) + 1) % len(SECTIONS)
        return replace(self, section=SECTIONS[following], refused="")

    def hold(self) -> BudgetPlace:
        """Keep this shape to compare with, or let the kept one go."""
        held = None if self.held is not None else (self.name, self.config)
        return replace(self, held=held, section="compare", refused="")

    def changed(self, step: int, named: Callable[[], Mapping[str, GPTConfig]]) -> BudgetPlace:
        """Change the chosen field by a step, or say why it cannot be.

        Args:
            step: 1 for more or the next, −1 for less or the one before.
            named: Gives the shapes that can be started from.
        """
        try:
            return replace(self._stepped(FIELDS[self.field], step, named), refused="")
        except ImpossibleShape as error:
            return replace(self, refused=str(error))

    def _stepped(
        self, field: Field, step: int, named: Callable[[], Mapping[str, GPTConfig]]
    ) -> BudgetPlace:
        config = self.config
        match field:
            case "from":
                return self._restarted(step, named())
            case "n_layer":
                return self._with(replace(config, n_layer=config.n_layer + step))
            case "n_embd":
                width = _doubled(config.n_embd, step)
                n_inner = inner_width(self.expansion, max(width, 1))
                return self._with(replace(config, n_embd=width, n_inner=n_inner))
            case "n_head":
                return self._with(replace(config, n_head=_next_heads(config, step)))
            case "expansion":
                expansion = _next_multiple(self.expansion, step)
                n_inner = inner_width(expansion, config.n_embd)
                return replace(self._with(replace(config, n_inner=n_inner)), expansion=expansion)
            case "vocab_size":
                size = _next_vocabulary(config.vocab_size, step)
                return self._with(replace(config, vocab_size=size))
            case "block_size":
                return self._with(replace(config, block_size=_doubled(config.block_size, step)))
            case "tied":
                return self._with(replace(config, tied=not config.tied))
            case "qkv_bias":
                return self._with_qkv_bias(not config.qkv_bias)
            case "bias":
                bias = not config.bias
                return self._with(replace(config, bias=bias, qkv_bias=bias and self.qkv_bias))
            case "positions":
                other: Literal["learned", "sinusoidal"] = (
                    "sinusoidal" if config.positions == "learned" else "learned"
                )
                return self._with(replace(config, positions=other))
            case "batch":
                return self._for(_doubled(self.batch, step), self.context)
            case "context":
                return self._for(self.batch, _doubled(self.context, step))

    def _restarted(self, step: int, named: Mapping[str, GPTConfig]) -> BudgetPlace:
        """Take the next shape that has a name; a changed one goes back to its own first."""
        names = list(named)
        at = names.index(self.start) if self.start in names else 0
        name = names[(at + step) % len(names)]
        return replace(
            BudgetPlace.of(name, named[name]),
            batch=self.batch,
            field=self.field,
            section=self.section,
            held=self.held,
        )

    def _with(self, config: GPTConfig) -> BudgetPlace:
        """Take a config; a context that was the whole of it stays the whole."""
        whole = self.context == self.config.block_size
        context = config.block_size if whole else self.context
        check_batch(config, batch=self.batch, context=context)
        return replace(self, config=config, context=context)

    def _with_qkv_bias(self, qkv_bias: bool) -> BudgetPlace:
        if not self.config.bias:
            raise ImpossibleShape("bias is no, which drops q k v's too; turn bias on first")
        return replace(self._with(replace(self.config, qkv_bias=qkv_bias)), qkv_bias=qkv_bias)

    def _for(self, batch: int, context: int) -> BudgetPlace:
        check_batch(self.config, batch=batch, context=context)
        return replace(self, batch=batch, context=context)


def _doubled(size: int, step: int) -> int:
    return size * 2 if step > 0 else size // 2


def _next_multiple(expansion: float, step: int) -> float:
    """Go to the next multiple of the step, from wherever it is."""
    steps = expansion / _STEP
    return _STEP * (math.floor(steps) + 1 if step > 0 else math.ceil(steps) - 1)


def _next_heads(config: GPTConfig, step: int) -> int:
    """Go to the next number of heads the width divides into; beyond the last one, double."""
    width, heads = config.n_embd, config.n_head
    small = [n for n in range(1, math.isqrt(width) + 1) if width % n == 0]
    divisors = sorted({*small, *(width // n for n in small)})
    at = divisors.index(heads) + step
    return divisors[at] if 0 <= at < len(divisors) else _doubled(heads, step)


def _next_vocabulary(size: int, step: int) -> int:
    if step > 0:
        return next((known for known in VOCABULARIES if known > size), size * 2)
    return next((known for known in reversed(VOCABULARIES) if known < size), size // 2)


def _yes(value: bool) -> str:
    return "yes" if value else "no"
