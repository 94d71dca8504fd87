"""Finding a model: a bundled name, a path, a name in the local cache, or a preset.

What is found has a config that makes sense, a vocabulary, and weights that fit the config by
name and shape; their numbers are not read yet. Nothing here uses the network. Only pickled
checkpoints need torch, because only torch opens them. What belongs to other programs' files is
imported when there is one.

    kind           what it is                               config
    bundled        a folder of ours, in the package         config.json
    folder         a folder of ours                         config.json, "format": "tui-gpt"
    huggingface    a GPT-2 folder, or one in the cache      config.json, model_type gpt2
    nanogpt        a checkpoint of nanoGPT                  model_args, in the file itself
    untrained      random numbers from a seed               the preset's
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tui_gpt.checkpoints.weight_files import CHECKPOINT, WeightFiles, find_weights, weights_at
from tui_gpt.config import PRESETS, GPTConfig
from tui_gpt.errors import DamagedModel, ImpossibleShape, UnknownModel
from tui_gpt.files import BUNDLED_MODELS, assets, read_object
from tui_gpt.model.untrained import PREFIX, Recipe, read_recipe
from tui_gpt.records.stages import count_parameters
from tui_gpt.tokenization.tokenizer import (
    GPT2_VOCABULARY,
    CharacterTokenizer,
    GPT2Tokenizer,
    IdsOnly,
    Tokenizer,
)

if TYPE_CHECKING:
    from tui_gpt.checkpoints.layouts.gpt2_names import Layout, Plan

FORMAT = "tui-gpt"
CONFIG, WEIGHTS, CHARACTERS = "config.json", "model.safetensors", "characters.json"

_WEIGHT_SUFFIXES = (".safetensors", ".bin", ".pt", ".pth", ".ckpt")
_INDEX_SUFFIXES = (".safetensors.index.json", ".bin.index.json")


@dataclass(frozen=True, slots=True)
class ModelSource:
    """A model that was found and whose config makes sense; its numbers are not read yet."""

    name: str
    """As it was asked for: a bundled name, a path, a name in the cache or `untrained:PRESET`."""
    kind: str
    """One of the kinds above."""
    path: Path | None
    """The folder; None for an untrained model, which has no file."""
    config: GPTConfig
    tokenizer: Tokenizer
    n_parameters: int
    recipe: Recipe | None = None
    """How an untrained model is drawn."""
    files: WeightFiles | None = None
    """Where the numbers are; None for an untrained model."""
    layout: Layout = "own"
    notices: tuple[str, ...] = ()
    """What a person should know of every run."""
    remarks: tuple[str, ...] = ()
    """What was decided about the files besides."""

    @property
    def ours(self) -> bool:
        """True for a folder that this program wrote."""
        return self.kind in ("bundled", "folder")


def find_model(name: str) -> ModelSource:
    """Find a model, and read its config, its vocabulary and what its weights are called.

    Raises:
        UnknownModel: Nothing is there; the message lists what can be given instead.
        DamagedModel: Something is there, but it is not usable; the message says why.
    """
    if name.startswith(PREFIX):
        return _untrained(read_recipe(name))
    if name in BUNDLED_MODELS:
        return _own_folder(assets() / "models" / name, name, "bundled")
    found = _path(name)
    if found is None:
        from tui_gpt.checkpoints.hub_cache import cached_folder

        cached = cached_folder(name) if name else None
        if cached is None:
            raise UnknownModel(
                f"no model {name!r}: give {' or '.join(BUNDLED_MODELS)}, the path of a folder or "
                f"file with weights, the name of a model in the local Hugging Face cache, or "
                f"{PREFIX}PRESET; there is no such file or folder, and nothing is downloaded "
                "but by `tui-gpt download`"
            )
        return _folder(cached, name)
    path, mode = found
    if stat.S_ISDIR(mode):
        return _folder(path, name)
    if not stat.S_ISREG(mode):
        raise UnknownModel(f"{path} is a pipe or a device, not a regular file")
    return _file(path, name)


def plan_of(source: ModelSource) -> Plan:
    """Read what the files hold now, and where each tensor goes.

    Raises:
        DamagedModel: A file is not whole or not of this config.
    """
    from tui_gpt.checkpoints.layouts.gpt2_names import by_name, place
    from tui_gpt.checkpoints.weight_files import read_entries

    assert source.files is not None
    entries = by_name(read_entries(source.files), source.layout)
    return place(entries, source.config, source.layout, source.files.named)


def untrained_presets() -> tuple[str, ...]:
    """List the shapes that can be drawn: the named ones, and those of the bundled models."""
    return (*PRESETS, *BUNDLED_MODELS)


def _path(name: str) -> tuple[Path, int] | None:
    """Look a path up; None where there is nothing."""
    try:
        path = Path(name).expanduser()
        return (path, path.stat().st_mode) if name else None
    except PermissionError as error:
        raise DamagedModel(f"cannot read {name}: {error.strerror}") from error
    except (OSError, ValueError, RuntimeError):
        return None


def _folder(path: Path, name: str) -> ModelSource:
    """Open whatever kind of folder this is."""
    from tui_gpt.checkpoints.layouts.gpt2 import checkpoint, huggingface

    try:
        there = set(os.listdir(path))
    except OSError as error:
        raise DamagedModel(f"cannot read {path}: {error.strerror}") from error
    if CONFIG in there:
        raw = read_object(path / CONFIG)
        if "format" in raw:
            return _own_folder(path, name, "folder")
        files = find_weights(path)
        if files is None:
            raise DamagedModel(
                f"no weights here: {path} has a {CONFIG} and neither model.safetensors nor "
                "pytorch_model.bin"
            )
        return huggingface(path, name, raw, files)
    if CHECKPOINT in there:
        return checkpoint(path / CHECKPOINT, name)
    if (files := find_weights(path)) is not None:
        raise DamagedModel(f"{files.named} has no {CONFIG} beside it, which gives the sizes")
    raise UnknownModel(f"no model in {path}: no weights here, neither {CONFIG} nor {CHECKPOINT}")


def _file(path: Path, name: str) -> ModelSource:
    """Open a file that stands for its folder, or is the weights to read."""
    from tui_gpt.checkpoints.layouts.gpt2 import checkpoint, huggingface

    config = path.parent / CONFIG
    if path.name == CONFIG:
        return _folder(path.parent, name)
    if not path.name.endswith((*_WEIGHT_SUFFIXES, *_INDEX_SUFFIXES)):
        raise UnknownModel(f"{path} is a file; give the model's folder")
    raw = read_object(config) if config.exists() else None
    if raw is not None and "format" in raw:
        if path.name != WEIGHTS:
            raise UnknownModel(f"{path} is a file; give the model's folder")
        return _own_folder(path.parent, name, "folder")
    if path.name.endswith((".pt", ".pth", ".ckpt")):
        return checkpoint(path, name, raw)
    if raw is None:
        raise DamagedModel(f"{path} has no {CONFIG} beside it, which gives the sizes")
    return huggingface(path.parent, name, raw, weights_at(path))


def _untrained(recipe: Recipe) -> ModelSource:
    """Give a model of random numbers the shape of its preset and the vocabulary that fits."""
    tokenizer: Tokenizer
    if recipe.preset in BUNDLED_MODELS:
        trained = find_model(recipe.preset)
        config, tokenizer = trained.config, trained.tokenizer
    elif recipe.preset in PRESETS:
        config = PRESETS[recipe.preset]
        tokenizer = GPT2Tokenizer() if config.vocab_size >= GPT2_VOCABULARY else IdsOnly()
    else:
        raise UnknownModel(
            f"no preset {recipe.preset!r} to draw: give {PREFIX} with one of "
            + ", ".join(untrained_presets())
        )
    count = count_parameters(config)
    return ModelSource(recipe.name, "untrained", None, config, tokenizer, count, recipe)


def _own_folder(path: Path, name: str, kind: str) -> ModelSource:
    """Read a folder that this program wrote."""
    file = path / CONFIG
    raw = read_object(file)
    if raw.get("format") != FORMAT:
        raise DamagedModel(f'{file} does not say "format": "{FORMAT}"; it is no folder of ours')
    try:
        config = GPTConfig.from_dict(raw)
    except ImpossibleShape as error:
        raise DamagedModel(f"{file}: {error}") from error
    tokenizer = CharacterTokenizer.from_file(path / CHARACTERS)
    if tokenizer.vocab_size != config.vocab_size:
        raise DamagedModel(
            f"{path / CHARACTERS} has {tokenizer.vocab_size} characters but {CONFIG} says "
            f"vocab_size {config.vocab_size}"
        )
    count = count_parameters(config)
    files = WeightFiles((path / WEIGHTS,))
    return ModelSource(name, kind, path, config, tokenizer, count, files=files)
