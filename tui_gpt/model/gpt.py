"""The transformer: ids in, logits out, every step on the way offered to a tap.

The whole model, and the only place where transformer mathematics stands. A tap sees each
activation once, in order, under its name and layer, and what it returns is what the pass
goes on with: recording returns it unchanged, ablating and patching return something else.
There is no dropout, so the same ids always give the same numbers.

Axes: B batch, T position (Tq queries, Tk keys), H query head, K key/value head, D head_dim,
R rotated features of a head, C n_embd, F n_inner, V vocabulary. Sources: Vaswani et al. 2017
(arXiv:1706.03762), Ba et al. 2016 (arXiv:1607.06450), Radford et al. 2019 (GPT-2); for what
came later: RMSNorm (arXiv:1910.07467), rotary positions (arXiv:2104.09864), gated
feed-forward (arXiv:2002.05202), grouped heads (arXiv:2305.13245).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional

from tui_gpt.config import GPTConfig
from tui_gpt.records.stages import ActivationName

Tap: TypeAlias = Callable[[ActivationName, int | None, Tensor], Tensor]
"""(name, layer or None, activation) → the activation to go on with."""

KeysValues: TypeAlias = tuple[Tensor, Tensor]
"""Keys and values of one block, each (B, K, T, D)."""


def untapped(name: ActivationName, layer: int | None, x: Tensor) -> Tensor:
    """Let every activation pass as it is."""
    return x


class LayerNorm(nn.Module):
    """γ · (x − μ) / √(σ² + ε) + β over the features of one token; σ² divides by n."""

    def __init__(self, width: int, *, epsilon: float, bias: bool) -> None:
        super().__init__()
        self.epsilon = epsilon
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        """Normalise each token's vector by itself: (…, C) → (…, C)."""
        centred = x - x.mean(dim=-1, keepdim=True)  # (B, T, C)
        variance = centred.square().mean(dim=-1, keepdim=True)  # (B, T, 1)
        y = centred / torch.sqrt(variance + self.epsilon) * self.weight
        return y if self.bias is None else y + self.bias


class RMSNorm(nn.Module):
    """γ · x / √(mean(x²) + ε) over the last axis; no mean is taken away."""

    def __init__(self, width: int, *, epsilon: float) -> None:
        super().__init__()
        self.epsilon = epsilon
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        """Scale each vector by itself: (…, C) → (…, C)."""
        length = torch.sqrt(x.square().mean(dim=-1, keepdim=True) + self.epsilon)  # (…, 1)
        return x / length * self.weight


class Rotation(nn.Module):
    """Rotary positions: feature i turns with feature i + R/2, by position · frequency[i].

    Nothing here is learned or stored. The D − R features behind the rotated ones stay.
    """

    frequency: Tensor

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        # Told the CPU even where a model is built without memory: no file holds them.
        frequency = torch.tensor(config.rotary_frequencies, dtype=torch.float64, device="cpu")
        self.register_buffer("frequency", frequency, persistent=False)  # (R/2,)
        self._table: tuple[Tensor, Tensor] | None = None

    def forward(self, x: Tensor, start: int) -> Tensor:
        """Turn queries or keys of the positions from `start` on: (B, H, T, D), same shape."""
        half = len(self.frequency)
        cos, sin = (part[start : start + x.shape[2]] for part in self._up_to(start + x.shape[2]))
        first, second, rest = x[..., :half], x[..., half : 2 * half], x[..., 2 * half :]
        turned = (first * cos - second * sin, second * cos + first * sin, rest)
        return torch.cat(turned, dim=-1)

    def _up_to(self, end: int) -> tuple[Tensor, Tensor]:
        """Give cosines and sines of positions 0 to `end`, (T, R/2) each, rounded once."""
        if self._table is None or len(self._table[0]) < end:
            n_positions = 1 << (end - 1).bit_length()  # grows seldom: doubled each time
            angle = torch.arange(n_positions, dtype=torch.float64)[:, None] * self.frequency
            self._table = angle.cos().float(), angle.sin().float()
        return self._table


