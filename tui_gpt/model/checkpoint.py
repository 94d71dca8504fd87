"""Finding a model, and model folders of our own: config, weights, characters and a card.

Each file of a folder is whole or not there:

    config.json         "format": "tui-gpt" and the fields of GPTConfig
    model.safetensors   the state dict; a tied head is not stored twice
    characters.json     the vocabulary, in id order
    card.json           how the weights came to be

Finding a folder and reading its config needs no tensor library; only `load_weights` imports
torch. Nothing is ever filled in: every tensor of the config must be there, in its shape, and
no other.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tui_gpt.config import PRESETS, GPTConfig
from tui_gpt.errors import DamagedModel, ImpossibleShape, UnknownModel
from tui_gpt.files import BUNDLED_MODELS, assets, read_regular, regular_size, write_whole
from tui_gpt.model.tokenizer import (
    GPT2_VOCABULARY,
    CharacterTokenizer,
    GPT2Tokenizer,
    IdsOnly,
    Tokenizer,
)
from tui_gpt.model.untrained import PREFIX, Recipe, draw, read_recipe
from tui_gpt.records.stages import Parameter, count_parameters, stage_table

if TYPE_CHECKING:
    import torch
    from torch.overrides import TorchFunctionMode

    from tui_gpt.model.gpt import GPT

FORMAT = "tui-gpt"
CONFIG, WEIGHTS, CHARACTERS, CARD = (
    "config.json",
    "model.safetensors",
    "characters.json",
    "card.json",
)

_DTYPES = {"F32": 4, "F16": 2, "BF16": 2, "F64": 8}
"""Stored number formats that become float32, with their bytes; no other is a weight."""

_LARGEST_HEADER = 100_000_000
"""Bytes; safetensors itself stops there."""

_LFS_POINTER = b"version https://git-lfs"
"""How a Git LFS pointer begins: three lines of text in the place of a large file."""


@dataclass(frozen=True, slots=True)
class ModelSource:
    """A model that was found and whose config makes sense; its weights are not read yet."""

    name: str
    """As it was asked for: a bundled name, a path or `untrained:PRESET`."""
    kind: str
    """`bundled`, `folder` or `untrained`."""
    path: Path | None
    """The folder; None for an untrained model, which has no file."""
    config: GPTConfig
    tokenizer: Tokenizer
    n_parameters: int
    recipe: Recipe | None = None
    """How an untrained model is drawn."""


@dataclass(frozen=True, slots=True)
class TensorEntry:
    """What a weight file's header says of one tensor."""

    key: str
    shape: tuple[int, ...]
    dtype: str


def find_model(name: str) -> ModelSource:
    """Find a model by bundled name, path or preset, and read its config and vocabulary.

    Raises:
        UnknownModel: Nothing is there; the message lists what can be given instead.
        DamagedModel: A folder is there, but its config or vocabulary is not usable.
    """
    if name.startswith(PREFIX):
        return _untrained(read_recipe(name))
    if name in BUNDLED_MODELS:
        return _read_folder(assets() / "models" / name, name, "bundled")
    try:
        path = Path(name).expanduser()
        found = path.exists()
    except (OSError, ValueError, RuntimeError):
        found = False
    if not name or not found:
        raise UnknownModel(
            f"no model {name!r}: give {' or '.join(BUNDLED_MODELS)}, the path of a folder "
            f"written by `tui-gpt train`, or {PREFIX}PRESET; nothing is downloaded"
        )
    if path.is_file() and path.name in (CONFIG, WEIGHTS):
        path = path.parent
    if not path.is_dir():
        raise UnknownModel(f"{path} is a file; give the model's folder")
    return _read_folder(path, name, "folder")


