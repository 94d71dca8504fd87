"""The stage table: every step of a forward pass, in order, from the config and T alone.

What a stage is called, which shape it has, which stages it reads, which parameters it owns
and what it is for. Nothing is measured here, so no tensor library is needed.

Axes: T position (Tq and Tk when both occur), H head, D head_dim, C n_embd, F n_inner,
V vocabulary. Names of activations are TransformerLens's, names of parameters GPT-2's.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Literal

from tui_gpt.config import Activation, GPTConfig
from tui_gpt.errors import UnknownStage

ActivationName = Literal[
    "tokens",
    "embed",
    "pos_embed",
    "resid_pre",
    "ln_1",
    "q",
    "k",
    "v",
    "q_norm",
    "k_norm",
    "rot_q",
    "rot_k",
    "attn_scores",
    "pattern",
    "z",
    "attn_out",
    "resid_mid",
    "ln_2",
    "mlp_pre",
    "mlp_pre_linear",
    "mlp_post",
    "mlp_out",
    "resid_post",
    "ln_final",
    "logits",
    "probs",
]

Axis = Literal["T", "Tq", "Tk", "H", "D", "C", "F", "V"]

POSITION_AXES: frozenset[Axis] = frozenset({"T", "Tq", "Tk"})

PRE_NORM_BLOCK: tuple[ActivationName, ...] = (
    "resid_pre", "ln_1", "q", "k", "v", "attn_scores", "pattern", "z", "attn_out", "resid_mid",
    "ln_2", "mlp_pre", "mlp_post", "mlp_out", "resid_post",
)  # fmt: skip
POST_NORM_BLOCK: tuple[ActivationName, ...] = (
    "resid_pre", "q", "k", "v", "attn_scores", "pattern", "z", "attn_out", "resid_mid", "ln_1",
    "mlp_pre", "mlp_post", "mlp_out", "resid_post", "ln_2",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Parameter:
    """One weight or bias of the model, as a stage uses it."""

    name: str
    """As in the model's state dict, for example `h.0.attn.q.weight`."""
    shape: tuple[int, ...]
    """A weight matrix is (outputs, inputs), a table (rows, n_embd)."""
    shared: bool = False
    """True where another stage already counts this tensor: the head of a tied model."""

    @property
    def count(self) -> int:
        """Numbers in the tensor, shared or not."""
        return prod(self.shape)


@dataclass(frozen=True, slots=True)
class Stage:
    """One step of the forward pass."""

    id: str
    """`embed`, `blocks.0.pattern`, …: unique in a model, the same in every output."""
    name: ActivationName
    layer: int | None
    """The block, counted from 0; None outside the blocks."""
    shape: tuple[int, ...]
    axes: tuple[Axis, ...]
    """One letter an axis, in the order of `shape`."""
    operation: str
    """In words."""
    formula: str
    purpose: str
    """One line: what this step is for."""
    section: str
    """Where the course, the chapter and the blog teach it."""
    reads: tuple[str, ...]
    """Ids of the stages whose values this step is computed from."""
    parameters: tuple[Parameter, ...]

    @property
    def topic(self) -> str:
        """What the step is for and where it is taught, as one line."""
        return f"{self.purpose} ({self.section})"

    @property
    def n_parameters(self) -> int:
        """Parameters counted at this stage: shared ones belong to the stage that owns them."""
        return sum(parameter.count for parameter in self.parameters if not parameter.shared)


def block_names(config: GPTConfig) -> tuple[ActivationName, ...]:
    """Name the fifteen stages of one block, in the order they are computed."""
    return PRE_NORM_BLOCK if config.norm == "pre" else POST_NORM_BLOCK


def stage_id(name: ActivationName, layer: int | None) -> str:
    """Give the id under which a stage appears at the edges: `blocks.1.pattern`, `logits`."""
    return name if layer is None else f"blocks.{layer}.{name}"


