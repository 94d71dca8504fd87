"""Which tensor of a file becomes which parameter: names, shapes, and who is transposed.

    file                     GPT-2 folder   nanoGPT      becomes
    h.0.attn.c_attn.weight   (C, 3C)        (3C, C)      q, k and v, each (C, C)
    h.0.attn.c_proj.weight   (C, C)         (C, C)       the same name, (C, C)
    h.0.mlp.c_fc.weight      (C, F)         (F, C)       the same name, (F, C)
    h.0.mlp.c_proj.weight    (F, C)         (C, F)       the same name, (C, F)

GPT-2 keeps a matrix as (inputs, outputs), its `Conv1D`; torch's `Linear` as (outputs, inputs).
Only the kind of file tells: a square matrix looks the same both ways.

A key may carry prefixes (`transformer.`, `module.`, `_orig_mod.`, `model.`), which are taken off
until none is left. Each file key has one place or none, each parameter one key: anything missing,
left over or of another shape is refused by name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from tui_gpt.checkpoints.headers import WEIGHT_DTYPES, TensorEntry
from tui_gpt.config import GPTConfig
from tui_gpt.errors import DamagedModel
from tui_gpt.records.stages import stage_table

Layout = Literal["own", "gpt2", "nanogpt"]
"""Whose names and orientation a file has."""

HEAD, TABLE = "lm_head.weight", "wte.weight"

_PREFIXES = ("_orig_mod.", "module.", "model.", "transformer.")

_MASK = re.compile(r"h\.\d+\.attn\.bias")
_MASKED_BIAS = re.compile(r"h\.\d+\.attn\.masked_bias")

_GPT2_NAME = re.compile(
    r"(wte|wpe)\.weight|lm_head\.weight|ln_f\.(weight|bias)"
    r"|h\.\d+\.(ln_1|ln_2|attn\.c_attn|attn\.c_proj|mlp\.c_fc|mlp\.c_proj)\.(weight|bias)"
)

_FUSED = ("q", "k", "v")


@dataclass(frozen=True, slots=True)
class Wanted:
    """One tensor that a config asks a file for."""

    name: str
    """The key without prefixes."""
    shape: tuple[int, ...]
    """In the file."""
    parameters: tuple[str, ...]
    """What it becomes: one, or q, k and v, which share it along the outputs."""
    transposed: bool
    """The file has (inputs, outputs)."""


@dataclass(frozen=True, slots=True)
class Placement:
    """A tensor of a file, and the parameters it becomes."""

    entry: TensorEntry
    wanted: Wanted


@dataclass(frozen=True, slots=True)
class Skipped:
    """A tensor of a file that is no parameter."""

    entry: TensorEntry
    kind: Literal["mask", "masked_bias", "tied"]


@dataclass(frozen=True, slots=True)
class Plan:
    """Where everything in a file goes."""

    placements: tuple[Placement, ...]
    """In the order of the stages; every parameter is in exactly one."""
    skipped: tuple[Skipped, ...]


def bare(key: str) -> str:
    """Take prefixes off a key until none is left."""
    while True:
        prefix = next((prefix for prefix in _PREFIXES if key.startswith(prefix)), None)
        if prefix is None:
            return key
        key = key.removeprefix(prefix)


def by_name(entries: Iterable[TensorEntry], layout: Layout) -> dict[str, TensorEntry]:
    """Give the tensors of a file by their bare names.

    Raises:
        DamagedModel: Two keys are one name, or a key is none of GPT-2's.
    """
    found: dict[str, TensorEntry] = {}
    for entry in entries:
        name = entry.key if layout == "own" else bare(entry.key)
        if name in found:
            raise DamagedModel(
                f"{entry.path} has {found[name].key} and {entry.key}, which are one tensor's name"
            )
        found[name] = entry
    if layout != "own":
        for name, entry in found.items():
            if not (_GPT2_NAME.fullmatch(name) or _buffer(name)):
                raise DamagedModel(
                    f"unsupported architecture: {entry.path} has {entry.key} {entry.shape}, and "
                    f"GPT-2 has no tensor of that name"
                )
    return found


def place(found: dict[str, TensorEntry], config: GPTConfig, layout: Layout, where: object) -> Plan:
    """Hold a file's tensors against the config: all there, none left over, shapes equal.

    Args:
        found: By bare name.
        config: Whether head and table are one is decided already.
        layout: Whose names these are.
        where: The file or folder, for messages.

    Raises:
        DamagedModel: Names the first that differs, with both shapes.
    """
    placements = []
    names = set()
    for wanted in _wanted(config, layout):
        entry = found.get(wanted.name)
        if entry is None:
            raise DamagedModel(
                f"{where} has no {wanted.name} {wanted.shape}; the config asks for it"
            )
        if entry.shape != wanted.shape:
            raise DamagedModel(
                f"{entry.path}: {entry.key} is {entry.shape} but the config asks for {wanted.shape}"
            )
        if entry.dtype not in WEIGHT_DTYPES:
            raise DamagedModel(
                f"{entry.path}: {entry.key} holds {entry.dtype}, which is no kind of weight"
            )
        placements.append(Placement(entry, wanted))
        names.add(wanted.name)
    skipped = tuple(
        _skip(name, entry, config, layout) for name, entry in found.items() if name not in names
    )
    return Plan(tuple(placements), skipped)


def _skip(name: str, entry: TensorEntry, config: GPTConfig, layout: Layout) -> Skipped:
    """Say why a tensor is no parameter, or refuse it."""
    if layout != "own":
        if name == HEAD and config.tied:
            return Skipped(entry, "tied")
        kind = _buffer(name)
        if kind is not None and int(name.split(".")[1]) < config.n_layer:
            square = entry.shape[:2] == (1, 1) and len(set(entry.shape[2:])) == 1
            if kind == "masked_bias" or (square and len(entry.shape) == 4):
                return Skipped(entry, kind)
            raise DamagedModel(
                f"{entry.path}: {entry.key} is {entry.shape}; GPT-2's mask is "
                f"{(1, 1, config.block_size, config.block_size)}"
            )
    raise DamagedModel(
        f"{entry.path} has {entry.key} {entry.shape}, which the config has no place for"
    )


def _buffer(name: str) -> Literal["mask", "masked_bias"] | None:
    """Tell the tensors that old files keep beside the weights."""
    if _MASK.fullmatch(name):
        return "mask"
    return "masked_bias" if _MASKED_BIAS.fullmatch(name) else None


def _wanted(config: GPTConfig, layout: Layout) -> Iterator[Wanted]:
    """List every tensor that a file of a config must have, in the order of the stages."""
    if layout == "own":
        for stage in stage_table(config, 1):
            for parameter in stage.parameters:
                if not parameter.shared:
                    yield Wanted(parameter.name, parameter.shape, (parameter.name,), False)
        return
    width, hidden = config.n_embd, config.n_inner
    conv = layout == "gpt2"
    yield _same(TABLE, (config.vocab_size, width))
    yield _same("wpe.weight", (config.block_size, width))
    for i in range(config.n_layer):
        block = f"h.{i}"
        yield from _norm(f"{block}.ln_1", config)
        parts = tuple(f"{block}.attn.{part}" for part in _FUSED)
        yield from _linear(f"{block}.attn.c_attn", 3 * width, width, parts, config, conv)
        yield from _linear(f"{block}.attn.c_proj", width, width, (), config, conv)
        yield from _norm(f"{block}.ln_2", config)
        yield from _linear(f"{block}.mlp.c_fc", hidden, width, (), config, conv)
        yield from _linear(f"{block}.mlp.c_proj", width, hidden, (), config, conv)
    yield from _norm("ln_f", config)
    if not config.tied:
        yield _same(HEAD, (config.vocab_size, width))


def _same(name: str, shape: tuple[int, ...]) -> Wanted:
    return Wanted(name, shape, (name,), False)


def _norm(name: str, config: GPTConfig) -> Iterator[Wanted]:
    yield _same(f"{name}.weight", (config.n_embd,))
    if config.bias:
        yield _same(f"{name}.bias", (config.n_embd,))


def _linear(
    name: str, n_out: int, n_in: int, parts: Sequence[str], config: GPTConfig, conv: bool
) -> Iterator[Wanted]:
    parts = parts or (name,)
    shape = (n_in, n_out) if conv else (n_out, n_in)
    yield Wanted(f"{name}.weight", shape, tuple(f"{part}.weight" for part in parts), conv)
    if config.bias:
        yield Wanted(f"{name}.bias", (n_out,), tuple(f"{part}.bias" for part in parts), False)
