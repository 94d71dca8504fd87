"""The stage table: every step of a forward pass, in order, from the config and T alone.

It is the block plan written out: each block's steps with their sizes, the ids of the stages they
read, and what each is for. Nothing is measured here, so no tensor library is needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from tui_gpt.config import GPTConfig
from tui_gpt.errors import UnknownStage
from tui_gpt.records.block_plan import ActivationName as ActivationName
from tui_gpt.records.block_plan import Axis as Axis
from tui_gpt.records.block_plan import BlockPlan, Kind, Step, Weights, block_plan, letter_size

POSITION_AXES: frozenset[Axis] = frozenset({"T", "Tq", "Tk"})

HEAD_AXES: frozenset[Axis] = frozenset({"H", "K"})


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
    kind: Kind
    """What the step does."""
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
    window: int | None = None
    """Keys that each query of scores or pattern sees; None: every earlier one."""

    @property
    def topic(self) -> str:
        """What the step is for and where it is taught, as one line."""
        return f"{self.purpose} ({self.section})"

    @property
    def n_parameters(self) -> int:
        """Parameters counted at this stage: shared ones belong to the stage that owns them."""
        return sum(parameter.count for parameter in self.parameters if not parameter.shared)


def stage_id(name: ActivationName, layer: int | None) -> str:
    """Give the id under which a stage appears at the edges: `blocks.1.pattern`, `logits`."""
    return name if layer is None else f"blocks.{layer}.{name}"


def stage_table(
    config: GPTConfig, n_positions: int, plan: BlockPlan | None = None
) -> tuple[Stage, ...]:
    """List every stage of a forward pass over one prompt, in order.

    Args:
        config: The model's shape.
        n_positions: T, the tokens of the prompt.
        plan: What the model is made of; the config's own where none is given.
    """
    plan = block_plan(config) if plan is None else plan
    builder = _Builder(config, plan, n_positions)
    return (
        *(builder.stage(step, None) for step in plan.before),
        *(builder.stage(step, layer) for layer in range(config.n_layer) for step in plan.block),
        *(builder.stage(step, None) for step in plan.after),
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

    def __init__(self, config: GPTConfig, plan: BlockPlan, n_positions: int) -> None:
        self._config = config
        self._plan = plan
        self._n_positions = n_positions

    def stage(self, step: Step, layer: int | None) -> Stage:
        kind, operation, formula = step.kind, step.operation, step.formula
        reads = tuple(self._source(name, layer) for name in step.reads)
        if step.name == "resid_pre":
            reads = self._entering(layer)
            if layer == 0:
                kind = "sum" if len(reads) > 1 else "copy"
                operation = "token embedding plus position" if len(reads) > 1 else "token embedding"
                formula = " + ".join(reads)
            else:
                formula = f"{self._plan.output} of block {layer}"
        purpose, section = _TOPICS[step.name]
        return Stage(
            id=stage_id(step.name, layer),
            name=step.name,
            kind=kind,
            layer=layer,
            shape=tuple(self._size(axis) for axis in step.axes),
            axes=step.axes,
            operation=operation,
            formula=formula,
            purpose=purpose,
            section=section,
            reads=reads,
            parameters=tuple(
                parameter for weights in step.weights for parameter in self._owned(weights, layer)
            ),
            window=self._config.window if step.axes[-1] == "Tk" else None,
        )

    def _size(self, axis: Axis) -> int:
        return self._n_positions if axis in POSITION_AXES else letter_size(axis, self._config)

    def _source(self, name: ActivationName, layer: int | None) -> str:
        """Give the id of a stage that is read: of the same block, or what the last one leaves."""
        if layer is None and name == self._plan.output:
            return stage_id(name, self._config.n_layer - 1)
        return stage_id(name, layer)

    def _entering(self, layer: int | None) -> tuple[str, ...]:
        """Name what a block's stream is: the embeddings, or the previous block's output."""
        if layer:
            return (stage_id(self._plan.output, layer - 1),)
        return tuple(step.name for step in self._plan.before if step.name != "tokens")

    def _owned(self, weights: Weights, layer: int | None) -> tuple[Parameter, ...]:
        prefix = weights.name if layer is None else f"h.{layer}.{weights.name}"
        shape = tuple(letter_size(letter, self._config) for letter in weights.letters)
        weight = Parameter(f"{prefix}.weight", shape, weights.shared)
        return (weight, Parameter(f"{prefix}.bias", shape[:1])) if weights.bias else (weight,)


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
    "q_norm": ("Keeps each query's length in bounds", "Module 7.3; later than the texts"),
    "k_norm": ("Keeps each key's length in bounds", "Module 7.3; later than the texts"),
    "rot_q": ("Turns each query by where it stands", "Module 7.1; later than the texts"),
    "rot_k": ("Turns each key by where it stands", "Module 7.1; later than the texts"),
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
    "mlp_pre_linear": ("What each hidden unit would hand on", "Module 7.4; later than the texts"),
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