class Attention(nn.Module):
    """Causal multi-head attention: each position mixes values of itself and earlier ones.

    H query heads share K heads of keys and values: query head h reads key head h // (H / K).
    """

    def __init__(self, config: GPTConfig, layer: int, rotation: Rotation | None) -> None:
        super().__init__()
        self.layer = layer
        self.head_dim = config.head_dim
        self.window = config.window
        self.rotation = rotation
        queries, keys = config.n_head * config.head_dim, config.n_key_head * config.head_dim
        self.q = nn.Linear(config.n_embd, queries, bias=config.qkv_bias)
        self.k = nn.Linear(config.n_embd, keys, bias=config.qkv_bias)
        self.v = nn.Linear(config.n_embd, keys, bias=config.qkv_bias)
        self.q_norm = self.k_norm = None
        if config.qk_norm:
            self.q_norm = RMSNorm(config.head_dim, epsilon=config.layer_norm_epsilon)
            self.k_norm = RMSNorm(config.head_dim, epsilon=config.layer_norm_epsilon)
        self.c_proj = nn.Linear(queries, config.n_embd, bias=config.bias)

    def forward(self, x: Tensor, tap: Tap, past: list[KeysValues] | None = None) -> Tensor:
        """Let the tokens read from each other: (B, T, C) → (B, T, C); see `GPT.forward`."""
        i = self.layer
        q = tap("q", i, self._heads(self.q(x)))  # (B, H, Tq, D)
        k = tap("k", i, self._heads(self.k(x)))  # (B, K, T, D)
        v = tap("v", i, self._heads(self.v(x)))
        if self.q_norm is not None and self.k_norm is not None:
            q = tap("q_norm", i, self.q_norm(q))
            k = tap("k_norm", i, self.k_norm(k))
        if self.rotation is not None:
            start = past[i][0].shape[2] if past is not None and i < len(past) else 0
            q = tap("rot_q", i, self.rotation(q, start))
            k = tap("rot_k", i, self.rotation(k, start))
        if past is not None:
            k, v = self._remember(k, v, past)  # (B, K, Tk, D)
        scores = _by_key_head(q, k.transpose(-1, -2)) / math.sqrt(self.head_dim)  # (B, H, Tq, Tk)
        scores = tap("attn_scores", i, scores.masked_fill(_unseen(scores, self.window), -math.inf))
        pattern = tap("pattern", i, torch.softmax(scores, dim=-1))
        z = tap("z", i, _by_key_head(pattern, v))  # (B, H, Tq, D)
        return tap("attn_out", i, self.c_proj(z.transpose(1, 2).flatten(2)))  # (B, Tq, C)

    def _heads(self, x: Tensor) -> Tensor:
        """Cut each token's vector into heads: (B, T, H·D) → (B, H, T, D)."""
        return x.reshape(*x.shape[:-1], -1, self.head_dim).transpose(1, 2)

    def _remember(self, k: Tensor, v: Tensor, past: list[KeysValues]) -> KeysValues:
        """Put earlier keys and values before the new ones, and keep the result."""
        if self.layer < len(past):
            earlier_k, earlier_v = past[self.layer]
            k, v = torch.cat((earlier_k, k), dim=2), torch.cat((earlier_v, v), dim=2)
            past[self.layer] = (k, v)
        else:
            past.append((k, v))
        return k, v


class FeedForward(nn.Module):
    """Each token alone: widen, activate, bring back.

    A gated one widens twice: the activated gate says how much of each hidden unit passes.
    """

    def __init__(self, config: GPTConfig, layer: int) -> None:
        super().__init__()
        self.layer = layer
        self.c_fc = nn.Linear(config.n_embd, config.n_inner, bias=config.bias)
        self.c_up: nn.Linear | None = None
        if config.gated:
            self.c_up = nn.Linear(config.n_embd, config.n_inner, bias=config.bias)
        self.activation = _ACTIVATIONS[config.activation]
        self.c_proj = nn.Linear(config.n_inner, config.n_embd, bias=config.bias)

    def forward(self, x: Tensor, tap: Tap) -> Tensor:
        """Transform each token by itself: (B, T, C) → (B, T, C)."""
        i = self.layer
        hidden = tap("mlp_pre", i, self.c_fc(x))  # (B, T, F)
        if self.c_up is None:
            hidden = tap("mlp_post", i, self.activation(hidden))
        else:
            passing = tap("mlp_pre_linear", i, self.c_up(x))  # (B, T, F)
            hidden = tap("mlp_post", i, self.activation(hidden) * passing)
        return tap("mlp_out", i, self.c_proj(hidden))  # (B, T, C)


class Block(nn.Module):
    """Four parts that every order shares; the subclasses say how they are wired."""

    def __init__(self, config: GPTConfig, layer: int, rotation: Rotation | None) -> None:
        super().__init__()
        self.layer = layer
        self.ln_1 = _norm(config)
        self.attn = Attention(config, layer, rotation)
        self.ln_2 = _norm(config)
        self.mlp = FeedForward(config, layer)


