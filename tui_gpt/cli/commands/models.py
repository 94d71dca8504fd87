"""`tui-gpt models`: which models can be opened by name, trained or drawn from a seed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import click

from tui_gpt.cli.options import Globals, global_options
from tui_gpt.errors import TuiGPTError
from tui_gpt.files import BUNDLED_MODELS

if TYPE_CHECKING:
    from tui_gpt.checkpoints.find import ModelSource

SCHEMA = 1


@click.command(help="List the models that can be opened by name, the default first.")
@click.option(
    "--inspect",
    "inspected",
    metavar="MODEL",
    help="Read one model and report each tensor of its files: name, shape, what became of it.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON: an array, or one report.")
@global_options
def models(*, inspected: str | None, as_json: bool, common: Globals) -> None:
    """Read every model's config, then print; no weights are needed, unless one is inspected."""
    if inspected is not None:
        from tui_gpt.cli.commands.models_inspect import inspect

        inspect(inspected, as_json=as_json, common=common)
        return
    from rich.text import Text

    from tui_gpt.checkpoints.find import find_model, untrained_presets
    from tui_gpt.checkpoints.hub_cache import cached_names
    from tui_gpt.cli.output import drawn, write
    from tui_gpt.session import Session
    from tui_gpt.views.commands.trace import model_lines
    from tui_gpt.views.model_text import untrained_lines
    from tui_gpt.views.text import sanitize, transliterate

    sources = [find_model(name) for name in BUNDLED_MODELS]
    cached, refused = _openable(cached_names())
    sources += cached
    untrained = [find_model(f"untrained:{preset}") for preset in untrained_presets()]
    if as_json:
        entries = ",\n".join(_entry(source) for source in (*sources, *untrained))
        write(["[\n", entries, "\n]\n"])
        return
    profile = common.profile()

    def lines() -> Iterator[Text]:
        for i, source in enumerate(sources):
            if i:
                yield Text()
            yield from model_lines(Session(source).facts, str(source.path), i == 0, profile.glyphs)
        if refused:
            yield Text()
            yield Text(transliterate(sanitize(_others(refused)), profile.glyphs))
        yield Text()
        yield from untrained_lines([Session(source).facts for source in untrained], profile.glyphs)

    write(drawn(lines(), profile))


def _openable(names: Iterable[str]) -> tuple[list[ModelSource], list[str]]:
    """Open what can be opened of the cache; the names of the others come second."""
    from tui_gpt.checkpoints.find import find_model

    sources, refused = [], []
    for name in names:
        try:
            sources.append(find_model(name))
        except TuiGPTError:
            refused.append(name)
    return sources, refused


def _others(names: list[str]) -> str:
    """Say what the cache holds besides; opening one of them says why it cannot be."""
    return f"also in the Hugging Face cache, but not to be opened: {', '.join(names)}"


def _entry(source: ModelSource) -> str:
    """Write one model as a line of JSON."""
    return json.dumps(
        {
            "schema": SCHEMA,
            "name": source.name,
            "kind": source.kind,
            "path": None if source.path is None else str(source.path),
            "parameters": source.n_parameters,
            "config": source.config.to_dict(),
        },
        allow_nan=False,
    )
