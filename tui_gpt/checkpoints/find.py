"""Finding a model: a bundled name, a path, a name in the local cache, or a preset.

What is found has a config that makes sense and weights that fit it by name and shape; their
numbers are not read yet. Nothing here uses the network. Only pickled checkpoints need torch,
because only torch opens them. What belongs to other programs' files is imported when there is one.

    kind           what it is                               config
    bundled        a folder of ours, in the package         config.json
    folder         a folder of ours                         config.json, "format": "tui-gpt"
    huggingface    a folder of a known family               config.json, by its model_type
    nanogpt        a checkpoint of nanoGPT                  model_args, in the file itself
    gguf           a file of llama.cpp                      the pairs of its header
    untrained      random numbers from a seed               the preset's
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tui_gpt.checkpoints.headers import TensorEntry
from tui_gpt.checkpoints.layouts.layout import HEAD, TABLE, Entries, Layout, LayoutConfig, Location
from tui_gpt.checkpoints.layouts.own import OWN
from tui_gpt.checkpoints.memory_check import check_memory
from tui_gpt.checkpoints.names import CHECKPOINT, CONFIG, WEIGHTS
from tui_gpt.checkpoints.placement import Plan, by_name, place
from tui_gpt.checkpoints.weight_files import (
    CHECKPOINT_SUFFIXES,
    WeightFiles,
    find_weights,
    open_tensors,
    read_entries,
    weights_at,
)
from tui_gpt.config import PRESETS, GPTConfig
from tui_gpt.errors import DamagedModel, UnknownModel
from tui_gpt.files import BUNDLED_MODELS, assets, read_object
from tui_gpt.model.untrained import PREFIX, Recipe, read_recipe
from tui_gpt.records.stages import count_parameters
from tui_gpt.records.vocabulary import NO_VOCABULARY, VocabularySource

_WEIGHT_SUFFIXES = (".safetensors", ".bin", ".gguf", *CHECKPOINT_SUFFIXES)
_INDEX_SUFFIXES = (".safetensors.index.json", ".bin.index.json")

_GPT2_VOCABULARY = 50257
"""Rows that a table needs for GPT-2's tokens."""

_COMPARED_AT_ONCE = 2**20
"""Bytes."""


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
    vocabulary: VocabularySource
    n_parameters: int
    recipe: Recipe | None = None
    """How an untrained model is drawn."""
    files: WeightFiles | None = None
    """Where the numbers are; None for an untrained model."""
    layout: Layout = OWN
    notices: tuple[str, ...] = ()
    """What a person should know of every run."""
    remarks: tuple[str, ...] = ()
    """What was decided about the files besides."""

    @property
    def ours(self) -> bool:
        """True for a folder that this program wrote."""
        return self.kind in ("bundled", "folder")


def find_model(name: str, layouts: Sequence[Layout] = ()) -> ModelSource:
    """Find a model, and read its config and what its weights are called.

    Args:
        name: As a person gives it.
        layouts: Asked before the known ones.

    Raises:
        UnknownModel: Nothing is there; the message lists what can be given instead.
        DamagedModel: Something is there, but it is not usable; the message says why.
    """
    if name.startswith(PREFIX):
        return _untrained(read_recipe(name))
    if name in BUNDLED_MODELS:
        return _source(replace(_in_folder(assets() / "models" / name, name), kind="bundled"), OWN)
    found = _locate(name)
    if OWN.recognises(found):
        return _source(found, OWN)
    from tui_gpt.checkpoints.layouts.known import LAYOUTS

    for layout in (*layouts, *LAYOUTS):
        if layout.recognises(found):
            return _source(found, layout)
    raise _unrecognised(found, LAYOUTS)


def plan_of(source: ModelSource) -> Plan:
    """Read what the files hold now, and where each tensor goes.

    Raises:
        DamagedModel: A file is not whole or not of this config.
    """
    assert source.files is not None
    entries = by_name(read_entries(source.files), source.layout)
    return place(entries, source.config, source.layout, source.files.named)


def untrained_presets() -> tuple[str, ...]:
    """List the shapes that can be drawn: the named ones, and those of the bundled models."""
    return (*PRESETS, *BUNDLED_MODELS)


def _locate(name: str) -> Location:
    """Find the folder or file of a name that is a path or is in the cache."""
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
        return _in_folder(cached, name)
    path, mode = found
    if stat.S_ISDIR(mode):
        return _in_folder(path, name)
    if not stat.S_ISREG(mode):
        raise UnknownModel(f"{path} is a pipe or a device, not a regular file")
    return _at_file(path, name)


def _path(name: str) -> tuple[Path, int] | None:
    """Look a path up; None where there is nothing."""
    try:
        path = Path(name).expanduser()
        return (path, path.stat().st_mode) if name else None
    except PermissionError as error:
        raise DamagedModel(f"cannot read {name}: {error.strerror}") from error
    except (OSError, ValueError, RuntimeError):
        return None


def _in_folder(path: Path, name: str) -> Location:
    """See what kinds of files a folder has."""
    try:
        there = set(os.listdir(path))
    except OSError as error:
        raise DamagedModel(f"cannot read {path}: {error.strerror}") from error
    raw = read_object(path / CONFIG) if CONFIG in there else None
    if raw is not None and "format" in raw:
        return Location(name, path, WeightFiles((path / WEIGHTS,)), raw)
    if raw is None and CHECKPOINT in there:
        return Location(name, path, WeightFiles((path / CHECKPOINT,)))
    files = find_weights(path)
    if files is None:
        packed = sorted(file for file in there if file.endswith(".gguf"))
        if len(packed) > 1:
            raise UnknownModel(f"{path} has {len(packed)} models: give one of {', '.join(packed)}")
        if packed:
            return Location(name, path, WeightFiles((path / packed[0],)), raw)
    if raw is not None and files is None:
        raise DamagedModel(
            f"no weights here: {path} has a {CONFIG} and neither model.safetensors nor "
            "pytorch_model.bin"
        )
    if files is None:
        raise UnknownModel(
            f"no model in {path}: no weights here, neither {CONFIG} nor {CHECKPOINT}"
        )
    return Location(name, path, files, raw)


