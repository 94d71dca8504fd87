"""Adding up the tensors that are really in a model's weight file. No tensor library is needed."""

from __future__ import annotations

from tui_gpt.model.checkpoint import ModelSource, check_tensors, read_header, weights_file
from tui_gpt.records.budget import Tally, tally


def tally_of(source: ModelSource) -> Tally | None:
    """Read the header of a model's file and add up its tensors; None where there is no file.

    Raises:
        DamagedModel: The file is incomplete or contradicts the config.
    """
    if source.path is None:
        return None
    path = weights_file(source)
    entries = read_header(path)
    check_tensors(path, entries, source.config)
    return tally(source.config, {entry.key: entry.shape for entry in entries})
