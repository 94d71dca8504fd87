"""What a model is made of, said once: its steps, what each reads, owns and records.

The plan is one frozen value that follows from the config alone. Stage table, budget, memory,
explanations, identities, the stage list and the texts walk it; none of them asks the config
where a norm sits or what a position is. `model/gpt.py` computes the same by itself, and a test
holds the two together.

    pre-norm    resid_pre, attention(ln_1 …), resid_mid, feed-forward(ln_2 …), resid_post
    post-norm   resid_pre, attention(…), resid_mid, ln_1, feed-forward(…), resid_post, ln_2
    parallel    resid_pre, attention(ln_1 …), feed-forward(ln_2 …), resid_post

To add a stage: one `Step` in the function below that lists its sub-layer.

Letters: T position (Tq, Tk), H query head, K key/value head, D head_dim, C n_embd, F n_inner,
V vocabulary. Names of activations are TransformerLens's, names of parameters GPT-2's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod
from typing import Literal

from tui_gpt.config import GPTConfig

ActivationName = Literal[
    "tokens", "embed", "pos_embed", "resid_pre", "ln_1", "q", "k", "v", "q_norm", "k_norm",
    "rot_q", "rot_k", "attn_scores", "pattern", "z", "attn_out", "resid_mid", "ln_2", "mlp_pre",
    "mlp_pre_linear", "mlp_post", "mlp_out", "resid_post", "ln_final", "logits", "probs",
]  # fmt: skip

Axis = Literal["T", "Tq", "Tk", "H", "K", "D", "C", "F", "V"]

Kind = Literal[
    "ids", "lookup", "sinusoid", "copy", "sum", "layer_norm", "rms_norm", "linear", "rotation",
    "scores", "softmax", "mix", "activation", "gate",
]  # fmt: skip
"""What a step does; an explanation and a rounding bound belong to each."""


@dataclass(frozen=True, slots=True)
class Weights:
    """A weight that a step owns, with its bias if it has one."""

    name: str
    """As in the state dict, inside a block without `h.i.`."""
    letters: tuple[str, ...]
    """Of the weight's axes, outputs first; a product is written `H·D`."""
    bias: bool = False
    shared: bool = False
    """Another step counts it: the head of a tied model."""


@dataclass(frozen=True, slots=True)
class Step:
    """One stage, as every block or every model of the plan has it."""

    name: ActivationName
    kind: Kind
    axes: tuple[Axis, ...]
    reads: tuple[ActivationName, ...]
    """Of the same block, or outside the blocks; a first step of the blocks and of the end reads
    the stream that comes in."""
    operation: str
    """In words."""
    formula: str
    weights: tuple[Weights, ...] = ()
    part: str = ""
    """The part of the budget that its weights belong to."""


@dataclass(frozen=True, slots=True)
class SubLayer:
    """A branch of the stream: what is read, worked on, and added again."""

    name: Literal["attention", "feed-forward"]
    steps: tuple[Step, ...]

    @property
    def output(self) -> ActivationName:
        """What it writes."""
        return self.steps[-1].name


@dataclass(frozen=True, slots=True)
class BlockPlan:
    """The steps of a model: before the blocks, in each block, and after the blocks."""

    before: tuple[Step, ...]
    block: tuple[Step, ...]
    after: tuple[Step, ...]
    sub_layers: tuple[SubLayer, ...]
    points: tuple[tuple[ActivationName, ActivationName], ...]
    """Where a block leaves a stream that later steps read: (stage, what was added last)."""

    @property
    def output(self) -> ActivationName:
        """The stage that a block hands to the next one."""
        return self.block[-1].name

    @property
    def stream_is_normed(self) -> bool:
        """True where norms stand on the stream itself: post-norm."""
        return any(step.kind in NORMS and not self.in_branch(step.name) for step in self.block)

    def in_branch(self, name: ActivationName) -> bool:
        """True for the steps of a sub-layer."""
        return any(step.name == name for part in self.sub_layers for step in part.steps)

    def opens_branch(self, name: ActivationName) -> bool:
        """True for the first step of a sub-layer."""
        return any(sub_layer.steps[0].name == name for sub_layer in self.sub_layers)


