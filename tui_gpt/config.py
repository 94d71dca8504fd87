"""The shape of a GPT, and the shapes that have names.

A `GPTConfig` says everything that changes the mathematics and nothing else: no file, no
seed, no dropout (which only training has). The names are those of GPT-2's own config; what
later families added stands after it, and a model without it has GPT-2's meaning.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Literal, get_args

from tui_gpt.errors import ImpossibleShape

Norm = Literal["pre", "post"]
"""Where LayerNorm sits: before each sub-layer (GPT-2), or after each addition (2017)."""

Positions = Literal["learned", "sinusoidal", "rotary"]
Activation = Literal["gelu", "gelu_tanh", "relu", "silu"]
NormType = Literal["layernorm", "rmsnorm"]

_CHOICES = {"norm": Norm, "positions": Positions, "activation": Activation, "norm_type": NormType}
_LARGEST = 2**31 - 1
"""No size is larger: beyond it, counts stop fitting the file formats."""
_MOST_BLOCKS = 10_000
"""Every block has fifteen stages, and the table of them is written out."""


_SIZES = ("n_layer", "n_head", "n_embd", "n_inner", "block_size", "vocab_size")
_SWITCHES = ("bias", "qkv_bias", "tied", "gated", "parallel", "qk_norm")
_FAMILY_SIZES = ("n_kv_head", "head_dim", "window")


@dataclass(frozen=True, slots=True, kw_only=True)
class RopeScaling:
    """Llama 3's stretched rotation: slow features turn slower, fast ones as before.

    Wavelengths are in positions; between the two bounds both frequencies are mixed.

    Raises:
        ImpossibleShape: A number is not positive, or the bounds are not in order.
    """

    factor: float
    """How much longer the long wavelengths become."""
    low_freq_factor: float
    """Longer than original / this: stretched."""
    high_freq_factor: float
    """Shorter than original / this: left."""
    original: int
    """The context, in positions, that the model was trained with first."""

    def __post_init__(self) -> None:
        for field in fields(self):
            _check_positive(f"rope_scaling.{field.name}", getattr(self, field.name))
        if self.low_freq_factor >= self.high_freq_factor:
            raise ImpossibleShape(
                f"rope_scaling.low_freq_factor {self.low_freq_factor} must be below "
                f"high_freq_factor {self.high_freq_factor}"
            )

    def stretched(self, frequency: float) -> float:
        """Give the frequency, in radians a position, that stands in for one."""
        turns = self.original * frequency / (2 * math.pi)  # original / wavelength
        spread = self.high_freq_factor - self.low_freq_factor
        kept = min(1.0, max(0.0, (turns - self.low_freq_factor) / spread))
        return kept * frequency + (1 - kept) * frequency / self.factor


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
    """ε of every norm, whichever its type."""
    norm_type: NormType = "layernorm"
    n_kv_head: int | None = None
    """Heads of keys and values (K); None: as many as query heads."""
    own_head_dim: int | None = None
    """`head_dim` in JSON: a head's width where it is not n_embd // n_head."""
    rope_theta: float = 10000.0
    """The base of the rotary frequencies."""
    rope_scaling: RopeScaling | None = None
    rotary_fraction: float = 1.0
    """How much of each head's features is rotated, the first ones."""
    gated: bool = False
    """True: the feed-forward network multiplies its activated units by a second projection."""
    parallel: bool = False
    """True: attention and feed-forward read the same stream, and both add to it at once."""
    window: int | None = None
    """Keys that a query sees, itself among them; None: every earlier one."""
    qk_norm: bool = False
    """True: RMSNorm over each query and key head, before the rotation."""

    def __post_init__(self) -> None:
        for name in _SIZES:
            _check_size(name, getattr(self, name))
        for name, size in zip(
            _FAMILY_SIZES, (self.n_kv_head, self.own_head_dim, self.window), strict=True
        ):
            if size is not None:
                _check_size(name, size)
        for name, choice in _CHOICES.items():
            if getattr(self, name) not in get_args(choice):
                raise ImpossibleShape(
                    f"{name} is {getattr(self, name)!r}; it must be one of "
                    + ", ".join(get_args(choice))
                )
        for name in _SWITCHES:
            if not isinstance(getattr(self, name), bool):
                raise ImpossibleShape(f"{name} is {getattr(self, name)!r}; it is true or false")
        epsilon = self.layer_norm_epsilon
        if isinstance(epsilon, bool) or not isinstance(epsilon, int | float):
            raise ImpossibleShape(f"layer_norm_epsilon is {epsilon!r}; it must be a number")
        if not 0 <= epsilon <= 1:
            raise ImpossibleShape(f"layer_norm_epsilon is {epsilon!r}; it must be from 0 to 1")
        if self.own_head_dim is None and self.n_embd % self.n_head:
            raise ImpossibleShape(
                f"n_embd {self.n_embd} does not divide into n_head {self.n_head}; "
                f"take a multiple of {self.n_head}"
            )
        if self.positions == "sinusoidal" and self.n_embd % 2:
            raise ImpossibleShape(
                f"n_embd {self.n_embd} is odd; sinusoidal positions come in pairs of features"
            )
        if self.n_head % self.n_key_head:
            raise ImpossibleShape(
                f"n_head {self.n_head} does not divide into n_kv_head {self.n_key_head}; "
                "each key head serves as many query heads"
            )
        if self.parallel and self.norm == "post":
            raise ImpossibleShape("parallel is true, which goes with norm pre only")
        _check_positive("rope_theta", self.rope_theta)
        _check_positive("rotary_fraction", self.rotary_fraction)
        if self.rotary_fraction > 1:
            raise ImpossibleShape(f"rotary_fraction is {self.rotary_fraction}; it is at most 1")
        if self.positions == "rotary" and (self.rotary_dim < 2 or self.rotary_dim % 2):
            raise ImpossibleShape(
                f"{self.rotary_dim} of head_dim {self.head_dim} features would be rotated; "
                "rotation takes pairs of features"
            )
        if not self.bias and self.norm_type == "layernorm":
            object.__setattr__(self, "qkv_bias", False)  # RMSNorm families have it by itself

    @property
    def head_dim(self) -> int:
        """Width of one head (D)."""
        return self.n_embd // self.n_head if self.own_head_dim is None else self.own_head_dim

    @property
    def n_key_head(self) -> int:
        """Heads of keys and values (K)."""
        return self.n_head if self.n_kv_head is None else self.n_kv_head

    @property
    def rotary_dim(self) -> int:
        """Features of a head that are rotated (R)."""
        return int(self.head_dim * self.rotary_fraction)

    @property
    def rotary_frequencies(self) -> tuple[float, ...]:
        """Give radians a position of each pair, R / 2 of them: θ^(−2i/R), scaled if at all."""
        size = self.rotary_dim
        plain = (self.rope_theta ** (-2 * i / size) for i in range(size // 2))
        if self.rope_scaling is None:
            return tuple(plain)
        return tuple(self.rope_scaling.stretched(frequency) for frequency in plain)

    def to_dict(self) -> dict[str, object]:
        """Give the fields under the names that every JSON of this program uses.

        What only later families have is left out where it has GPT-2's meaning.
        """
        given = asdict(self)
        for field in fields(self)[_N_GPT2_FIELDS:]:
            if given[field.name] == field.default:
                del given[field.name]
        if "own_head_dim" in given:
            given["head_dim"] = given.pop("own_head_dim")
        return given

    @classmethod
    def from_dict(cls, raw: Mapping[str, object]) -> GPTConfig:
        """Build a config from JSON; keys that are not fields are left to the caller.

        Args:
            raw: The fields by name. `n_inner` missing or null means 4 · n_embd.

        Raises:
            ImpossibleShape: A size is missing, or a value makes no sense.
        """
        known = {field.name: raw[field.name] for field in fields(cls) if field.name in raw}
        if raw.get("head_dim") is not None:
            known["own_head_dim"] = raw["head_dim"]
        scaling = known.get("rope_scaling")
        if isinstance(scaling, Mapping):
            names = {field.name for field in fields(RopeScaling)}
            if set(scaling) != names:
                raise ImpossibleShape(f"rope_scaling has not just {', '.join(sorted(names))}")
            known["rope_scaling"] = RopeScaling(**scaling)
        elif scaling is not None:
            raise ImpossibleShape(f"rope_scaling is {scaling!r}; it must be an object")
        if known.get("n_inner") is None and isinstance(known.get("n_embd"), int):
            known["n_inner"] = 4 * known["n_embd"]  # type: ignore[operator]  # isinstance above
        for name in _SIZES:
            if name not in known:
                raise ImpossibleShape(f"the config has no {name}")
        return cls(**known)  # type: ignore[arg-type]  # __post_init__ checks every type


_N_GPT2_FIELDS = 13
"""The fields up to `layer_norm_epsilon`."""


def _check_size(name: str, size: object) -> None:
    if isinstance(size, bool) or not isinstance(size, int):
        raise ImpossibleShape(f"{name} is {size!r}; it must be a whole number")
    largest = _MOST_BLOCKS if name == "n_layer" else _LARGEST
    if not 0 < size <= largest:
        raise ImpossibleShape(f"{name} is {size}; it must be from 1 to {largest:,}")


def _check_positive(name: str, number: object) -> None:
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise ImpossibleShape(f"{name} is {number!r}; it must be a number")
    if not 0 < number < math.inf:
        raise ImpossibleShape(f"{name} is {number!r}; it must be above 0 and finite")


_GPT2 = GPTConfig(
    n_layer=12,
    n_head=12,
    n_embd=768,
    n_inner=3072,
    block_size=1024,
    vocab_size=50257,
    tied=True,
)

_LLAMA_2 = GPTConfig(
    n_layer=32,
    n_head=32,
    n_embd=4096,
    n_inner=11008,
    block_size=4096,
    vocab_size=32000,
    positions="rotary",
    activation="silu",
    bias=False,
    qkv_bias=False,
    norm_type="rmsnorm",
    gated=True,
)

_LLAMA_3 = replace(
    _LLAMA_2, n_kv_head=8, n_inner=14336, block_size=8192, vocab_size=128256, rope_theta=500000.0
)

_SMOLLM2 = replace(
    _LLAMA_2,
    n_layer=30,
    n_head=9,
    n_kv_head=3,
    n_embd=576,
    n_inner=1536,
    block_size=8192,
    vocab_size=49152,
    tied=True,
    rope_theta=100000.0,
)

_PYTHIA = GPTConfig(
    n_layer=6,
    n_head=8,
    n_embd=512,
    n_inner=2048,
    block_size=2048,
    vocab_size=50304,
    positions="rotary",
    activation="gelu",
    rotary_fraction=0.25,
    parallel=True,
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

LATER_SHAPES: Mapping[str, GPTConfig] = {
    "smollm2-135m": _SMOLLM2,
    "smollm2-360m": replace(_SMOLLM2, n_layer=32, n_head=15, n_kv_head=5, n_embd=960, n_inner=2560),
    "smollm2-1.7b": replace(
        _SMOLLM2,
        n_layer=24,
        n_head=32,
        n_kv_head=32,
        n_embd=2048,
        n_inner=8192,
        rope_theta=130000.0,
    ),
    "llama-2-7b": _LLAMA_2,
    "tinyllama-1.1b": replace(
        _LLAMA_2, n_layer=22, n_kv_head=4, n_embd=2048, n_inner=5632, block_size=2048
    ),
    "llama-3-8b": _LLAMA_3,
    "llama-3.2-1b": replace(
        _LLAMA_3,
        n_layer=16,
        n_embd=2048,
        n_inner=8192,
        block_size=131072,
        tied=True,
        rope_scaling=RopeScaling(
            factor=32.0, low_freq_factor=1.0, high_freq_factor=4.0, original=8192
        ),
    ),
    "mistral-7b": replace(_LLAMA_2, n_kv_head=8, n_inner=14336, block_size=32768, window=4096),
    "qwen2.5-0.5b": replace(
        _LLAMA_2,
        n_layer=24,
        n_head=14,
        n_kv_head=2,
        n_embd=896,
        n_inner=4864,
        block_size=32768,
        vocab_size=151936,
        qkv_bias=True,
        tied=True,
        rope_theta=1000000.0,
        layer_norm_epsilon=1e-6,
    ),
    "qwen3-0.6b": replace(
        _LLAMA_2,
        n_layer=28,
        n_head=16,
        n_kv_head=8,
        own_head_dim=128,
        n_embd=1024,
        n_inner=3072,
        block_size=40960,
        vocab_size=151936,
        qk_norm=True,
        tied=True,
        rope_theta=1000000.0,
        layer_norm_epsilon=1e-6,
    ),
    "pythia-70m": _PYTHIA,
    "pythia-160m": replace(_PYTHIA, n_layer=12, n_head=12, n_embd=768, n_inner=3072),
}
"""Shapes of the families that came after GPT-2."""