def load_weights(source: ModelSource) -> GPT:
    """Build the model and fill in every weight: from the folder's file, or by the recipe.

    Raises:
        NotEnoughMemory: There is no room for an untrained model.
        DamagedModel: The file is incomplete, or a tensor is missing, left over, of another
            shape or of a kind that is no weight.
    """
    if source.recipe is not None:
        return draw(source.recipe, source.config, source.n_parameters)
    path = weights_file(source)
    check_tensors(path, read_header(path), source.config)  # refuses before torch is imported

    import safetensors.torch
    import torch

    from tui_gpt.model.gpt import GPT

    try:
        state = safetensors.torch.load_file(path)
    except Exception as error:  # the library raises several kinds of its own
        raise DamagedModel(f"{path} is damaged or incomplete") from error
    with torch.device("meta"), _nothing_drawn():
        model = GPT(source.config)
    state = {key: tensor.to(torch.float32) for key, tensor in state.items()}
    if source.config.tied:
        state["lm_head.weight"] = state["wte.weight"]
    model.load_state_dict(state, strict=True, assign=True)
    if source.config.tied:
        model.lm_head.weight = model.wte.weight
    model.requires_grad_(False)
    return model.eval()


def save_model(
    folder: Path, model: GPT, tokenizer: CharacterTokenizer, card: Mapping[str, Any]
) -> None:
    """Write a model folder, each file whole or not at all.

    Raises:
        CannotWrite: The folder is read-only or the disk is full.
    """
    import safetensors.torch

    config = {"format": FORMAT, **model.config.to_dict()}
    write_whole(folder / CONFIG, _json_bytes(config))
    write_whole(folder / CHARACTERS, tokenizer.to_json().encode())
    weights = safetensors.torch.save(stored_state(model), metadata={"format": "pt"})
    write_whole(folder / WEIGHTS, weights)
    write_whole(folder / CARD, _json_bytes(card))


def discard_model(folder: Path) -> None:
    """Remove what `save_model` wrote, and the folder if nothing else is in it."""
    try:
        for name in (CONFIG, CHARACTERS, WEIGHTS, CARD):
            (folder / name).unlink(missing_ok=True)
        folder.rmdir()
    except OSError:
        return  # someone else's file is in it, or the folder is no longer ours to change


def stored_state(model: GPT) -> dict[str, torch.Tensor]:
    """Give the weights a file holds: the state dict, with a tied head once."""
    state = {key: tensor.detach().contiguous() for key, tensor in model.state_dict().items()}
    if model.config.tied:
        del state["lm_head.weight"]
    return state


def read_card(source: ModelSource) -> dict[str, Any]:
    """Read how a model's weights came to be; empty where the folder has no card.

    Raises:
        DamagedModel: The card is there and is no JSON object.
    """
    if source.path is None:
        return {}
    path = source.path / CARD
    return _read_json(path) if path.exists() else {}


def weights_file(source: ModelSource) -> Path:
    """Name the file that the weights are read from.

    Raises:
        UnknownModel: An untrained model has none.
    """
    if source.path is None:
        raise UnknownModel(f"{source.name} is drawn from a seed; there is no file of weights")
    return source.path / WEIGHTS


def untrained_presets() -> tuple[str, ...]:
    """List the shapes that can be drawn: the named ones, and those of the bundled models."""
    return (*PRESETS, *BUNDLED_MODELS)