NORMS: frozenset[Kind] = frozenset({"layer_norm", "rms_norm"})

PARTS = (
    "token embedding", "positions", "norms", "q k v", "attention out", "FFN expand",
    "FFN contract", "final norm", "head",
)  # fmt: skip
"""Parts of the budget, in its order; every model has all of them, some of them empty."""


def block_plan(config: GPTConfig) -> BlockPlan:
    """Say what a model of this shape is made of."""
    pre = config.norm == "pre"
    entering: Step = _stream("resid_pre", "copy", (), "the previous block's output", "")
    attention = SubLayer("attention", tuple(_attention(config, "ln_1" if pre else "resid_pre")))
    reader: ActivationName = "ln_2" if pre else "ln_1"
    feed_forward = SubLayer("feed-forward", tuple(_feed_forward(config, reader)))
    if config.parallel:
        attention = _behind(_norm("ln_1", "resid_pre", config), attention)
        feed_forward = _behind(_norm("ln_2", "resid_pre", config), feed_forward)
        leaving = _stream(
            "resid_post", "sum", ("resid_pre", "attn_out", "mlp_out"),
            "both outputs are added", "resid_pre + attn_out + mlp_out",
        )  # fmt: skip
        block = (entering, *attention.steps, *feed_forward.steps, leaving)
        points: tuple[tuple[ActivationName, ActivationName], ...]
        points = (("resid_post", "mlp_out"),)
        return _around(config, block, (attention, feed_forward), points)
    middle = _stream(
        "resid_mid", "sum", ("resid_pre", "attn_out"),
        "the attention output is added", "resid_pre + attn_out",
    )  # fmt: skip
    normed: ActivationName = "resid_mid" if pre else "ln_1"
    leaving = _stream(
        "resid_post", "sum", (normed, "mlp_out"),
        "the feed-forward output is added", f"{normed} + mlp_out",
    )  # fmt: skip
    ln_1 = _norm("ln_1", "resid_pre" if pre else "resid_mid", config)
    ln_2 = _norm("ln_2", "resid_mid" if pre else "resid_post", config)
    if pre:
        attention, feed_forward = _behind(ln_1, attention), _behind(ln_2, feed_forward)
        block = (entering, *attention.steps, middle, *feed_forward.steps, leaving)
        points = (("resid_mid", "attn_out"), ("resid_post", "mlp_out"))
    else:
        block = (entering, *attention.steps, middle, ln_1, *feed_forward.steps, leaving, ln_2)
        points = (("ln_1", "attn_out"), ("ln_2", "mlp_out"))
    return _around(config, block, (attention, feed_forward), points)


def letter_size(letter: str, config: GPTConfig) -> int:
    """Give the size behind a letter, or a product of letters."""
    sizes = {
        "H": config.n_head,
        "K": config.n_key_head,
        "D": config.head_dim,
        "C": config.n_embd,
        "F": config.n_inner,
        "V": config.vocab_size,
        "block_size": config.block_size,
    }
    return prod(sizes[part] for part in letter.split("·"))


