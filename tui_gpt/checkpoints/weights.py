"""Reading a model's weights, and writing model folders of our own.

Each file of a folder is whole or not there:

    config.json         "format": "tui-gpt" and the fields of GPTConfig
    model.safetensors   the state dict; a tied head is not stored twice
    characters.json     the vocabulary, in id order
    card.json           how the weights came to be

Nothing is ever filled in: every tensor of the config must be there, in its shape, and no other.
Weights in float32 stay in the file's own memory and are not held twice: GPT-2's transposed
matrices are views of it. Others become float32, tensor by tensor.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tui_gpt.checkpoints.find import ModelSource, plan_of
from tui_gpt.checkpoints.headers import TensorEntry
from tui_gpt.checkpoints.memory_check import check_memory
from tui_gpt.checkpoints.names import CARD, CHARACTERS, CONFIG, FORMAT, WEIGHTS
from tui_gpt.checkpoints.placement import Placement, Plan, Skipped
from tui_gpt.checkpoints.weight_files import open_tensors
from tui_gpt.config import GPTConfig
from tui_gpt.errors import DamagedModel, UnknownModel
from tui_gpt.files import read_object, write_whole
from tui_gpt.model.untrained import draw

if TYPE_CHECKING:
    import torch
    from torch.overrides import TorchFunctionMode

    from tui_gpt.model.gpt import GPT

Checking = Callable[[int, int], None]
"""Told before each tensor how many are read and how many there are; what it raises ends it."""


@dataclass(frozen=True, slots=True)
class LoadedWeights:
    """A model with its numbers, and what was seen while they were read."""

    model: GPT
    plan: Plan | None
    """None for an untrained model."""
    broken: Mapping[str, str]
    """By file key: what a tensor holds that is no number."""


def load_weights(source: ModelSource, checking: Checking = lambda done, count: None) -> GPT:
    """Build the model and fill in every weight; see `read_weights`."""
    return read_weights(source, checking).model


def read_weights(
    source: ModelSource, checking: Checking = lambda done, count: None
) -> LoadedWeights:
    """Build the model and fill in every weight: from the files, or by the recipe.

    Args:
        source: What was found.
        checking: Told of each tensor whose numbers are looked at.

    Raises:
        NotEnoughMemory: There is no room for the weights.
        DamagedModel: A file is incomplete, or a tensor is missing, left over, of another
            shape or of a kind that is no weight.
    """
    if source.recipe is not None:
        check_memory(source.name, 4 * source.n_parameters)
        return LoadedWeights(draw(source.recipe, source.config), None, {})
    assert source.files is not None
    plan = plan_of(source)  # refuses before torch is imported
    check_memory(source.name, 4 * source.n_parameters)

    import torch

    from tui_gpt.model.gpt import GPT

    tensor = open_tensors(source.files)
    state: dict[str, torch.Tensor] = {}
    broken: dict[str, str] = {}
    count = len(plan.placements) + len(plan.skipped)
    for done, placement in enumerate(plan.placements):
        checking(done, count)
        stored = tensor(placement.entry)
        if said := _broken(stored):
            broken[placement.entry.key] = said
        state.update(_placed(placement, stored.to(torch.float32)))
    for done, skipped in enumerate(plan.skipped, len(plan.placements)):
        checking(done, count)
        _check_skipped(skipped, source.config, tensor)
    with torch.device("meta"), _nothing_drawn():
        model = GPT(source.config)
    if source.config.tied:
        state["lm_head.weight"] = state["wte.weight"]
    model.load_state_dict(state, strict=True, assign=True)
    if source.config.tied:
        model.lm_head.weight = model.wte.weight
    model.requires_grad_(False)
    return LoadedWeights(model.eval(), plan, broken)


def save_model(folder: Path, model: GPT, characters: str, card: Mapping[str, Any]) -> None:
    """Write a model folder, each file whole or not at all.

    Args:
        folder: Must be there.
        model: What to keep.
        characters: The vocabulary as `characters.json` holds it.
        card: How the weights came to be.

    Raises:
        CannotWrite: The folder is read-only or the disk is full.
    """
    import safetensors.torch

    config = {"format": FORMAT, **model.config.to_dict()}
    write_whole(folder / CONFIG, _json_bytes(config))
    write_whole(folder / CHARACTERS, characters.encode())
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
    if source.path is None or not source.ours:
        return {}
    path = source.path / CARD
    return read_object(path) if path.exists() else {}


def weights_files(source: ModelSource) -> tuple[Path, ...]:
    """Name the files that the weights are read from.

    Raises:
        UnknownModel: An untrained model has none.
    """
    if source.files is None:
        raise UnknownModel(f"{source.name} is drawn from a seed; there is no file of weights")
    return source.files.paths


def _placed(placement: Placement, tensor: torch.Tensor) -> dict[str, torch.Tensor]:
    """Give a tensor as the parameters it becomes, with no number moved if that can be."""
    names = placement.wanted.parameters
    return dict(zip(names, placement.wanted.arrangement.split(tensor, len(names)), strict=True))


def _broken(tensor: torch.Tensor) -> str:
    """Say what of a tensor is no number; the lowest and highest tell, at no memory."""
    import torch

    lowest, highest = (float(bound) for bound in torch.aminmax(tensor))
    if lowest != lowest:
        return "holds NaN"
    return "holds infinity" if math.isinf(lowest) or math.isinf(highest) else ""


def _check_skipped(
    skipped: Skipped, config: GPTConfig, tensor: Callable[[TensorEntry], torch.Tensor]
) -> None:
    """Look at what is left out, where the model computes it: the mask and the frequencies.

    Raises:
        DamagedModel: It holds something else than what is computed.
    """
    import torch

    entry = skipped.entry
    if skipped.kind == "mask":
        mask = tensor(entry)[0, 0] != 0
        if not torch.equal(mask, torch.ones_like(mask).tril()):
            raise DamagedModel(
                f"{entry.path}: {entry.key} is no causal mask, and only that one is computed here"
            )
    elif skipped.kind == "frequencies" and not entry.path.name.endswith(".gguf"):
        computed = torch.tensor(config.rotary_frequencies)
        stored = tensor(entry).float()
        # Files in half precision hold them rounded.
        if stored.shape != computed.shape or not torch.allclose(stored, computed, rtol=0.01):
            raise DamagedModel(
                f"{entry.path}: {entry.key} holds other frequencies than the config gives"
            )


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
