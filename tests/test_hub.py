"""Names of the hub: looked up on this machine, never fetched."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest
from commands import command
from vocabularies import write_gpt2_model

from tui_gpt.checkpoints.find import find_model
from tui_gpt.checkpoints.hub_cache import cached_folder, cached_names
from tui_gpt.errors import UnknownModel

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache; whoever wants the network fails."""
    import huggingface_hub.constants

    def no_network(*_: object, **__: object) -> None:
        raise AssertionError("a connection was attempted")

    monkeypatch.setattr(socket.socket, "connect", no_network)
    monkeypatch.setattr(socket, "getaddrinfo", no_network)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("huggingface_hub.utils._cache_manager.HF_HUB_CACHE", tmp_path / "cache")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "cache"


def put(cache: Path, name: str) -> Path:
    """Put a tiny GPT-2 into the cache, its files where the hub's own tool puts them."""
    repo = cache / f"models--{name.replace('/', '--')}"
    (repo / "refs").mkdir(parents=True)
    (repo / "refs" / "main").write_text(COMMIT)
    (repo / "blobs").mkdir()
    snapshot = repo / "snapshots" / COMMIT
    snapshot.parent.mkdir()
    write_gpt2_model(snapshot, vocab_size=11)
    for number, file in enumerate(sorted(snapshot.iterdir())):
        blob = repo / "blobs" / f"{number:040x}"
        file.rename(blob)
        file.symlink_to(Path("..") / ".." / "blobs" / blob.name)
    return snapshot


def test_a_name_that_is_not_there_is_answered_at_once(cache: Path) -> None:
    for name in ("gpt2", "openai-community/gpt2", "no/such/name", "a b", "a..b", "é"):
        outcome = command("trace", "-m", name)  # case E13
        assert (outcome.code, outcome.out) == (1, ""), name
        assert "shakespeare" in outcome.err
        assert "untrained:PRESET" in outcome.err
    assert cached_names() == ()


def test_a_name_in_the_cache_is_its_folder(cache: Path) -> None:
    folder = put(cache, "some/model")
    assert cached_folder("some/model") == folder
    assert cached_names() == ("some/model",)
    source = find_model("some/model")
    assert (source.name, source.config.vocab_size) == ("some/model", 11)
    outcome = command("trace", "-m", "some/model", "--ids", "1,2,3", "--format", "json")
    assert outcome.code == 0
    assert outcome.json["model"]["name"] == "some/model"


@pytest.mark.parametrize("kept", ["gpt2", "openai-community/gpt2"])
def test_gpt2_has_two_names_on_the_hub(cache: Path, kept: str) -> None:
    folder = put(cache, kept)
    assert cached_folder("gpt2") == cached_folder("openai-community/gpt2") == folder
    assert cached_folder("other/gpt2") is None


def test_a_folder_of_that_name_comes_before_the_cache(cache: Path, tmp_path: Path) -> None:
    put(cache, "gpt2")
    write_gpt2_model(tmp_path / "gpt2", vocab_size=13)
    assert find_model("gpt2").config.vocab_size == 13


def test_models_lists_what_the_cache_holds(cache: Path) -> None:
    put(cache, "some/model")
    other = put(cache, "some/llama")
    (other / "config.json").resolve().write_text('{"model_type": "llama"}')
    listed = command("models", "--json").json
    assert "some/model" in [model["name"] for model in listed]
    assert "some/llama" not in [model["name"] for model in listed]
    printed = command("models").out
    assert "also in the Hugging Face cache, but not to be opened: some/llama" in printed


def test_without_the_extra_the_cache_is_not_looked_at(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(cache, "gpt2")
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    assert cached_folder("gpt2") is None
    assert cached_names() == ()
    with pytest.raises(UnknownModel, match="shakespeare"):
        find_model("gpt2")
