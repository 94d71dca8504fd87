"""Checkpoints as other programs write them, on the tiny shape, and what they must compute.

L2 d8 H2 V11 T16, random and nowhere symmetric. `algebra` is the other side of every comparison:
GPT-2 written out on the tensors of a file and its config, in float64, with nothing of ours.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor

from tui_gpt.checkpoints.find import find_model
from tui_gpt.checkpoints.weights import load_weights

IDS = torch.tensor([[3, 1, 4, 1, 5, 9, 2, 6]])

CONFIG: dict[str, Any] = {
    "model_type": "gpt2",
    "architectures": ["GPT2LMHeadModel"],
    "n_layer": 2,
    "n_embd": 8,
    "n_head": 2,
    "vocab_size": 11,
    "n_positions": 16,
    "activation_function": "gelu_new",
    "layer_norm_epsilon": 1e-5,
}

ARGS: dict[str, Any] = {
    "n_layer": 2,
    "n_embd": 8,
    "n_head": 2,
    "vocab_size": 11,
    "block_size": 16,
    "bias": True,
    "dropout": 0.2,
}
"""nanoGPT's."""

TIED, UNTIED = 1976, 2064
"""Parameters of the tiny shape."""

State = dict[str, Tensor]


def gpt2_state(
    n_layer: int = 2, width: int = 8, vocab: int = 11, positions: int = 16, inner: int = 32
) -> State:
    """Draw the tensors of a GPT-2 folder, matrices as (inputs, outputs), the head tied."""
    draw = torch.Generator().manual_seed(5)

    def some(*shape: int) -> Tensor:
        return torch.randn(shape, generator=draw) * 0.3 + 0.05

    state = {"wte.weight": some(vocab, width), "wpe.weight": some(positions, width)}
    for i in range(n_layer):
        for name, shape in (
            ("ln_1", (width,)),
            ("attn.c_attn", (width, 3 * width)),
            ("attn.c_proj", (width, width)),
            ("ln_2", (width,)),
            ("mlp.c_fc", (width, inner)),
            ("mlp.c_proj", (inner, width)),
        ):
            state[f"h.{i}.{name}.weight"] = some(*shape)
            state[f"h.{i}.{name}.bias"] = some(shape[-1])
    state["ln_f.weight"], state["ln_f.bias"] = some(width), some(width)
    return state


def with_prefix(state: Mapping[str, Tensor], prefix: str) -> State:
    """Name every tensor but the head, which no program puts there, with a prefix."""
    return {key if key == "lm_head.weight" else prefix + key: x for key, x in state.items()}


def write_folder(
    folder: Path,
    state: Mapping[str, Tensor] | None = None,
    *,
    metadata: dict[str, str] | None = None,
    drop: tuple[str, ...] = (),
    **changes: Any,
) -> Path:
    """Write a Hugging Face folder.

    Args:
        folder: To make.
        state: Its tensors.
        metadata: Of the header.
        drop: Fields to leave out of the config.
        **changes: Fields to put into the config.
    """
    folder.mkdir()
    state = gpt2_state() if state is None else state
    whole = {key: tensor.contiguous().clone() for key, tensor in state.items()}
    (folder / "model.safetensors").write_bytes(safetensors.torch.save(whole, metadata=metadata))
    write_config(folder, drop=drop, **changes)
    return folder


def write_config(folder: Path, *, drop: tuple[str, ...] = (), **changes: Any) -> None:
    config = {key: value for key, value in {**CONFIG, **changes}.items() if key not in drop}
    (folder / "config.json").write_text(json.dumps(config))


def write_shards(folder: Path, state: Mapping[str, Tensor], *, pickled: bool = False) -> Path:
    """Write a folder of two shards and their index."""
    folder.mkdir()
    keys = list(state)
    stem, kind = ("pytorch_model", ".bin") if pickled else ("model", ".safetensors")
    weight_map = {}
    for i, part in enumerate((keys[::2], keys[1::2]), 1):
        name = f"{stem}-{i:05}-of-00002{kind}"
        shard = {key: state[key].contiguous() for key in part}
        if pickled:
            torch.save(shard, folder / name)
        else:
            (folder / name).write_bytes(safetensors.torch.save(shard))
        weight_map.update(dict.fromkeys(part, name))
    index = {"metadata": {"total_size": 1}, "weight_map": weight_map}
    (folder / f"{stem}{kind}.index.json").write_text(json.dumps(index))
    write_config(folder)
    return folder


