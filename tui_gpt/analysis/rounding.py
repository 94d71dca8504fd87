"""How far two float32 results of one operation may lie apart.

The same sum in another order (other threads, another machine) ends in other last digits. For
each cell this gives what that can amount to, from the size of what went into it: for a sum of
products the root of the sum of their squares, which is how far its partial sums wander. Against
float64 the operations of six models (widths 8 to 768, up to 512 positions) stayed within 15
times ε · (that root + |result|) for sums of products, 3.4 for LayerNorm, 1.7 for softmax and 1
for the activation; the factors below leave at least twice that room.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor
from torch.nn import functional

from tui_gpt.config import GPTConfig
from tui_gpt.records.stages import HEAD_AXES, Stage

EPSILON = 2.0**-23
"""The gap between 1 and the next float32."""

_PRODUCTS, _NORM, _SOFTMAX, _ACTIVATION = 32, 8, 8, 4
"""Allowed, in units of ε times the size of what goes into a cell."""

_TINY = 2.0**-126
"""The smallest float32 with all its digits: below it, digits are lost."""


def room(
    stage: Stage,
    result: Tensor,
    reads: Sequence[Tensor],
    weights: Mapping[str, Tensor],
    config: GPTConfig,
) -> tuple[Tensor, str]:
    """Say how much rounding a stage's operation may differ by, cell by cell, and why.

    Args:
        stage: Which operation.
        result: What it gave, in the stage's shape.
        reads: What it was applied to, in the order of `stage.reads`; for logits and probs the
            same positions as `result`. Copies and additions need none.
        weights: The model's parameters by name.
        config: The model's.

    Returns:
        A tensor that broadcasts to the stage's shape, and words for a person.
    """
    match stage.kind:
        case "ids" | "lookup" | "copy":
            return torch.zeros(()), "a copy is exact"
        case "sinusoid":
            return torch.tensor(EPSILON), "sines of float64 are rounded once"
        case "sum":
            return EPSILON * result.abs(), "one float32 addition is rounded once"
        case "layer_norm":
            return _NORM * EPSILON * _norm_size(stage, result, reads[0], weights, config), (
                "float32 mean and variance, relative to the vector's size"
            )
        case "rms_norm":
            return _NORM * EPSILON * result.abs() + _TINY, "a float32 mean of squares"
        case "rotation":
            size = reads[0].square().sum(dim=-1, keepdim=True).sqrt()  # no feature is longer
            return _ACTIVATION * EPSILON * size, "two float32 products with rounded sines"
        case "scores":
            keys = _for_each_query_head(reads[1], reads[0])
            size = (reads[0].square() @ keys.square().transpose(-1, -2)).sqrt()
            return _products(result, size / reads[0].shape[-1] ** 0.5), _sums(reads[0].shape[-1])
        case "mix":
            values = _for_each_query_head(reads[1], reads[0])
            size = (reads[0].square() @ values.square()).sqrt()
            return _products(result, size), _sums(reads[0].shape[-1])
        case "softmax":
            size = result * (1 + result.clamp_min(_TINY).log().abs())
            return _SOFTMAX * EPSILON * size + _TINY, "float32 exponentials, relative to each one"
        case "activation" if config.activation == "relu":
            return torch.zeros(()), "ReLU is exact"
        case "activation":
            return _ACTIVATION * EPSILON * reads[0].abs() + _TINY, (
                "a float32 activation, relative to its input"
            )
        case "gate":
            return _ACTIVATION * EPSILON * (reads[0] * reads[1]).abs() + _TINY, (
                "a float32 activation and a product, relative to their size"
            )
        case _:
            size = _linear_size(stage, reads[0], weights)
            return _products(result, size), _sums(weights[stage.parameters[0].name].shape[1])


def _products(result: Tensor, size: Tensor) -> Tensor:
    return _PRODUCTS * EPSILON * (size + result.abs())


def _for_each_query_head(shared: Tensor, queries: Tensor) -> Tensor:
    """Repeat keys or values for the query heads that share them: (K, T, D) → (H, T, D)."""
    return shared.repeat_interleave(queries.shape[0] // shared.shape[0], dim=0)


def _sums(n: int) -> str:
    return f"float32 sums of {n} products, relative to their size"


def _linear_size(stage: Stage, x: Tensor, weights: Mapping[str, Tensor]) -> Tensor:
    """Root the sum of squared products of a linear map, in the stage's shape."""
    if x.ndim == 3:
        x = x.transpose(0, 1).flatten(1)  # (H, T, D) → (T, C)
    weight, *bias = (weights[parameter.name] for parameter in stage.parameters)
    size = functional.linear(x.square(), weight.square(), bias[0].square() if bias else None).sqrt()
    if stage.axes[0] in HEAD_AXES:
        heads, _, width = stage.shape
        size = size.reshape(-1, heads, width).transpose(0, 1)  # (T, C) → (H, T, D)
    return size


def _norm_size(
    stage: Stage, result: Tensor, x: Tensor, weights: Mapping[str, Tensor], config: GPTConfig
) -> Tensor:
    """Scale a normalised vector by what centring it cost in digits."""
    mean_square = x.square().mean(dim=-1, keepdim=True)
    variance = x.var(dim=-1, keepdim=True, correction=0)
    lost = (mean_square / (variance + config.layer_norm_epsilon)).sqrt()  # (T, 1)
    return weights[stage.parameters[0].name].abs() * lost + result.abs()