def stage_table(config: GPTConfig, n_positions: int) -> tuple[Stage, ...]:
    """List every stage of a forward pass over one prompt, in order.

    Args:
        config: The model's shape.
        n_positions: T, the tokens of the prompt.
    """
    builder = _Builder(config, n_positions)
    head: tuple[ActivationName, ...] = ("tokens", "embed", "pos_embed")
    tail: tuple[ActivationName, ...] = ("logits", "probs")
    if config.norm == "pre":
        tail = ("ln_final", *tail)
    return (
        *(builder.stage(name, None) for name in head),
        *(
            builder.stage(name, layer)
            for layer in range(config.n_layer)
            for name in block_names(config)
        ),
        *(builder.stage(name, None) for name in tail),
    )


def count_parameters(config: GPTConfig) -> int:
    """Count the model's parameters, a tied head once."""
    return sum(stage.n_parameters for stage in stage_table(config, 1))


def find_stage(stages: tuple[Stage, ...], wanted: str) -> Stage:
    """Look a stage up by its id.

    Raises:
        UnknownStage: The message lists what there is.
    """
    for stage in stages:
        if stage.id == wanted:
            return stage
    blocks = 1 + max((stage.layer for stage in stages if stage.layer is not None), default=-1)
    outside = [stage.id for stage in stages if stage.layer is None]
    inside = [stage.name for stage in stages if stage.layer == 0]
    raise UnknownStage(
        f"no stage {wanted!r}; there are {', '.join(outside)} and, for i from 0 to {blocks - 1}, "
        f"blocks.i. with {', '.join(inside)}"
    )


class _Builder:
    """Writes one stage after another for a fixed config and T."""

    def __init__(self, config: GPTConfig, n_positions: int) -> None:
        self._config = config
        self._sizes: dict[Axis, int] = {
            "T": n_positions,
            "Tq": n_positions,
            "Tk": n_positions,
            "H": config.n_head,
            "D": config.head_dim,
            "C": config.n_embd,
            "F": config.n_inner,
            "V": config.vocab_size,
        }

    def stage(self, name: ActivationName, layer: int | None) -> Stage:
        operation, formula = self._operation(name, layer)
        purpose, section = _TOPICS[name]
        axes = _AXES[name]
        return Stage(
            id=stage_id(name, layer),
            name=name,
            layer=layer,
            shape=tuple(self._sizes[axis] for axis in axes),
            axes=axes,
            operation=operation,
            formula=formula,
            purpose=purpose,
            section=section,
            reads=self._reads(name, layer),
            parameters=self._parameters(name, layer),
        )

    def _operation(self, name: ActivationName, layer: int | None) -> tuple[str, str]:
        """Say what the stage computes, in words and as a formula."""
        config = self._config
        pre = config.norm == "pre"
        if name == "pos_embed" and config.positions == "sinusoidal":
            return (
                "sin(pos·ω) at 2i, cos(pos·ω) at 2i + 1",
                "ω = 10000^(−2i/C)",
            )
        if name == "resid_pre":
            if layer == 0:
                return "token embedding plus position", "embed + pos_embed"
            previous = "resid_post" if pre else "ln_2"
            return "the previous block's output", f"{previous} of block {layer}"
        if name in ("q", "k", "v"):
            source = "ln_1" if pre else "resid_pre"
            bias = " + b" if config.qkv_bias else ""
            return "linear map, split into heads", f"{source} · W_{name.upper()}{bias}"
        if name in ("attn_out", "mlp_pre", "mlp_out"):
            source, weight, words = {
                "attn_out": ("z", "W_O", "heads joined, then a linear map"),
                "mlp_pre": ("ln_2" if pre else "ln_1", "W_1", "linear map to the hidden units"),
                "mlp_out": ("mlp_post", "W_2", "linear map back to the stream's width"),
            }[name]
            suffix = {"attn_out": "b_O", "mlp_pre": "b_1", "mlp_out": "b_2"}[name]
            return words, f"{source} · {weight}" + (f" + {suffix}" if config.bias else "")
        if name in ("ln_1", "ln_2", "ln_final"):
            source = self._reads(name, layer)[0].rpartition(".")[2]
            shift = " + β" if config.bias else ""
            return "LayerNorm over the features", f"γ · ({source} − μ) / √(σ² + ε){shift}"
        if name == "mlp_post":
            return _ACTIVATIONS[config.activation]
        if name == "attn_scores":
            return (
                "query · key, scaled; the future masked",
                f"q · kᵀ / √{config.head_dim}",
            )
        if name == "resid_post" and not pre:
            return "the feed-forward output is added", "ln_1 + mlp_out"
        if name == "logits":
            source = "ln_final" if pre else f"ln_2 of block {config.n_layer}"
            return "one score per vocabulary entry", f"{source} · W_U"
        return _PLAIN_OPERATIONS[name]

    def _reads(self, name: ActivationName, layer: int | None) -> tuple[str, ...]:
        """Name the stages this one is computed from."""
        config = self._config
        pre = config.norm == "pre"
        last = config.n_layer - 1
        output: ActivationName = "resid_post" if pre else "ln_2"
        if name in ("tokens", "pos_embed"):
            return ()
        if name == "embed":
            return ("tokens",)
        if name == "resid_pre":
            return (stage_id(output, layer - 1),) if layer else ("embed", "pos_embed")
        if name == "ln_final":
            return (stage_id("resid_post", last),)
        if name == "logits":
            return ("ln_final",) if pre else (stage_id("ln_2", last),)
        if name == "probs":
            return ("logits",)
        inside = _READS_PRE if pre else _READS_POST
        return tuple(stage_id(source, layer) for source in inside[name])

    def _parameters(self, name: ActivationName, layer: int | None) -> tuple[Parameter, ...]:
        """List the parameters this stage owns, or uses where they are shared."""
        config = self._config
        width, hidden = config.n_embd, config.n_inner
        block = f"h.{layer}"
        if name == "embed":
            return (Parameter("wte.weight", (config.vocab_size, width)),)
        if name == "pos_embed":
            if config.positions == "sinusoidal":
                return ()
            return (Parameter("wpe.weight", (config.block_size, width)),)
        if name == "logits":
            shape = (config.vocab_size, width)
            if config.tied:
                return (Parameter("wte.weight", shape, shared=True),)
            return (Parameter("lm_head.weight", shape),)
        if name in ("ln_1", "ln_2", "ln_final"):
            prefix = "ln_f" if name == "ln_final" else f"{block}.{name}"
            return _with_bias(prefix, (width,), config.bias)
        if name in ("q", "k", "v"):
            return _with_bias(f"{block}.attn.{name}", (width, width), config.qkv_bias)
        if name == "attn_out":
            return _with_bias(f"{block}.attn.c_proj", (width, width), config.bias)
        if name == "mlp_pre":
            return _with_bias(f"{block}.mlp.c_fc", (hidden, width), config.bias)
        if name == "mlp_out":
            return _with_bias(f"{block}.mlp.c_proj", (width, hidden), config.bias)
        return ()


