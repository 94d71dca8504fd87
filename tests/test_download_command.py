"""`tui-gpt download`: the one use of the network, here a server on this machine."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from commands import TUI_GPT, process

FILES = {
    "config.json": b'{"model_type": "gpt2"}',
    "merges.txt": b"#version: 0.2\n",
    "model.safetensors": bytes(1000),
    "pytorch_model.bin": bytes(10),
    "onnx/model.onnx": bytes(10),
}
COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Hub(BaseHTTPRequestHandler):
    """Answers as the hub does for one model."""

    slow = False
    asked: list[str] = []  # noqa: RUF012  # the handler is made anew for each request

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        self.asked.append(path)
        if path.startswith("/api/models/some/model"):
            siblings = [{"rfilename": name, "size": len(raw)} for name, raw in FILES.items()]
            listed = {"id": "some/model", "sha": COMMIT, "siblings": siblings}
            self._answer(json.dumps(listed).encode(), "application/json")
        elif path.startswith("/some/model/resolve/"):
            if self.slow and "safetensors" in path and self.command == "GET":
                time.sleep(30)
            self._answer(FILES[path.split("/", 5)[5]], "application/octet-stream")
        else:
            self.send_response(404)
            self.send_header("X-Error-Code", "RepoNotFound")
            self.send_header("Content-Length", "0")
            self.end_headers()

    do_HEAD = do_GET

    def _answer(self, content: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("ETag", f'"{len(content):040x}"')
        self.send_header("X-Repo-Commit", COMMIT)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Variables that make this machine the hub and an empty folder the cache."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    Hub.slow = False
    Hub.asked.clear()
    yield {
        "HF_ENDPOINT": f"http://127.0.0.1:{server.server_port}",
        "HF_HOME": str(tmp_path / "hub"),
        "HF_HUB_CACHE": str(tmp_path / "hub" / "hub"),
        "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_HUB_OFFLINE": "0",
        "NO_PROXY": "127.0.0.1",
    }
    server.shutdown()
    server.server_close()


def test_a_model_is_fetched_into_the_cache_with_one_kind_of_weights(
    hub: dict[str, str], tmp_path: Path
) -> None:
    done = process("download", "some/model", environ=hub)
    assert done.code == 0, done.err
    assert done.out == "tui-gpt explore -m some/model\n"
    said = done.err.splitlines()
    assert said[0] == "1 of 3  config.json  22 bytes"
    assert "3 of 3  model.safetensors  1,000 bytes" in said
    cache = tmp_path / "hub" / "hub" / "models--some--model"
    assert (cache / "refs" / "main").read_text() == COMMIT
    folder = cache / "snapshots" / COMMIT
    assert {path.name for path in folder.iterdir()} == {
        "config.json",
        "merges.txt",
        "model.safetensors",
    }
    found = subprocess.run(
        [sys.executable, "-c", "from tui_gpt.checkpoints import hub_cache\n"
         "print(hub_cache.cached_folder('some/model'), hub_cache.cached_names())"],
        env={**hub, "HF_ENDPOINT": "http://127.0.0.1:1", "PATH": ""},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert found.stdout.strip() == f"{folder} ('some/model',)"


def test_a_name_that_the_hub_does_not_know_is_one_line(hub: dict[str, str]) -> None:
    done = process("download", "some/other", environ=hub)
    assert (done.code, done.out) == (1, "")
    assert done.err == (
        "tui-gpt: cannot download some/other: there is no such model on the hub, or it is not "
        "public\n"
    )
    done = process("download", "no/such/name", environ=hub)
    assert (done.code, done.out, done.err.count("\n")) == (1, "", 1)


def test_without_a_network_it_is_one_line_and_soon(hub: dict[str, str]) -> None:
    started = time.monotonic()
    done = process("download", "gpt2", environ={**hub, "HF_ENDPOINT": "http://127.0.0.1:1"})
    assert time.monotonic() - started < 15
    assert (done.code, done.out, done.err.count("\n")) == (1, "", 1)
    assert done.err.startswith("tui-gpt: cannot download gpt2: the hub was not reached (")
    assert done.err.endswith("; is there a network?\n")
    done = process("download", "gpt2", environ={**hub, "HF_HUB_OFFLINE": "1"})
    assert (done.code, done.out, done.err.count("\n")) == (1, "", 1)
    assert "HF_HUB_OFFLINE" in done.err


def test_without_the_extra_it_says_what_to_install(tmp_path: Path) -> None:
    package = tmp_path / "huggingface_hub"  # stands before the real one
    package.mkdir()
    (package / "__init__.py").write_text("raise ImportError('not here')")
    done = process("download", "gpt2", environ={"PYTHONPATH": str(tmp_path)})
    assert (done.code, done.out) == (1, "")
    assert done.err == (
        "tui-gpt: cannot download gpt2: huggingface_hub is not installed: pip install "
        "huggingface_hub\n"
    )


def test_ctrl_c_ends_it_without_a_traceback(hub: dict[str, str]) -> None:
    Hub.slow = True
    running = subprocess.Popen(
        [*TUI_GPT, "download", "some/model"],
        env={**hub, "PATH": ""},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert running.stderr is not None
    for line in running.stderr:
        if "model.safetensors" in line:
            break
    time.sleep(0.5)
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=10)
    assert (running.returncode, out, err) == (130, "", "\n")  # click ends the line
