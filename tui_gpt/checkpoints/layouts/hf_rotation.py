"""How a Hugging Face config says rotary positions: two forms, an older and a newer one.

older    "rope_theta": 10000.0, "rope_scaling": {"rope_type": "llama3", …} or null
newer    "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, …}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tui_gpt.checkpoints.layouts.hf_config import ConfigReader
from tui_gpt.config import RopeScaling
from tui_gpt.errors import ImpossibleShape

_THETA = 10000.0


def read_rotation(read: ConfigReader) -> tuple[float, RopeScaling | None]:
    """Read the base of the frequencies and how they are stretched.

    Raises:
        DamagedModel: A kind of stretching that is not computed here, or a number missing.
    """
    parameters = rope_parameters(read)
    given = parameters.get("rope_theta", read.given("rope_theta"))
    if given is None:
        read.remarks.append(f"{read.path.name} gives no rope_theta; the usual {_THETA} is used")
        given = _THETA
    kind = parameters.get("rope_type", parameters.get("type", "default"))
    if kind == "default":
        return given, None
    if kind != "llama3":
        raise read.damaged(f"rope_type is {kind!r}, which is not computed here")
    try:
        return given, RopeScaling(
            factor=parameters["factor"],
            low_freq_factor=parameters["low_freq_factor"],
            high_freq_factor=parameters["high_freq_factor"],
            original=parameters["original_max_position_embeddings"],
        )
    except KeyError as error:
        raise read.damaged(f"rope_scaling has no {error.args[0]}") from error
    except ImpossibleShape as error:
        raise read.damaged(str(error)) from error


def rope_parameters(read: ConfigReader) -> Mapping[str, Any]:
    """Give what either form says, empty where there is nothing."""
    newer, older = read.given("rope_parameters"), read.given("rope_scaling")
    for name, given in (("rope_parameters", newer), ("rope_scaling", older)):
        if given is not None and not isinstance(given, dict):
            raise read.damaged(f"{name} is {given!r}; it must be an object")
    return newer or older or {}
