"""Models that learnt nothing: a preset's shape, filled with random numbers from a seed.

Two recipes, each to the last bit that of the text which prints what such a model writes:

    gpt2-book      torch's own first weights, in the book's module order: q, k, v without
                   biases, then the projection, the feed-forward network, norms
    every other    modules made in the chapter's order, then every matrix and table drawn
                   from N(0, 0.02) in that order, q, k and v at once, and biases set to 0

The numbers come out of torch's global generator, as in those texts; it is put back afterwards.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tui_gpt.config import GPTConfig
from tui_gpt.errors import UnknownModel

if TYPE_CHECKING:
    import torch

    from tui_gpt.model.gpt import GPT

PREFIX = "untrained:"

SEED = 123
"""The seed of both texts, taken where none is given."""

SPREAD = 0.02
"""The standard deviation that GPT-2's weights start with."""

_TORCH_DEFAULTS = ("gpt2-book",)
"""Presets whose first weights are torch's own."""

_NAME = re.compile(r"untrained:(?P<preset>\S*?)(?: seed (?P<seed>\d{1,19}))?")


@dataclass(frozen=True, slots=True)
class Recipe:
    """How an untrained model is made."""

    preset: str
    seed: int

    @property
    def name(self) -> str:
        """As it is asked for; another seed than the usual one belongs to it."""
        return f"{PREFIX}{self.preset}" + ("" if self.seed == SEED else f" seed {self.seed}")


def read_recipe(name: str) -> Recipe:
    """Read `untrained:PRESET`, or `untrained:PRESET seed N`.

    Raises:
        UnknownModel: It is neither.
    """
    found = _NAME.fullmatch(name)
    seed = SEED if found is None or found["seed"] is None else int(found["seed"])
    if found is None or seed >= 2**63:
        raise UnknownModel(f"no model {name!r}: write untrained:PRESET, and a seed below 2^63")
    return Recipe(found["preset"], seed)


def draw(recipe: Recipe, config: GPTConfig) -> GPT:
    """Build the model of a recipe; the same recipe gives the same numbers."""
    import torch

    from tui_gpt.model.gpt import GPT

    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.default_generator.manual_seed(recipe.seed)
        model = GPT(config)
        if recipe.preset not in _TORCH_DEFAULTS:
            _draw_from_normal(model)
    return model.requires_grad_(False).eval()


def _draw_from_normal(model: GPT) -> None:
    """Draw every matrix and table anew, in module order; q, k and v are one matrix here."""
    from torch import nn

    from tui_gpt.model.gpt import Attention

    fused: set[nn.Module] = set()
    for module in model.modules():  # an Attention comes before its parts
        if isinstance(module, Attention):
            parts = (module.q, module.k, module.v)
            fused.update(parts)
            for part, weight in zip(parts, _fused(module.q.weight), strict=True):
                part.weight.copy_(weight)
        elif isinstance(module, nn.Linear | nn.Embedding) and module not in fused:
            nn.init.normal_(module.weight, std=SPREAD)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)


def _fused(weight: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Draw three matrices as one of three times the height: (3C, C), cut into (C, C)."""
    return weight.new_empty(3 * weight.shape[0], weight.shape[1]).normal_(std=SPREAD).chunk(3)