def _with_bias(prefix: str, shape: tuple[int, ...], bias: bool) -> tuple[Parameter, ...]:
    weight = Parameter(f"{prefix}.weight", shape)
    return (weight, Parameter(f"{prefix}.bias", shape[:1])) if bias else (weight,)


_AXES: dict[ActivationName, tuple[Axis, ...]] = {
    "tokens": ("T",),
    "embed": ("T", "C"),
    "pos_embed": ("T", "C"),
    "resid_pre": ("T", "C"),
    "ln_1": ("T", "C"),
    "q": ("H", "T", "D"),
    "k": ("H", "T", "D"),
    "v": ("H", "T", "D"),
    "attn_scores": ("H", "Tq", "Tk"),
    "pattern": ("H", "Tq", "Tk"),
    "z": ("H", "T", "D"),
    "attn_out": ("T", "C"),
    "resid_mid": ("T", "C"),
    "ln_2": ("T", "C"),
    "mlp_pre": ("T", "F"),
    "mlp_post": ("T", "F"),
    "mlp_out": ("T", "C"),
    "resid_post": ("T", "C"),
    "ln_final": ("T", "C"),
    "logits": ("T", "V"),
    "probs": ("T", "V"),
}

_ACTIVATIONS: dict[Activation, tuple[str, str]] = {
    "gelu": ("GELU of x = mlp_pre, the exact form", "x · Φ(x)"),
    "gelu_tanh": (
        "GELU of x = mlp_pre, the tanh form",
        "½x(1 + tanh(√(2/π)(x + 0.044715x³)))",
    ),
    "relu": ("ReLU of x = mlp_pre", "max(0, x)"),
}

