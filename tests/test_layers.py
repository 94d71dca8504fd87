"""The design's arrows, the types and the style: checked by the tools, and once more at run time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

HEAVY = ("torch", "tiktoken", "numpy", "textual")


def run(*command: str) -> None:
    """Run a tool of this environment over the checkout; what it complains of is the failure."""
    done = subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def imported_after(code: str) -> set[str]:
    """Run code in a process of its own, and give the names of the modules it has then."""
    probe = f"{code}\nimport sys; print('\\n' + ' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.splitlines()[-1].split())


def import_all(package: str) -> str:
    """Give code that imports every module of a package."""
    return (
        f"import importlib, pkgutil, tui_gpt.{package} as package\n"
        "folders, inside = getattr(package, '__path__', []), f'{package.__name__}.'\n"
        "for found in pkgutil.walk_packages(folders, inside):\n"
        "    importlib.import_module(found.name)"
    )


def test_no_arrow_of_the_design_is_reversed() -> None:
    run("-c", "from importlinter.cli import lint_imports_command as lint; lint(['--no-cache'])")


def test_the_linter_has_nothing_to_say() -> None:
    run("-m", "ruff", "check", "--no-cache", ".")


def test_every_file_is_formatted() -> None:
    run("-m", "ruff", "format", "--check", "--no-cache", ".")


def test_the_types_are_strict_in_the_package_and_in_its_tests() -> None:
    run("-m", "mypy")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["--version"],
        ["explore", "--help"],
        ["trace", "--help"],
        ["models", "--help"],
        ["train", "--help"],
    ],
)
def test_help_and_version_import_nothing_heavy(arguments: list[str]) -> None:
    found = imported_after(f"import tui_gpt.cli; assert tui_gpt.cli.run({arguments!r}) == 0")
    assert not found & set(HEAVY)


@pytest.mark.parametrize(
    "module", ["config", "errors", "files", "records", "records.stages", "records.trace", "session"]
)
def test_shapes_and_stages_are_known_before_anything_heavy_is_imported(module: str) -> None:
    assert not imported_after(f"import tui_gpt.{module}") & set(HEAVY)


def test_the_stage_table_of_gpt2_is_built_without_anything_heavy() -> None:
    found = imported_after(
        "from tui_gpt.config import PRESETS; from tui_gpt.records.stages import stage_table\n"
        "assert len(stage_table(PRESETS['gpt2-xl'], 1024)) == 48 * 15 + 6"
    )
    assert not found & set(HEAVY)


def test_records_are_plain() -> None:
    assert not imported_after(import_all("records")) & {"torch", "tiktoken", "textual", "rich"}


def test_views_draw_without_a_model_and_without_an_app() -> None:
    found = imported_after(import_all("views"))
    assert not found & {"torch", "tiktoken", "textual"}
    layers = ("session", "analysis", "trace", "model", "app", "cli")
    assert not found & {f"tui_gpt.{layer}" for layer in layers}


@pytest.mark.parametrize(
    "layer", ["config", "errors", "files", "records", "model", "trace", "analysis", "session"]
)
def test_below_the_app_there_is_neither_textual_nor_rich(layer: str) -> None:
    assert not imported_after(import_all(layer)) & {"textual", "rich", "click"}


def test_a_session_answers_a_prompt_before_torch_is_imported() -> None:
    opened = (
        "from tui_gpt.session import Session\n"
        "session = Session.open('shakespeare')\n"
        "run = session.prepare('To be, or not to be')\n"
        "session.facts, session.parameters(), session.card(), session.weights_sha256()\n"
    )
    assert not imported_after(opened) & set(HEAVY)
    assert "torch" in imported_after(opened + "session.trace(run).prediction()")


def test_the_environment_is_read_in_one_place() -> None:
    readers = [
        str(file.relative_to(ROOT))
        for file in sorted((ROOT / "tui_gpt").rglob("*.py"))
        if "os.environ" in file.read_text() or "getenv" in file.read_text()
    ]
    assert readers == ["tui_gpt/cli/environment.py"]