class PreNormBlock(Block):
    """GPT-2's order: read a normalised copy of the stream, add to the stream, twice.

    resid_pre ─┬─ ln_1 ─ attn ─► + ─ resid_mid ─┬─ ln_2 ─ mlp ─► + ─ resid_post
               └────────────────►┘              └───────────────►┘
    """

    def forward(
        self, x: Tensor, tap: Tap = untapped, past: list[KeysValues] | None = None
    ) -> Tensor:
        """Carry the stream through the block: (B, T, C) → (B, T, C); see `GPT.forward`."""
        i = self.layer
        x = tap("resid_pre", i, x)  # (B, T, C)
        x = tap("resid_mid", i, x + self.attn(tap("ln_1", i, self.ln_1(x)), tap, past))
        return tap("resid_post", i, x + self.mlp(tap("ln_2", i, self.ln_2(x)), tap))


class ParallelBlock(Block):
    """Pythia's order: attention and feed-forward read the same stream, and both add to it.

    resid_pre ─┬─ ln_1 ─ attn ─► + ─ resid_post
               ├─ ln_2 ─ mlp ──► +
               └───────────────►─┘
    """

    def forward(
        self, x: Tensor, tap: Tap = untapped, past: list[KeysValues] | None = None
    ) -> Tensor:
        """Carry the stream through the block: (B, T, C) → (B, T, C); see `GPT.forward`."""
        i = self.layer
        x = tap("resid_pre", i, x)  # (B, T, C)
        attended = self.attn(tap("ln_1", i, self.ln_1(x)), tap, past)
        return tap("resid_post", i, x + attended + self.mlp(tap("ln_2", i, self.ln_2(x)), tap))


class PostNormBlock(Block):
    """The order of 2017: add, then normalise the stream itself, twice.

    resid_pre ─┬─ attn ─► + ─ resid_mid ─ ln_1 ─┬─ mlp ─► + ─ resid_post ─ ln_2
               └─────────►┘                     └────────►┘
    """

    def forward(
        self, x: Tensor, tap: Tap = untapped, past: list[KeysValues] | None = None
    ) -> Tensor:
        """Carry the stream through the block: (B, T, C) → (B, T, C); see `GPT.forward`."""
        i = self.layer
        x = tap("resid_pre", i, x)  # (B, T, C)
        x = tap("ln_1", i, self.ln_1(tap("resid_mid", i, x + self.attn(x, tap, past))))
        return tap("ln_2", i, self.ln_2(tap("resid_post", i, x + self.mlp(x, tap))))


class GPT(nn.Module):
    """A stack of blocks between two embedding tables and one output head."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.config = config
        self.wte = nn.Embedding(config.vocab_size, config.n_embd)
        self.wpe: nn.Module | None = None
        if config.positions == "learned":
            self.wpe = nn.Embedding(config.block_size, config.n_embd)
        elif config.positions == "sinusoidal":
            self.wpe = Sinusoids(config.block_size, config.n_embd)
        rotation = Rotation(config) if config.positions == "rotary" else None
        block = ParallelBlock if config.parallel else _BLOCKS[config.norm]
        self.h = nn.ModuleList(block(config, layer, rotation) for layer in range(config.n_layer))
        self.ln_f = _norm(config) if config.norm == "pre" else None
        self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)
        if config.tied:
            self.lm_head.weight = self.wte.weight

    def forward(
        self, ids: Tensor, tap: Tap = untapped, past: list[KeysValues] | None = None
    ) -> Tensor:
        """Score every vocabulary entry as the next token, at every position.

        Args:
            ids: (B, T) token ids; earlier tokens in `past` count towards the context.
            tap: Sees every activation in the order of the stage table, each with its batch
                axis first.
            past: Empty before the first tokens; afterwards it holds their keys and values
                and is extended in place, so that later calls pass the new ids alone.

        Returns:
            (B, T, V) logits.
        """
        return self.unembed(self.stream(ids, tap, past), tap)

    def stream(
        self, ids: Tensor, tap: Tap = untapped, past: list[KeysValues] | None = None
    ) -> Tensor:
        """Carry the tokens through every block: (B, T) → (B, T, C); see `forward`."""
        x = self.embed(ids, tap, 0 if not past else past[0][0].shape[2])
        for block in self.h:
            x = block(x, tap, past)
        return x

    def embed(self, ids: Tensor, tap: Tap = untapped, start: int = 0) -> Tensor:
        """Look tokens and positions up and add them: (B, T) → (B, T, C).

        Args:
            ids: (B, T) token ids.
            tap: As in `forward`.
            start: The position of the first id.
        """
        embed: Tensor = tap("embed", None, self.wte(tap("tokens", None, ids)))  # (B, T, C)
        if self.wpe is None:
            return embed
        positions = torch.arange(start, start + ids.shape[1], device=ids.device)
        pos_embed = tap("pos_embed", None, self.wpe(positions)[None])  # (1, T, C)
        return embed + pos_embed

    def unembed(self, x: Tensor, tap: Tap = untapped) -> Tensor:
        """Turn rows of the last block's output into logits: (B, T, C) → (B, T, V)."""
        logits = tap("logits", None, self.lm_head(self.final_norm(x, tap)))  # (B, T, V)
        # Probabilities are for looking at: nothing downstream needs them.
        if tap is not untapped:
            tap("probs", None, torch.softmax(logits, dim=-1))
        return logits

    def final_norm(self, x: Tensor, tap: Tap = untapped) -> Tensor:
        """Normalise the stream once more; after post-norm blocks it is normalised already."""
        return x if self.ln_f is None else tap("ln_final", None, self.ln_f(x))