def _around(
    config: GPTConfig,
    block: tuple[Step, ...],
    sub_layers: tuple[SubLayer, ...],
    points: tuple[tuple[ActivationName, ActivationName], ...],
) -> BlockPlan:
    """Put what every model begins and ends with around its blocks."""
    output = block[-1].name
    before = [
        Step("tokens", "ids", ("T",), (), "the tokenizer's ids", "text → ids"),
        Step(
            "embed", "lookup", ("T", "C"), ("tokens",), "row lookup in the token table",
            "wte[token]", weights=(Weights("wte", ("V", "C")),), part="token embedding",
        ),
    ]  # fmt: skip
    if config.positions == "learned":
        before.append(
            Step(
                "pos_embed", "lookup", ("T", "C"), (), "row lookup in the position table",
                "wpe[position]", (Weights("wpe", ("block_size", "C")),), "positions",
            )
        )  # fmt: skip
    elif config.positions == "sinusoidal":
        before.append(
            Step(
                "pos_embed", "sinusoid", ("T", "C"), (), "sin(pos·ω) at 2i, cos(pos·ω) at 2i + 1",
                "ω = 10000^(−2i/C)", part="positions",
            )
        )  # fmt: skip
    source, scored = output, f"{output} of block {config.n_layer}"
    after = []
    if config.norm == "pre":
        after.append(replace(_norm("ln_final", output, config), part="final norm"))
        after[0] = replace(
            after[0], weights=tuple(replace(it, name="ln_f") for it in after[0].weights)
        )
        source, scored = "ln_final", "ln_final"
    name = "wte" if config.tied else "lm_head"
    after += [
        Step(
            "logits", "linear", ("T", "V"), (source,), "one score per vocabulary entry",
            f"{scored} · W_U", weights=(Weights(name, ("V", "C"), shared=config.tied),),
            part="head",
        ),
        Step(
            "probs", "softmax", ("T", "V"), ("logits",), "softmax over the vocabulary",
            "softmax(logits) over V",
        ),
    ]  # fmt: skip
    return BlockPlan(tuple(before), block, tuple(after), sub_layers, points)


def _attention(config: GPTConfig, source: ActivationName) -> Iterator[Step]:
    """List what attention does with the vectors it reads."""
    grouped = config.n_key_head != config.n_head
    plain = config.head_dim * config.n_head == config.n_embd
    keys: Axis = "K" if grouped else "H"
    wide = "C" if plain else "H·D"
    for name in _QKV:
        heads: Axis = "H" if name == "q" else keys
        letters = ("K·D" if heads == "K" else wide, "C")
        yield Step(
            name, "linear", (heads, "T", "D"), (source,), "linear map, split into heads",
            f"{source} · W_{name.upper()}" + (" + b" if config.qkv_bias else ""),
            (Weights(f"attn.{name}", letters, config.qkv_bias),), "q k v",
        )  # fmt: skip
    query, key = _QKV[0], _QKV[1]
    if config.qk_norm:
        yield _head_norm("q_norm", query, "H")
        yield _head_norm("k_norm", key, keys)
        query, key = "q_norm", "k_norm"
    if config.positions == "rotary":
        yield _rotation("rot_q", query, "H", config)
        yield _rotation("rot_k", key, keys, config)
        query, key = "rot_q", "rot_k"
    unseen = "the future masked" if config.window is None else f"a window of {config.window} keys"
    yield Step(
        "attn_scores", "scores", ("H", "Tq", "Tk"), (query, key),
        f"query · key, scaled; {unseen}", f"{query} · {key}ᵀ / √{config.head_dim}",
    )  # fmt: skip
    yield Step(
        "pattern", "softmax", ("H", "Tq", "Tk"), ("attn_scores",), "softmax over the keys",
        "softmax(attn_scores) over Tk",
    )  # fmt: skip
    yield Step(
        "z", "mix", ("H", "T", "D"), ("pattern", "v"), "mix of the values, head by head",
        "pattern · v",
    )  # fmt: skip
    yield _linear(
        "attn_out", "z", "W_O", "b_O", "heads joined, then a linear map",
        Weights("attn.c_proj", ("C", wide), config.bias), "attention out",
    )  # fmt: skip


