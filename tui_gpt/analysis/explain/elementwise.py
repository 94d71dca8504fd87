"""Cells that follow from one position: lookups, sums in the stream, LayerNorm, the activation."""

from __future__ import annotations

import math

import numpy as np

from tui_gpt.analysis.explain.cell import Cell, inner, known, read
from tui_gpt.config import Activation
from tui_gpt.records.analyses.explanation import Explanation, Operand


def token(cell: Cell) -> Explanation:
    """`tokens`: the id that the tokenizer, or the person, put at this position."""
    (place,) = cell.index
    return Explanation(
        stage=cell.stage.id,
        index=cell.index,
        value=cell.value,
        value_float64=float(cell.value),
        formula=f"{cell.stage.formula} = token {read(cell.value)} at position {place}",
        operands=(Operand("position", None, place),),
    )


def embedding(cell: Cell) -> Explanation:
    """`embed`: a number out of the token's row of the table."""
    place, feature = cell.index
    name = cell.stage.parameters[0].name
    found = cell.of_stage("token", cell.stage.reads[0], place)
    row = int(known(found))
    entry = cell.of_parameter("table entry", name, row, feature)
    return cell.explained(f"wte[{row}, {feature}]", known(entry), (found, entry))


def position(cell: Cell) -> Explanation:
    """`pos_embed`: a number out of the position's row of the table, or a sinusoid."""
    place, feature = cell.index
    where = Operand("position", None, place)
    if cell.config.positions == "learned":
        entry = cell.of_parameter("table entry", cell.stage.parameters[0].name, place, feature)
        return cell.explained(f"wpe[{place}, {feature}]", known(entry), (where, entry))
    pair, width = feature - feature % 2, cell.config.n_embd
    frequency = 10000.0 ** (-pair / width)
    name, wave = ("cos", math.cos) if feature % 2 else ("sin", math.sin)
    return Explanation(
        stage=cell.stage.id,
        index=cell.index,
        value=cell.value,
        value_float64=wave(place * frequency),
        formula=f"{name}(pos·ω), ω = 10000^(−{pair}/{width}) "
        f"= {name}({place} · {read(frequency)}) = {read(cell.value)}",
        operands=(where, Operand("frequency", None, frequency)),
    )


def stream_sum(cell: Cell) -> Explanation:
    """`resid_pre`, `resid_mid`, `resid_post`: two addends, or the previous block's output."""
    addends = [
        cell.of_stage(stage_id.rpartition(".")[2], stage_id, *cell.index)
        for stage_id in cell.stage.reads
    ]
    values = [known(addend) for addend in addends]
    if len(addends) == 1:
        where = f"{cell.stage.reads[0]}{list(cell.index)}"
        return cell.explained(where, values[0], addends)
    first, second = values
    return cell.explained(f"{read(first)} + {inner(second)}", first + second, addends)


def layer_norm(cell: Cell) -> Explanation:
    """`ln_1`, `ln_2`, `ln_final`: one feature of a token's vector, normalised by all of them."""
    place, feature = cell.index
    source = cell.stage.reads[0]
    x = cell.of_stage("x", source, place, feature)
    vector = cell.values(source)[place].astype(np.float64)  # (C,)
    mean = vector.mean()
    variance = np.square(vector - mean).mean()  # divided by n
    epsilon = cell.config.layer_norm_epsilon
    scale, *shift = (
        cell.of_parameter(role, parameter.name, feature)
        for role, parameter in zip(("gamma", "beta"), cell.stage.parameters, strict=False)
    )
    normed = (vector[feature] - mean) / np.sqrt(variance + epsilon) * known(scale)
    formula = (
        f"{read(known(scale))} · ({read(known(x))} − {inner(float(mean))})"
        f" / √({read(float(variance))} + {read(float(epsilon))})"
    )
    for beta in shift:
        normed += known(beta)
        formula += f" + {inner(known(beta))}"
    derived = (
        Operand("mean", None, float(mean)),
        Operand("variance", None, float(variance)),
        Operand("epsilon", None, float(epsilon)),
    )
    return cell.explained(formula, float(normed), (x, *derived, scale, *shift))


def activation(cell: Cell) -> Explanation:
    """`mlp_post`: the nonlinearity, applied to one hidden unit."""
    x = cell.of_stage("x", cell.stage.reads[0], *cell.index)
    numbers, value = _activated(cell.config.activation, known(x))
    return cell.explained(numbers, value, (x,))


def _activated(kind: Activation, x: float) -> tuple[str, float]:
    """Apply an activation in float64: its formula with the numbers in it, and the value."""
    shown = inner(x)
    match kind:
        case "relu":
            return f"max(0, {read(x)})", 0.0 if x <= 0 else x
        case "gelu":
            share = math.erfc(-x / math.sqrt(2)) / 2  # Φ(x), also where it is nearly 0
            return f"{read(x)} · Φ({read(x)}) = {read(x)} · {read(share)}", x * share
        case "gelu_tanh":
            slope = math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))
            return (
                f"½ · {shown} · (1 + tanh(√(2/π) · ({read(x)} + 0.044715 · {shown}³)))",
                0.5 * x * (1 + slope),
            )