class Sinusoids(nn.Module):
    """Fixed positions: sin at feature 2i, cos at 2i + 1, ω_i = 10000^(−2i / C).

    Vaswani et al. 2017, section 3.5. Nothing here is learned or stored.
    """

    weight: Tensor

    def __init__(self, block_size: int, width: int) -> None:
        super().__init__()
        self.register_buffer("weight", sinusoids(block_size, width), persistent=False)

    def forward(self, positions: Tensor) -> Tensor:
        """Look positions up: (T,) → (T, C)."""
        return self.weight[positions]  # (T, C)


def sinusoids(n_positions: int, width: int) -> Tensor:
    """Compute the fixed position table in float64 and round it once: (n_positions, width).

    On the CPU even where a model is built without memory: no file holds this table.
    """
    position = torch.arange(n_positions, dtype=torch.float64, device="cpu")[:, None]
    pair = torch.arange(0, width, 2, dtype=torch.float64, device="cpu")
    frequency = 10000.0 ** (-pair / width)
    angle = position * frequency  # (T, C/2)
    return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(1).float()


def _norm(config: GPTConfig) -> LayerNorm | RMSNorm:
    """Build the norm of the stream."""
    if config.norm_type == "rmsnorm":
        return RMSNorm(config.n_embd, epsilon=config.layer_norm_epsilon)
    return LayerNorm(config.n_embd, epsilon=config.layer_norm_epsilon, bias=config.bias)


_BLOCKS: dict[str, type[Block]] = {"pre": PreNormBlock, "post": PostNormBlock}


def _by_key_head(x: Tensor, y: Tensor) -> Tensor:
    """Multiply each query head with its key head: (B, H, T, n) · (B, K, n, m) → (B, H, T, m).

    The H / K query heads of a key head become rows of one matrix, so no key is copied.
    """
    rows = x.reshape(x.shape[0], y.shape[1], -1, x.shape[3])  # (B, K, H / K · T, n)
    return (rows @ y).reshape(*x.shape[:3], y.shape[3])


def _unseen(scores: Tensor, window: int | None) -> Tensor:
    """Mark what a query may not see: (Tq, Tk), True where the key comes later or too early.

    The queries are the last Tq of the Tk positions; with a window each sees itself and
    window − 1 keys before it.
    """
    n_queries, n_keys = scores.shape[-2:]
    every = torch.ones(n_queries, n_keys, dtype=torch.bool, device=scores.device)
    future = every.triu(diagonal=n_keys - n_queries + 1)
    if window is None:
        return future
    return future | every.tril(diagonal=n_keys - n_queries - window)


def _gelu_tanh(x: Tensor) -> Tensor:
    return functional.gelu(x, approximate="tanh")


_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": functional.gelu,  # x · Φ(x), Hendrycks & Gimpel 2016 (arXiv:1606.08415)
    "gelu_tanh": _gelu_tanh,  # the form GPT-2 was trained with
    "relu": functional.relu,
    "silu": functional.silu,  # x · σ(x), the gate of Llama (arXiv:1702.03118)
}