def _feed_forward(config: GPTConfig, source: ActivationName) -> Iterator[Step]:
    """List what the feed-forward network does with the vectors it reads."""
    words, formula = _ACTIVATIONS[config.activation]
    expand = Weights("mlp.c_fc", ("F", "C"), config.bias)
    contract = Weights("mlp.c_proj", ("C", "F"), config.bias)
    if config.gated:
        yield _linear(
            "mlp_pre", source, "W_gate", "b_gate", "linear map to the gate of each hidden unit",
            expand, "FFN expand",
        )  # fmt: skip
        yield _linear(
            "mlp_pre_linear", source, "W_up", "b_up", "linear map to the hidden units",
            replace(expand, name="mlp.c_up"), "FFN expand",
        )  # fmt: skip
        name = words.partition(" ")[0]
        yield Step(
            "mlp_post", "gate", ("T", "F"), ("mlp_pre", "mlp_pre_linear"),
            f"{name} of the gate, times the hidden unit", f"{formula} · u, u = mlp_pre_linear",
        )  # fmt: skip
    else:
        yield _linear(
            "mlp_pre", source, "W_1", "b_1", "linear map to the hidden units", expand,
            "FFN expand",
        )  # fmt: skip
        yield Step("mlp_post", "activation", ("T", "F"), ("mlp_pre",), words, formula)
    yield _linear(
        "mlp_out", "mlp_post", "W_down" if config.gated else "W_2",
        "b_down" if config.gated else "b_2", "linear map back to the stream's width", contract,
        "FFN contract",
    )  # fmt: skip


def _norm(name: ActivationName, source: ActivationName, config: GPTConfig) -> Step:
    """Describe a norm of the stream's vectors."""
    if config.norm_type == "rmsnorm":
        kind: Kind = "rms_norm"
        operation, formula = "RMSNorm over the features", f"γ · {source} / √(mean({source}²) + ε)"
        bias = False
    else:
        kind, bias = "layer_norm", config.bias
        operation = "LayerNorm over the features"
        formula = f"γ · ({source} − μ) / √(σ² + ε)" + (" + β" if bias else "")
    weights = (Weights(name, ("C",), bias),)
    return Step(name, kind, ("T", "C"), (source,), operation, formula, weights, "norms")


def _head_norm(name: ActivationName, source: ActivationName, heads: Axis) -> Step:
    formula = f"γ · {source} / √(mean({source}²) + ε)"
    return Step(
        name, "rms_norm", (heads, "T", "D"), (source,), "RMSNorm over each head's features",
        formula, (Weights(f"attn.{name}", ("D",)),), "norms",
    )  # fmt: skip


def _rotation(name: ActivationName, source: ActivationName, heads: Axis, config: GPTConfig) -> Step:
    size = config.rotary_dim
    part = "" if size == config.head_dim else f", of the first {size}"
    return Step(
        name, "rotation", (heads, "T", "D"), (source,),
        f"pairs of features turned by position{part}",
        f"{source} turned by pos·ω, ω = θ^(−2i/{size})",
    )  # fmt: skip


def _linear(
    name: ActivationName, source: ActivationName, weight: str, bias: str, operation: str,
    weights: Weights, part: str,
) -> Step:  # fmt: skip
    axes: tuple[Axis, ...] = ("T", "F") if weights.letters[0] == "F" else ("T", "C")
    formula = f"{source} · {weight}" + (f" + {bias}" if weights.bias else "")
    return Step(name, "linear", axes, (source,), operation, formula, (weights,), part)


def _stream(
    name: ActivationName,
    kind: Kind,
    reads: tuple[ActivationName, ...],
    operation: str,
    formula: str,
) -> Step:
    return Step(name, kind, ("T", "C"), reads, operation, formula)


def _behind(norm: Step, sub_layer: SubLayer) -> SubLayer:
    """Let a sub-layer begin with a norm of its own."""
    return replace(sub_layer, steps=(norm, *sub_layer.steps))


_QKV: tuple[ActivationName, ...] = ("q", "k", "v")

_ACTIVATIONS: dict[str, tuple[str, str]] = {
    "gelu": ("GELU of x = mlp_pre, the exact form", "x · Φ(x)"),
    "gelu_tanh": (
        "GELU of x = mlp_pre, the tanh form",
        "½x(1 + tanh(√(2/π)(x + 0.044715x³)))",
    ),
    "relu": ("ReLU of x = mlp_pre", "max(0, x)"),
    "silu": ("SiLU of x = mlp_pre", "x / (1 + exp(−x))"),
}
