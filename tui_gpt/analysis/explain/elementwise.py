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


def table_entry(cell: Cell) -> Explanation:
    """`embed`, `pos_embed`: a number out of the row of a table, the token's or the position's."""
    place, feature = cell.index
    name = cell.stage.parameters[0].name
    where = Operand("position", None, place)
    if cell.stage.reads:
        where = cell.of_stage("token", cell.stage.reads[0], place)
    row = int(known(where))
    entry = cell.of_parameter("table entry", name, row, feature)
    table = name.removesuffix(".weight")
    return cell.explained(f"{table}[{row}, {feature}]", known(entry), (where, entry))


def sinusoid(cell: Cell) -> Explanation:
    """`pos_embed`: a sine or cosine of the position."""
    place, feature = cell.index
    where = Operand("position", None, place)
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
    """`resid_pre`, `resid_mid`, `resid_post`: a sum, or the previous block's output."""
    addends = [
        cell.of_stage(stage_id.rpartition(".")[2], stage_id, *cell.index)
        for stage_id in cell.stage.reads
    ]
    values = [known(addend) for addend in addends]
    if len(addends) == 1:
        where = f"{cell.stage.reads[0]}{list(cell.index)}"
        return cell.explained(where, values[0], addends)
    numbers = " + ".join((read(values[0]), *(inner(value) for value in values[1:])))
    return cell.explained(numbers, sum(values), addends)


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


def rms_norm(cell: Cell) -> Explanation:
    """`ln_1`, `q_norm`, …: one feature of a vector, divided by the root of its mean square."""
    *place, feature = cell.index
    source = cell.stage.reads[0]
    x = cell.of_stage("x", source, *place, feature)
    vector = cell.values(source)[tuple(place)].astype(np.float64)  # (C,) or (D,)
    mean_square = float(np.square(vector).mean())
    epsilon = cell.config.layer_norm_epsilon
    scale = cell.of_parameter("gamma", cell.stage.parameters[0].name, feature)
    value = known(scale) * known(x) / math.sqrt(mean_square + epsilon)
    numbers = f"{read(known(scale))} · {inner(known(x))} / √({read(mean_square)} + {read(epsilon)})"
    derived = Operand("mean square", None, mean_square), Operand("epsilon", None, epsilon)
    return cell.explained(numbers, value, (x, *derived, scale))


def rotation(cell: Cell) -> Explanation:
    """`rot_q`, `rot_k`: a feature turned with its partner by an angle that grows with position."""
    head, place, feature = cell.index
    source, config = cell.stage.reads[0], cell.config
    half = config.rotary_dim // 2
    x = cell.of_stage("x", source, head, place, feature)
    if feature >= config.rotary_dim:
        return cell.explained(f"{read(known(x))}, which is not rotated", known(x), (x,))
    partner = feature + half if feature < half else feature - half
    y = cell.of_stage("partner", source, head, place, partner)
    frequency = config.rotary_frequencies[feature % half]
    angle = place * frequency
    cosine, sine = math.cos(angle), math.sin(angle)
    sign = "−" if feature < half else "+"
    turned = -known(y) * sine if feature < half else known(y) * sine
    numbers = (
        f"{read(known(x))} · cos({place} · {read(frequency)}) {sign} {inner(known(y))} · "
        f"sin({place} · {read(frequency)}) = {read(known(x))} · {inner(cosine)} {sign} "
        f"{inner(known(y))} · {inner(sine)}"
    )
    derived = (
        Operand("position", None, place),
        Operand("frequency", None, frequency),
        Operand("cosine", None, cosine),
        Operand("sine", None, sine),
    )
    return cell.explained(numbers, known(x) * cosine + turned, (x, y, *derived))


def gate(cell: Cell) -> Explanation:
    """`mlp_post` of a gated network: the activated gate times the hidden unit."""
    x, unit = (
        cell.of_stage(role, source, *cell.index)
        for role, source in zip(("x", "u"), cell.stage.reads, strict=True)
    )
    opened = activated(cell.config.activation, known(x))
    written, times = _with_numbers(cell.config.activation, known(x)), inner(known(unit))
    numbers = f"{written} · {times} = {read(opened)} · {times}"
    return cell.explained(numbers, opened * known(unit), (x, unit))


def activation(cell: Cell) -> Explanation:
    """`mlp_post`: the nonlinearity, applied to one hidden unit."""
    x = cell.of_stage("x", cell.stage.reads[0], *cell.index)
    numbers = _with_numbers(cell.config.activation, known(x))
    return cell.explained(numbers, activated(cell.config.activation, known(x)), (x,))


def activated(activation: Activation, x: float) -> float:
    """Apply an activation to one number, in float64."""
    match activation:
        case "relu":
            return 0.0 if x <= 0 else x
        case "gelu":
            return x * _gelu_share(x)
        case "gelu_tanh":
            return 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
        case "silu":
            return x * _sigmoid(x)


def _with_numbers(activation: Activation, x: float) -> str:
    """Write the formula of an activation with the number in it."""
    shown = inner(x)
    match activation:
        case "relu":
            return f"max(0, {read(x)})"
        case "gelu":
            return f"{read(x)} · Φ({read(x)}) = {read(x)} · {read(_gelu_share(x))}"
        case "gelu_tanh":
            return f"½ · {shown} · (1 + tanh(√(2/π) · ({read(x)} + 0.044715 · {shown}³)))"
        case "silu":
            return f"{read(x)} / (1 + exp(−{shown})) = {read(x)} · {read(_sigmoid(x))}"


def _gelu_share(x: float) -> float:
    """Give Φ(x), also where it is nearly 0."""
    return math.erfc(-x / math.sqrt(2)) / 2


def _sigmoid(x: float) -> float:
    """Give 1 / (1 + exp(−x)); the power is at most 1, so that nothing overflows."""
    power = math.exp(-abs(x))
    return power / (1 + power) if x < 0 else 1 / (1 + power)
