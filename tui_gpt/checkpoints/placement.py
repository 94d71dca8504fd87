"""Which tensor of a file becomes which parameter: all there, none left over, shapes equal.

Each file key has one place or none, each parameter one key: anything missing, left over or of
another shape is refused by name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from tui_gpt.checkpoints.headers import TensorEntry, is_weight
from tui_gpt.checkpoints.layouts.layout import Entries, Layout, NotAWeight, Wanted
from tui_gpt.config import GPTConfig
from tui_gpt.errors import DamagedModel

_NUMBER = re.compile(r"\.\d+\.")


@dataclass(frozen=True, slots=True)
class Placement:
    """A tensor of a file, and the parameters it becomes."""

    entry: TensorEntry
    wanted: Wanted


@dataclass(frozen=True, slots=True)
class Skipped:
    """A tensor of a file that is no parameter."""

    entry: TensorEntry
    kind: NotAWeight


@dataclass(frozen=True, slots=True)
class Plan:
    """Where everything in a file goes."""

    placements: tuple[Placement, ...]
    """In the order of the stages; every parameter is in exactly one."""
    skipped: tuple[Skipped, ...]


def by_name(entries: Iterable[TensorEntry], layout: Layout) -> dict[str, TensorEntry]:
    """Give the tensors of a file by their names without prefixes.

    Raises:
        DamagedModel: Two keys are one name.
    """
    found: dict[str, TensorEntry] = {}
    for entry in entries:
        name = layout.bare(entry.key)
        if name in found:
            raise DamagedModel(
                f"{entry.path} has {found[name].key} and {entry.key}, which are one tensor's name"
            )
        found[name] = entry
    return found


def place(found: Entries, config: GPTConfig, layout: Layout, where: object) -> Plan:
    """Hold a file's tensors against the config.

    Args:
        found: By name.
        config: Whether head and table are one is decided already.
        layout: Whose names these are.
        where: The file or folder, for messages.

    Raises:
        DamagedModel: Names the first that differs, with both shapes.
    """
    wanted = tuple(layout.wanted(config))
    names = {one.name for one in wanted}
    skipped = []
    left_over = []
    for name, entry in found.items():
        if name not in names:
            tied = config.tied and name == layout.head_name(config)
            kind = "tied" if tied else layout.not_a_weight(name, entry, config)
            if kind is None:
                left_over.append((name, entry))
            else:
                skipped.append(Skipped(entry, kind))
    _refuse_strangers(left_over, names, layout, config)
    placements = tuple(Placement(_checked(found, one, where), one) for one in wanted)
    for _, entry in left_over:
        raise DamagedModel(
            f"{entry.path} has {entry.key} {entry.shape}, which the config has no place for"
        )
    return Plan(placements, tuple(skipped))


def _checked(found: Entries, wanted: Wanted, where: object) -> TensorEntry:
    """Find one tensor, and hold its shape and kind against what is asked for."""
    entry = found.get(wanted.name)
    if entry is None:
        raise DamagedModel(f"{where} has no {wanted.name} {wanted.shape}; the config asks for it")
    if entry.shape != wanted.shape:
        raise DamagedModel(
            f"{entry.path}: {entry.key} is {entry.shape} but the config asks for {wanted.shape}"
        )
    if not is_weight(entry.dtype):
        raise DamagedModel(
            f"{entry.path}: {entry.key} holds {entry.dtype}, which is no kind of weight"
        )
    return entry


def _refuse_strangers(
    left_over: list[tuple[str, TensorEntry]], names: set[str], layout: Layout, config: GPTConfig
) -> None:
    """Refuse a tensor whose name the family does not have in any block: it is another one."""
    if not layout.reads_header_first:
        return
    known = {_NUMBER.sub(".N.", name) for name in (*names, layout.head_name(config))}
    known |= {name.replace(".weight", ".bias") for name in known}
    for name, entry in left_over:
        if _NUMBER.sub(".N.", name) not in known:
            raise DamagedModel(
                f"unsupported architecture: {entry.path} has {entry.key} {entry.shape}, and "
                f"{layout.title} has no tensor of that name"
            )