def nanogpt_state(state: Mapping[str, Tensor] | None = None, *, bias: bool = True) -> State:
    """Give a model as nanoGPT names and turns it, the table stored as head too."""
    found: State = {}
    for key, tensor in (gpt2_state() if state is None else state).items():
        matrix = tensor.ndim == 2 and ".c_" in key
        if bias or not key.endswith(".bias"):
            found[f"transformer.{key}"] = tensor.t().contiguous() if matrix else tensor
    found["lm_head.weight"] = found["transformer.wte.weight"]
    return found


def write_nanogpt(path: Path, state: Mapping[str, Tensor] | None = None, **args: Any) -> Path:
    """Write a checkpoint as nanoGPT's training does."""
    checkpoint = {
        "model": dict(nanogpt_state() if state is None else state),
        "optimizer": {"state": {0: {"step": torch.tensor(3.0)}}, "param_groups": [{"lr": 1e-3}]},
        "model_args": {**ARGS, **args},
        "iter_num": 10,
        "best_val_loss": torch.tensor(1.5),
        "config": {"dataset": "shakespeare", "device": "cuda"},
    }
    torch.save(checkpoint, path)
    return path


def our_logits(path: Path | str, ids: Tensor = IDS) -> Tensor:
    """Open a model as the program does, and score a prompt: (B, T, V)."""
    logits: Tensor = load_weights(find_model(str(path)))(ids)
    return logits


def algebra(
    state: Mapping[str, Tensor],
    ids: Tensor = IDS,
    *,
    n_head: int = 2,
    activation: str = "gelu_new",
    epsilon: float = 1e-5,
    head: Tensor | None = None,
) -> Tensor:
    """Write GPT-2 out on bare names and (inputs, outputs) matrices: (B, T, V) in float64."""
    w = {key: tensor.double() for key, tensor in state.items()}
    x = w["wte.weight"][ids] + w["wpe.weight"][: ids.shape[1]]
    width = x.shape[-1]

    def norm(x: Tensor, name: str) -> Tensor:
        mean, var = x.mean(-1, keepdim=True), x.var(-1, correction=0, keepdim=True)
        return (x - mean) / (var + epsilon).sqrt() * w[f"{name}.weight"] + w[f"{name}.bias"]

    def linear(x: Tensor, name: str) -> Tensor:
        return x @ w[f"{name}.weight"] + w[f"{name}.bias"]

    def activated(x: Tensor) -> Tensor:
        if activation == "relu":
            return x.clamp(min=0)
        if activation == "gelu":
            return x * 0.5 * (1 + torch.erf(x / math.sqrt(2)))
        return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))

    layers = {int(key.split(".")[1]) for key in w if key.startswith("h.")}
    for i in range(len(layers)):
        q, k, v = linear(norm(x, f"h.{i}.ln_1"), f"h.{i}.attn.c_attn").chunk(3, -1)
        heads = []
        for j in range(n_head):
            part = slice(j * width // n_head, (j + 1) * width // n_head)
            scores = q[..., part] @ k[..., part].mT / math.sqrt(width // n_head)
            future = torch.ones_like(scores, dtype=torch.bool).triu(1)
            heads.append(scores.masked_fill(future, -math.inf).softmax(-1) @ v[..., part])
        x = x + linear(torch.cat(heads, -1), f"h.{i}.attn.c_proj")
        hidden = activated(linear(norm(x, f"h.{i}.ln_2"), f"h.{i}.mlp.c_fc"))
        x = x + linear(hidden, f"h.{i}.mlp.c_proj")
    table = w["wte.weight"] if head is None else head.double()
    return norm(x, "ln_f") @ table.mT
