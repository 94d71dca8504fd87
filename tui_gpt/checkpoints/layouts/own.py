"""A folder that this program wrote: config.json says "format": "tui-gpt"."""

from __future__ import annotations

from collections.abc import Iterator

from tui_gpt.checkpoints.layouts.layout import (
    Entries,
    Layout,
    LayoutConfig,
    Location,
    Wanted,
    owned_parameters,
)
from tui_gpt.checkpoints.names import CONFIG, FORMAT
from tui_gpt.config import GPTConfig
from tui_gpt.errors import DamagedModel, ImpossibleShape
from tui_gpt.records.vocabulary import VocabularySource


class OwnLayout(Layout):
    """Names, shapes and config are ours; nothing is decided from the tensors."""

    kind = "folder"
    title = "this config"
    reads_header_first = False

    def recognises(self, found: Location) -> bool:
        """Any "format" says whose it is; another one than ours is refused."""
        return found.config is not None and "format" in found.config

    def read_config(self, found: Location, entries: Entries) -> LayoutConfig:
        """Read the fields of `GPTConfig`; see `Layout.read_config`."""
        file = found.folder / CONFIG
        assert found.config is not None
        if found.config["format"] != FORMAT:
            raise DamagedModel(f'{file} does not say "format": "{FORMAT}"; it is no folder of ours')
        try:
            return LayoutConfig(GPTConfig.from_dict(found.config))
        except ImpossibleShape as error:
            raise DamagedModel(f"{file}: {error}") from error

    def wanted(self, config: GPTConfig) -> Iterator[Wanted]:
        """Every parameter under its own name."""
        for parameter in owned_parameters(config):
            yield Wanted(parameter.name, parameter.shape, (parameter.name,))

    def vocabulary(self, found: Location) -> VocabularySource:
        """`characters.json` is always there."""
        return VocabularySource("characters", found.folder)


OWN = OwnLayout()
