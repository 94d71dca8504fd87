"""Models in the local Hugging Face cache, by the names they have on the hub.

Looking a name up reads folders of this machine and never the network. All of it goes through
huggingface_hub, an optional extra; without it the cache is not looked at.
"""

from __future__ import annotations

from pathlib import Path

_ORGANISATION = "openai-community"
"""Where the hub keeps GPT-2, whose models also go by their bare names."""


def cached_folder(name: str) -> Path | None:
    """Find the folder of a model in the cache: its newest revision that has a config.

    Args:
        name: As on the hub, such as `gpt2` or `openai-community/gpt2`.
    """
    try:
        from huggingface_hub import try_to_load_from_cache
        from huggingface_hub.errors import HFValidationError
    except ImportError:
        return None
    short, slash, _ = name.rpartition("/")
    names = [name] if slash else [name, f"{_ORGANISATION}/{name}"]
    if slash and short == _ORGANISATION:
        names.append(name.removeprefix(f"{_ORGANISATION}/"))
    for known in names:
        try:
            config = try_to_load_from_cache(known, "config.json")
        except (HFValidationError, OSError, ValueError):
            return None
        if isinstance(config, str):
            return Path(config).parent
    return None
