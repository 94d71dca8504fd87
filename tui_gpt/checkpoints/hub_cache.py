"""Models in the local Hugging Face cache, by the names they have on the hub.

Looking a name up and listing the cache read folders of this machine, never the network;
`download` alone uses it. All of it goes through huggingface_hub, an optional extra; without it
the cache is not looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tui_gpt.errors import CannotDownload

_ORGANISATION = "openai-community"
"""Where the hub keeps GPT-2, whose models also go by their bare names."""

_BESIDE = (
    "config.json", "vocab.json", "merges.txt", "tokenizer.json", "tokenizer_config.json",
    "special_tokens_map.json", "added_tokens.json",
)  # fmt: skip
"""What a model needs besides its weights, as far as it is there."""

_PATIENCE = 10.0
"""Seconds to wait for the hub's first answer."""

_WEIGHTS = ((".safetensors", ".safetensors.index.json"), (".bin", ".bin.index.json"))
"""Endings of weight files, the kind that is preferred first."""


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


def cached_names() -> tuple[str, ...]:
    """List the models of the cache that have a config, whatever they are."""
    try:
        from huggingface_hub import scan_cache_dir
        from huggingface_hub.errors import CacheNotFound
    except ImportError:
        return ()
    try:
        found = scan_cache_dir().repos
    except (CacheNotFound, OSError, ValueError):
        return ()
    names = sorted(str(repo.repo_id) for repo in found if repo.repo_type == "model")
    return tuple(name for name in names if cached_folder(name) is not None)


def download(name: str, say: Callable[[str], None], *, bars: bool) -> Path:
    """Fetch a model's config, vocabulary and weights into the cache.

    Args:
        name: As on the hub.
        say: Takes a line before each file.
        bars: Draw huggingface_hub's own bars.

    Returns:
        The folder in the cache.

    Raises:
        CannotDownload: The extra is not installed, there is no network, no such model, or the
            disk is full.
    """
    try:
        import huggingface_hub
        from huggingface_hub.utils.tqdm import disable_progress_bars
    except ImportError:
        raise CannotDownload(
            name, "huggingface_hub is not installed: pip install huggingface_hub"
        ) from None
    if not bars:
        disable_progress_bars()
    try:
        info = huggingface_hub.HfApi().model_info(name, files_metadata=True, timeout=_PATIENCE)
        sizes = {file.rfilename: file.size or 0 for file in info.siblings or ()}
        wanted = _wanted(name, tuple(sizes))
        for number, file in enumerate(wanted, 1):
            say(f"{number} of {len(wanted)}  {file}  {sizes[file]:,} bytes")
            path = huggingface_hub.hf_hub_download(name, file)
    except CannotDownload:
        raise
    except Exception as error:  # the library, its HTTP client and the disk each have their own
        raise CannotDownload(name, _reason(error)) from error
    return Path(path).parent


def _wanted(name: str, files: tuple[str, ...]) -> tuple[str, ...]:
    """Choose the files that this program reads: one kind of weights, at the top of the folder."""
    top = [file for file in files if "/" not in file]
    for endings in _WEIGHTS:
        weights = [file for file in top if file.endswith(endings)]
        if weights and "config.json" in top:
            return (*(file for file in _BESIDE if file in top), *weights)
    raise CannotDownload(name, "it has no config.json with weights beside it")


def _reason(error: Exception) -> str:
    """Say in one line why a download ended, by the kinds of error that huggingface_hub names."""
    from huggingface_hub import errors

    if isinstance(error, errors.GatedRepoError):
        return "its owner gives access on request only; log in with the hub's own tool first"
    if isinstance(error, errors.RepositoryNotFoundError | errors.HFValidationError):
        return "there is no such model on the hub, or it is not public"
    if isinstance(error, errors.OfflineModeIsEnabled):
        return "the network is switched off for huggingface_hub (HF_HUB_OFFLINE)"
    if isinstance(error, errors.HfHubHTTPError):
        return f"the hub answered: {_first_line(error)}"
    if isinstance(error, OSError) and error.strerror and not isinstance(error, ConnectionError):
        return error.strerror
    return f"the hub was not reached ({_first_line(error)}); is there a network?"


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__