_PLAIN_OPERATIONS: dict[ActivationName, tuple[str, str]] = {
    "tokens": ("the tokenizer's ids", "text → ids"),
    "embed": ("row lookup in the token table", "wte[token]"),
    "pos_embed": ("row lookup in the position table", "wpe[position]"),
    "pattern": ("softmax over the keys", "softmax(attn_scores) over Tk"),
    "z": ("mix of the values, head by head", "pattern · v"),
    "resid_mid": ("the attention output is added", "resid_pre + attn_out"),
    "resid_post": ("the feed-forward output is added", "resid_mid + mlp_out"),
    "probs": ("softmax over the vocabulary", "softmax(logits) over V"),
}

_READS_PRE: dict[ActivationName, tuple[ActivationName, ...]] = {
    "ln_1": ("resid_pre",),
    "q": ("ln_1",),
    "k": ("ln_1",),
    "v": ("ln_1",),
    "attn_scores": ("q", "k"),
    "pattern": ("attn_scores",),
    "z": ("pattern", "v"),
    "attn_out": ("z",),
    "resid_mid": ("resid_pre", "attn_out"),
    "ln_2": ("resid_mid",),
    "mlp_pre": ("ln_2",),
    "mlp_post": ("mlp_pre",),
    "mlp_out": ("mlp_post",),
    "resid_post": ("resid_mid", "mlp_out"),
}

_READS_POST: dict[ActivationName, tuple[ActivationName, ...]] = {
    **_READS_PRE,
    "q": ("resid_pre",),
    "k": ("resid_pre",),
    "v": ("resid_pre",),
    "ln_1": ("resid_mid",),
    "mlp_pre": ("ln_1",),
    "resid_post": ("ln_1", "mlp_out"),
    "ln_2": ("resid_post",),
}

_TOPICS: dict[ActivationName, tuple[str, str]] = {
    "tokens": ("The text as numbers: one id for each piece", "Module 7.6, step 1"),
    "embed": ("Each id becomes a vector, wherever it stands", "Module 7.6, step 2"),
    "pos_embed": ("Lets attention tell first from last", "Module 7.1"),
    "resid_pre": (
        "What every sub-layer reads and adds to",
        "Module 7.2; chapter 4, residuals",
    ),
    "ln_1": (
        "Brings each token to mean 0, variance 1",
        "Module 7.3; chapter 4, layer norm; blog 02",
    ),
    "q": ("What each position is looking for", "Module 6; chapter 3"),
    "k": ("What each position offers to be found by", "Module 6; chapter 3"),
    "v": ("What each position hands over when it is attended to", "Module 6; chapter 3"),
    "attn_scores": ("How well each query fits each earlier key", "Module 6; chapter 3"),
    "pattern": (
        "Where each position reads from: every row adds up to 1",
        "Module 6; chapter 3",
    ),
    "z": ("The values each head gathered", "Module 7.4; chapter 3"),
    "attn_out": ("What attention writes into the stream", "Module 7.2; chapter 4, one block"),
    "resid_mid": (
        "The stream after attention, added to",
        "Module 7.2; chapter 4, residuals; blog 05",
    ),
    "ln_2": ("The same normalisation, once more", "Module 7.3; chapter 4, layer norm; blog 02"),
    "mlp_pre": (
        "Spreads each token over hidden units",
        "Module 7.4; chapter 4, FFN; blog 04",
    ),
    "mlp_post": ("Which hidden units fire for this token", "Module 7.4; chapter 4, GELU; blog 03"),
    "mlp_out": (
        "What hidden units write to the stream",
        "Module 7.4; chapter 4, FFN; blog 04",
    ),
    "resid_post": ("The stream after both additions", "Module 7.2; chapter 4, one block; blog 05"),
    "ln_final": (
        "One last normalisation before the scores",
        "Module 7.3; chapter 4, the whole model",
    ),
    "logits": ("How strongly each token is proposed as the next", "Module 7.5; chapter 4; blog 07"),
    "probs": ("The logits as probabilities of the next token", "Module 7.5; blog 07"),
}
