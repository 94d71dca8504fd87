"""The shape of a GPT, and the shapes that have names.

A `GPTConfig` says everything that changes the mathematics and nothing else: no file, no
seed, no dropout (which only training has). The names are those of GPT-2's own config.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Literal, get_args

from tui_gpt.errors import ImpossibleShape

Norm = Literal["pre", "post"]
"""Where LayerNorm sits: before each sub-layer (GPT-2), or after each addition (2017)."""

Positions = Literal["learned", "sinusoidal"]
Activation = Literal["gelu", "gelu_tanh", "relu"]

_CHOICES = {"norm": Norm, "positions": Positions, "activation": Activation}
_LARGEST = 2**31 - 1
"""No size is larger: beyond it, counts stop fitting the file formats."""
_MOST_BLOCKS = 10_000
"""Every block has fifteen stages, and the table of them is written out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GPTConfig:
    """A decoder-only transformer, in the terms of GPT-2's config.

    Raises:
        ImpossibleShape: A size is not a positive whole number, the width does not divide
            into the heads, or a choice is not one of its names.
    """

    n_layer: int
    """Blocks."""
    n_head: int
    """Attention heads in each block."""
    n_embd: int
    """Width of the residual stream (C)."""
    n_inner: int
    """Hidden units of each feed-forward network (F); GPT-2 takes 4 · n_embd."""
    block_size: int
    """Longest prompt, in tokens."""
    vocab_size: int
    """Tokens the model knows (V)."""
    norm: Norm = "pre"
    positions: Positions = "learned"
    activation: Activation = "gelu_tanh"
    bias: bool = True
    """False drops every bias: linear layers, LayerNorm's shift, q k v included."""
    qkv_bias: bool = True
    """False drops the biases of q, k and v alone."""
    tied: bool = False
    """True: the token table is also the output head."""
    layer_norm_epsilon: float = 1e-5

    def __post_init__(self) -> None:
        for name in ("n_layer", "n_head", "n_embd", "n_inner", "block_size", "vocab_size"):
            size = getattr(self, name)
            if isinstance(size, bool) or not isinstance(size, int):
                raise ImpossibleShape(f"{name} is {size!r}; it must be a whole number")
            largest = _MOST_BLOCKS if name == "n_layer" else _LARGEST
            if not 0 < size <= largest:
                raise ImpossibleShape(f"{name} is {size}; it must be from 1 to {largest:,}")
        for name, choice in _CHOICES.items():
            if getattr(self, name) not in get_args(choice):
                raise ImpossibleShape(
                    f"{name} is {getattr(self, name)!r}; it must be one of "
                    + ", ".join(get_args(choice))
                )
        for name in ("bias", "qkv_bias", "tied"):
            if not isinstance(getattr(self, name), bool):
                raise ImpossibleShape(f"{name} is {getattr(self, name)!r}; it is true or false")
        epsilon = self.layer_norm_epsilon
        if isinstance(epsilon, bool) or not isinstance(epsilon, int | float):
            raise ImpossibleShape(f"layer_norm_epsilon is {epsilon!r}; it must be a number")
        if not 0 <= epsilon <= 1:
            raise ImpossibleShape(f"layer_norm_epsilon is {epsilon!r}; it must be from 0 to 1")
        if self.n_embd % self.n_head:
            raise ImpossibleShape(
                f"n_embd {self.n_embd} does not divide into n_head {self.n_head}; "
                f"take a multiple of {self.n_head}"
            )
        if self.positions == "sinusoidal" and self.n_embd % 2:
            raise ImpossibleShape(
                f"n_embd {self.n_embd} is odd; sinusoidal positions come in pairs of features"
            )
        if not self.bias:
            object.__setattr__(self, "qkv_bias", False)

    @property
    def head_dim(self) -> int:
        """Width of one head (D)."""
        return self.n_embd // self.n_head

    def to_dict(self) -> dict[str, object]:
        """Give the fields under the names that every JSON of this program uses."""
        return asdict(self)

    @classmethod
    def from_dict(cls, raw: Mapping[str, object]) -> GPTConfig:
        """Build a config from JSON; keys that are not fields are left to the caller.

        Args:
            raw: The fields by name. `n_inner` missing or null means 4 · n_embd.

        Raises:
            ImpossibleShape: A size is missing, or a value makes no sense.
        """
        known = {field.name: raw[field.name] for field in fields(cls) if field.name in raw}
        if known.get("n_inner") is None and isinstance(known.get("n_embd"), int):
            known["n_inner"] = 4 * known["n_embd"]  # type: ignore[operator]  # isinstance above
        for name in ("n_layer", "n_head", "n_embd", "n_inner", "block_size", "vocab_size"):
            if name not in known:
                raise ImpossibleShape(f"the config has no {name}")
        return cls(**known)  # type: ignore[arg-type]  # __post_init__ checks every type


_GPT2 = GPTConfig(
    n_layer=12,
    n_head=12,
    n_embd=768,
    n_inner=3072,
    block_size=1024,
    vocab_size=50257,
    tied=True,
)

PRESETS: Mapping[str, GPTConfig] = {
    "gpt2": _GPT2,
    "gpt2-medium": replace(_GPT2, n_layer=24, n_head=16, n_embd=1024, n_inner=4096),
    "gpt2-large": replace(_GPT2, n_layer=36, n_head=20, n_embd=1280, n_inner=5120),
    "gpt2-xl": replace(_GPT2, n_layer=48, n_head=25, n_embd=1600, n_inner=6400),
    "gpt2-chapter": replace(_GPT2, tied=False),
    "gpt2-book": replace(_GPT2, tied=False, qkv_bias=False),
    "transformer-2017": GPTConfig(
        n_layer=6,
        n_head=8,
        n_embd=512,
        n_inner=2048,
        block_size=512,
        vocab_size=37000,
        norm="post",
        positions="sinusoidal",
        activation="relu",
        tied=True,
    ),
}
"""Shapes by name. They are shapes only: no weights belong to them."""