def _at_file(path: Path, name: str) -> Location:
    """Take a file that stands for its folder, or is the weights to read."""
    config = path.parent / CONFIG
    if path.name == CONFIG:
        return _in_folder(path.parent, name)
    if not path.name.endswith((*_WEIGHT_SUFFIXES, *_INDEX_SUFFIXES)):
        raise UnknownModel(f"{path} is a file; give the model's folder")
    if path.suffix == ".gguf":
        return Location(name, path.parent, WeightFiles((path,)))
    raw = read_object(config) if config.exists() else None
    if raw is not None and "format" in raw and path.name != WEIGHTS:
        raise UnknownModel(f"{path} is a file; give the model's folder")
    if path.name.endswith(CHECKPOINT_SUFFIXES):
        return Location(name, path.parent, WeightFiles((path,)), raw)
    return Location(name, path.parent, weights_at(path), raw)


def _unrecognised(found: Location, layouts: Sequence[Layout]) -> DamagedModel:
    """Say why no layout reads it."""
    from tui_gpt.checkpoints.layouts.hf_config import architecture_of

    if found.config is not None:
        known = [name for layout in layouts for name in layout.architectures]
        return DamagedModel(
            f"{found.folder / CONFIG}: unsupported architecture "
            f"{architecture_of(found.config)!r}; supported are {', '.join(dict.fromkeys(known))}"
        )
    if found.files is not None and found.files.is_checkpoint:
        return DamagedModel(
            f"{found.named} has no model_args, as nanoGPT writes them, and no {CONFIG} beside it; "
            "one of them gives the sizes"
        )
    return DamagedModel(f"{found.named} has no {CONFIG} beside it, which gives the sizes")


def _source(found: Location, layout: Layout) -> ModelSource:
    """Read the config, and hold the tensors against it where they are looked at first."""
    assert found.files is not None
    entries: Entries = {}
    if layout.reads_header_first:
        entries = by_name(read_entries(found.files), layout)
    read = layout.read_config(found, entries)
    config, notices, remarks = read.config, [], list(read.remarks)
    if read.called is not None:
        remarks.insert(0, f"{CONFIG} calls the model {read.called}")
    if layout.reads_header_first:
        config, said, noticed = _settle_head(found, layout, read, entries)
        remarks += said
        notices += noticed
    if found.files.unread:
        others = ", ".join(path.name for path in found.files.unread)
        notices.append(f"read: {found.named.name}; also there and not read: {others}")
    return ModelSource(
        found.name,
        found.kind or layout.kind,
        found.folder,
        config,
        layout.vocabulary(found),
        count_parameters(config),
        files=found.files,
        layout=layout,
        notices=tuple(notices),
        remarks=tuple(remarks),
    )


def _settle_head(
    found: Location, layout: Layout, read: LayoutConfig, entries: Entries
) -> tuple[GPTConfig, list[str], list[str]]:
    """Decide whether a stored output head is the token table again.

    Returns:
        The config, what to remark, and what to say with every run.
    """
    config, head, table = read.config, layout.file_name(HEAD), layout.file_name(TABLE)
    place(entries, config, layout, found.named)
    if not config.tied or head not in entries:
        return config, [], []
    assert found.files is not None
    check_memory(found.name, 4 * count_parameters(config))  # before two large tensors are read
    if _same_numbers(entries[head], entries[table], found.files):
        return config, [f"{head} repeats {table}: they are one, and counted once"], []
    config = replace(config, tied=False)
    place(entries, config, layout, found.named)
    notice = (
        f"{head} and {table} differ in the file, so the head is used as it is, although "
        "nothing says that they are two"
    )
    return config, [], [notice]


def _same_numbers(one: TensorEntry, other: TensorEntry, files: WeightFiles) -> bool:
    """Compare two tensors of a file, piece by piece."""
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if files.container == "pickle":
        tensor = open_tensors(files)
        return bool((tensor(one) == tensor(other)).all())
    try:
        with one.path.open("rb") as left, other.path.open("rb") as right:
            left.seek(one.start)
            right.seek(other.start)
            for start in range(0, one.n_bytes, _COMPARED_AT_ONCE):
                count = min(_COMPARED_AT_ONCE, one.n_bytes - start)
                if left.read(count) != right.read(count):
                    return False
    except OSError as error:
        raise DamagedModel(f"cannot read {one.path}: {error.strerror}") from error
    return True


def _untrained(recipe: Recipe) -> ModelSource:
    """Give a model of random numbers the shape of its preset and the vocabulary that fits."""
    if recipe.preset in BUNDLED_MODELS:
        trained = find_model(recipe.preset)
        config, vocabulary = trained.config, trained.vocabulary
    elif recipe.preset in PRESETS:
        config = PRESETS[recipe.preset]
        fits = config.vocab_size >= _GPT2_VOCABULARY
        vocabulary = VocabularySource("gpt2") if fits else NO_VOCABULARY
    else:
        raise UnknownModel(
            f"no preset {recipe.preset!r} to draw: give {PREFIX} with one of "
            + ", ".join(untrained_presets())
        )
    count = count_parameters(config)
    return ModelSource(recipe.name, "untrained", None, config, vocabulary, count, recipe)