def read_header(path: Path) -> tuple[TensorEntry, ...]:
    """Read what a safetensors file says it holds, after checking that all of it is there.

    Raises:
        DamagedModel: The file is missing, is no regular file, or has another size than its
            header promises.
    """
    try:
        size = regular_size(path)
        with path.open("rb") as file:
            start = file.read(len(_LFS_POINTER))
            if start == _LFS_POINTER:
                raise DamagedModel(
                    f"{path} is a Git LFS pointer of {size} bytes; the real file was not "
                    "downloaded: run `git lfs pull` in its repository"
                )
            file.seek(8)
            length = int.from_bytes(start[:8], "little")
            if size < 8 or length > min(size - 8, _LARGEST_HEADER):
                raise DamagedModel(
                    f"{path} is damaged or incomplete: {size} bytes, and its header asks for "
                    f"{8 + length}"
                )
            header = json.loads(file.read(length))
        entries = {key: entry for key, entry in header.items() if key != "__metadata__"}
        end = max((entry["data_offsets"][1] for entry in entries.values()), default=0)
        if size != 8 + length + end:
            raise DamagedModel(
                f"{path} is damaged or incomplete: {size} bytes found, {8 + length + end} expected"
            )
        return tuple(
            TensorEntry(key, tuple(entry["shape"]), str(entry["dtype"]))
            for key, entry in entries.items()
        )
    except FileNotFoundError:
        raise DamagedModel(f"no weights here: {path} is missing") from None
    except OSError as error:
        raise DamagedModel(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError) as error:
        raise DamagedModel(f"{path} is damaged: its header cannot be read") from error


def check_tensors(path: Path, entries: tuple[TensorEntry, ...], config: GPTConfig) -> None:
    """Hold a file's tensors against the config: all there, none left over, shapes equal.

    Raises:
        DamagedModel: Names the first that differs, with both shapes.
    """
    expected = {parameter.name: parameter for parameter in _parameters(config)}
    found = {entry.key: entry for entry in entries}
    for name, parameter in expected.items():
        if name not in found:
            raise DamagedModel(f"{path} has no {name} {parameter.shape}; the config asks for it")
        entry = found[name]
        if entry.shape != parameter.shape:
            raise DamagedModel(
                f"{path}: {name} is {entry.shape} but the config asks for {parameter.shape}"
            )
        if entry.dtype not in _DTYPES:
            raise DamagedModel(f"{path}: {name} holds {entry.dtype}, which is no kind of weight")
    for key, entry in found.items():
        if key not in expected:
            raise DamagedModel(f"{path} has {key} {entry.shape}, which the config has no place for")


def _parameters(config: GPTConfig) -> list[Parameter]:
    """List every tensor a weight file holds, in stage order."""
    return [
        parameter
        for stage in stage_table(config, 1)
        for parameter in stage.parameters
        if not parameter.shared
    ]


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


def _read_folder(path: Path, name: str, kind: str) -> ModelSource:
    file = path / CONFIG
    if not file.exists():
        raise UnknownModel(f"no model in {path}: there is no {CONFIG}")
    raw = _read_json(file)
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
    return ModelSource(name, kind, path, config, tokenizer, count_parameters(config))


def _read_json(path: Path) -> dict[str, Any]:
    """Read one JSON object; a byte-order mark is allowed, the locale does not matter."""
    try:
        raw = json.loads(read_regular(path).decode("utf-8-sig"))
    except OSError as error:
        raise DamagedModel(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise DamagedModel(f"{path} is damaged: it is no JSON") from error
    if not isinstance(raw, dict):
        raise DamagedModel(f"{path} is damaged: it is no JSON object")
    return raw


def _json_bytes(content: Mapping[str, Any]) -> bytes:
    return (json.dumps(content, indent=2, allow_nan=False) + "\n").encode()


def _nothing_drawn() -> TorchFunctionMode:
    """Build modules without their random first weights, which a file's would replace at once.

    On the meta device torch would import its compiler for them: a second and a half, and a
    folder in the temporary directory.
    """
    from torch.overrides import TorchFunctionMode

    class NothingDrawn(TorchFunctionMode):
        def __torch_function__(
            self,
            func: Callable[..., Any],
            types: Sequence[type],
            args: tuple[Any, ...] = (),
            kwargs: Mapping[str, Any] | None = None,
        ) -> Any:
            kwargs = kwargs or {}
            if getattr(func, "__module__", None) == "torch.nn.init":
                return kwargs["tensor"] if "tensor" in kwargs else args[0]
            return func(*args, **kwargs)

    return NothingDrawn()
