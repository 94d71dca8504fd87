"""The screen's cost depends on the screen, not on the tensor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median
from time import perf_counter

import pytest

from tui_gpt.app.panes.pane import Picture, Scene
from tui_gpt.app.panes.pipeline import PipelinePane
from tui_gpt.app.place.place import Place
from tui_gpt.app.work.questions import Answers
from tui_gpt.checkpoints.weights import save_model
from tui_gpt.config import GPTConfig
from tui_gpt.model.gpt import GPT
from tui_gpt.model.train import initialise
from tui_gpt.records.trace import Trace
from tui_gpt.session import Session
from tui_gpt.tokenization.characters import CharacterTokenizer
from tui_gpt.views.palette import palette
from tui_gpt.views.profile import TerminalProfile

AT_MOST = 1.5
"""Times the cost of a (19, 64) stage; the issue's figure."""


class Looking:
    """One model, one prompt, pane 1."""

    def __init__(self, folder: Path, *, n_positions: int, n_embd: int) -> None:
        config = GPTConfig(
            n_layer=1,
            n_head=n_embd // 16,
            n_embd=n_embd,
            n_inner=4 * n_embd,
            block_size=n_positions,
            vocab_size=26,
        )
        model = GPT(config)
        initialise(model, 1)
        folder.mkdir()
        save_model(folder, model, CharacterTokenizer("abcdefghijklmnopqrstuvwxyz").to_json(), {})
        self.session = Session.open(str(folder))
        run = self.session.prepare("abcdefghijklmnopqrstuvwxyz" * 40, crop=True)
        self.trace: Trace = self.session.trace(run)
        self.answers = Answers()
        self.answers.ready = True
        self.pane = PipelinePane()
        self.place = Place(run, 0, row=0)

    def at(self, stage_id: str) -> Place:
        ids = [stage.id for stage in self.place.run.stages]
        return replace(self.place, index=ids.index(stage_id), zone="cells")

    def draw(self, place: Place) -> Picture:
        """Draw until nothing more is wanted, as the screen does."""
        while True:
            scene = Scene(
                place, self.answers, self.session.token, 80, 20, palette(TerminalProfile())
            )
            picture = self.pane.draw(scene)
            if not scene.wanted:
                return picture
            for question in scene.wanted:
                answer = question.answer(self.trace, self.session, lambda: None)
                self.answers.keep(question, answer)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Looking:
    return Looking(tmp_path_factory.mktemp("small") / "m", n_positions=19, n_embd=16)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Looking:
    return Looking(tmp_path_factory.mktemp("large") / "m", n_positions=1024, n_embd=768)


def ratio(large: Callable[[int], object], small: Callable[[int], object]) -> float:
    """Compare two kinds of work in turn, so that a busy machine slows both."""
    ratios = []
    for i in range(25):
        start = perf_counter()
        small(i)
        between = perf_counter()
        large(i)
        ratios.append((perf_counter() - between) / (between - start))
    return median(ratios)


@pytest.mark.parametrize("explained", [False, True], ids=["painted", "explained"])
def test_a_large_stage_is_moved_through_like_a_small_one(
    small: Looking, large: Looking, explained: bool
) -> None:
    def step(looking: Looking) -> Callable[[int], object]:
        place = replace(looking.at("blocks.0.mlp_post"), explained=explained)
        looking.draw(place)
        rows, columns = place.matrix_shape
        assert looking is small or (rows, columns) == (1024, 3072)
        return lambda i: looking.draw(place.at_cell(i * 37 % rows, i * 131 % columns))

    assert ratio(step(large), step(small)) < AT_MOST


def test_the_stages_that_are_compared_have_the_sizes_of_the_issue(
    small: Looking, large: Looking
) -> None:
    assert small.at("blocks.0.mlp_post").matrix_shape == (19, 64)
    assert large.at("blocks.0.mlp_post").matrix_shape == (1024, 3072)


def test_an_overview_is_pooled_once(large: Looking) -> None:
    place = replace(large.at("blocks.0.mlp_post"), overview=True)
    large.draw(place)
    start = perf_counter()
    large.draw(place.at_cell(500, 1500))
    assert perf_counter() - start < 0.05  # pooling three million values takes longer
