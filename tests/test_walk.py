"""By keys alone every stage of both models is reached, and what is read is what was computed."""

from __future__ import annotations

import pytest
from explorer import Explorer
from terminal import DOWN, END, HOME, LEFT, PAGE_DOWN, PAGE_UP, RIGHT, TAB, UP

from tui_gpt.files import BUNDLED_MODELS, assets
from tui_gpt.records.recording import Recording
from tui_gpt.records.stages import Stage, find_stage
from tui_gpt.records.trace import Trace
from tui_gpt.session import Session
from tui_gpt.views.palette import palette
from tui_gpt.views.profile import TerminalProfile
from tui_gpt.views.rows import plain_text
from tui_gpt.views.stage_text import heading


def recorded(model: str = "shakespeare") -> Recording:
    return Recording(assets() / "recordings" / f"{model}.safetensors")


def first_column() -> int:
    """The column that is read at first, and kept where a stage has that many."""
    return int(recorded().tensor("blocks.0.pattern").values[0, 18].argmax())


def value(trace: Trace, stage_id: str, *index: int) -> str:
    """What the screen must say of a cell: its float32, shortest digits."""
    return str(trace.tensor(stage_id).values[index])


def cell_of(stage: Stage, head: int, row: int, column: int) -> tuple[int, ...]:
    """The index that is read where (row, column) is wanted and the matrix may be smaller."""
    wanted = (head, row, column) if stage.axes[0] == "H" else (row, column)
    return tuple(min(i, size - 1) for i, size in zip(wanted, stage.shape, strict=False))


def wait_for_value(explorer: Explorer, wanted: str) -> None:
    explorer.wait_for(lambda _: explorer.reading.endswith(f"  {wanted}"), most=5)


def wait_for_chosen(explorer: Explorer, name: str) -> None:
    explorer.wait_for(lambda _: f" {name} " in f" {explorer.chosen} ", most=5)


def wait_for_heading(explorer: Explorer, *parts: str) -> None:
    explorer.wait_for(lambda _: all(part in explorer.panel[0] for part in parts), most=5)


@pytest.mark.parametrize("model", BUNDLED_MODELS)
def test_down_reaches_every_stage_and_each_shows_what_was_recorded(model: str) -> None:
    trace = recorded(model)
    stages = trace.run.stages
    assert len(stages) == {"shakespeare": 36, "shakespeare-2017": 35}[model]
    with Explorer() as explorer:
        column = first_column()
        if model != "shakespeare":
            explorer.choose_model(model)
        explorer.send(HOME)
        for stage in stages:
            wait_for_chosen(explorer, stage.name)
            wait_for_value(explorer, value(trace, stage.id, *cell_of(stage, 0, 18, column)))
            title = heading(
                stage, trace.run.model.config, head=0, width=44, palette=palette(TerminalProfile())
            )[0]
            wait_for_heading(explorer, plain_text(title).rstrip())
            shape = f"({', '.join(map(str, stage.shape))})"
            assert shape in explorer.chosen
            assert any(shape in row for row in explorer.panel)
            explorer.send(DOWN)
        explorer.press(DOWN)
        assert "Probabilities" in explorer.panel[0]  # the last one stays


def test_up_leads_back_and_home_and_end_go_to_the_ends() -> None:
    with Explorer() as explorer:
        explorer.send(UP)
        wait_for_heading(explorer, "attention scores")
        explorer.send("j")
        wait_for_heading(explorer, "attention pattern")
        explorer.send("k")
        wait_for_heading(explorer, "attention scores")
        for first, last in ((HOME, END), ("g", "G")):
            explorer.send(last)
            wait_for_heading(explorer, "Probabilities")
            explorer.send(first)
            wait_for_heading(explorer, "Tokens")
        explorer.press(UP, quiet=0.1)
        assert "Tokens" in explorer.panel[0]


def test_pages_go_through_the_list_by_a_screenful() -> None:
    with Explorer() as explorer:
        explorer.send(HOME)
        wait_for_heading(explorer, "Tokens")
        # 20 lines of list, two of them kept in sight.
        for wanted in ("Block 2 of 2 · stream entering", "Probabilities"):
            explorer.send(PAGE_DOWN)
            wait_for_heading(explorer, wanted)
        for wanted in ("Block 1 of 2 · stream leaving", "Tokens"):
            explorer.send(PAGE_UP)
            wait_for_heading(explorer, wanted)


def test_n_goes_to_the_same_stage_of_the_next_block() -> None:
    with Explorer() as explorer:
        explorer.send("n")
        wait_for_heading(explorer, "Block 2 of 2 · attention pattern")
        explorer.press("n", quiet=0.1)
        assert "Block 2 of 2 · attention pattern" in explorer.panel[0]
        explorer.send("N")
        wait_for_heading(explorer, "Block 1 of 2 · attention pattern")
        explorer.send(HOME)
        wait_for_heading(explorer, "Tokens")
        explorer.press("n", quiet=0.1)
        assert "Tokens" in explorer.panel[0]  # outside the blocks there is nowhere to go


def test_brackets_show_the_heads_one_after_the_other() -> None:
    trace = recorded()
    with Explorer() as explorer:
        key = first_column()
        for head in (1, 2, 3, 0):
            explorer.send("]")
            wait_for_heading(explorer, f"head {head + 1}/4")
            wait_for_value(explorer, value(trace, "blocks.0.pattern", head, 18, key))
            assert explorer.reading.startswith(f"L0H{head} · query 18 “e” reads key {key} ")
        explorer.send("[")
        wait_for_heading(explorer, "head 4/4")


def test_every_cell_can_be_read() -> None:
    trace = recorded()
    pattern, attn_out = "blocks.0.pattern", "blocks.0.attn_out"
    with Explorer() as explorer:
        for key in (TAB, "c"):
            explorer.send(key)
            explorer.wait_for("Tab stages")
            explorer.send(key)
            explorer.wait_for("Tab cells")
        explorer.send(TAB + HOME)
        wait_for_value(explorer, value(trace, pattern, 0, 18, 0))
        explorer.send(UP)
        wait_for_value(explorer, value(trace, pattern, 0, 17, 0))
        explorer.send(RIGHT + RIGHT)
        wait_for_value(explorer, value(trace, pattern, 0, 17, 2))
        assert explorer.reading.startswith("L0H0 · query 17 “b” reads key 2 “␣”")
        explorer.send(LEFT + DOWN)
        wait_for_value(explorer, value(trace, pattern, 0, 18, 1))
        explorer.send(END)
        wait_for_value(explorer, value(trace, pattern, 0, 18, 18))
        explorer.press(RIGHT + DOWN, quiet=0.1)  # there is nothing beyond the last cell
        wait_for_value(explorer, value(trace, pattern, 0, 18, 18))
        explorer.send(PAGE_UP)
        explorer.wait_for(lambda _: "query 18" not in explorer.reading)
        explorer.send(PAGE_UP + PAGE_UP)
        wait_for_value(explorer, value(trace, pattern, 0, 0, 18))
        assert explorer.reading.endswith("  0.0")  # the future gets nothing
        explorer.send(PAGE_DOWN * 3)
        wait_for_value(explorer, value(trace, pattern, 0, 18, 18))
        # The stages can be changed from here, and the cell comes along.
        explorer.send("..")
        wait_for_value(explorer, value(trace, attn_out, 18, 18))
        assert explorer.reading.startswith("position 18 “e” · feature 18 ")
        explorer.send(END)
        wait_for_value(explorer, value(trace, attn_out, 18, 63))
        assert "Tab stages" in explorer.footer
        explorer.send(",,")
        wait_for_value(explorer, value(trace, pattern, 0, 18, 18))


def test_a_cell_in_the_future_of_the_scores_says_that_it_is_masked() -> None:
    trace = recorded()
    with Explorer("--stage", "blocks.1.attn_scores", size=(100, 24)) as explorer:
        explorer.send(TAB + HOME + PAGE_UP * 3)
        wait_for_value(explorer, value(trace, "blocks.1.attn_scores", 0, 0, 0))
        assert explorer.reading.startswith("L1H0 · query 0 “T” asks key 0 “T” ")
        explorer.send(RIGHT)
        wait_for_value(explorer, "masked: it lies in the future")
        assert "  684 masked" in explorer.panel[-1]  # 4 heads · 19 · 18 / 2


def test_another_model_keeps_stage_head_and_cell() -> None:
    with Explorer() as explorer:
        explorer.send("n" + "]]" + TAB + HOME + RIGHT * 3 + UP * 5)
        wait_for_value(explorer, value(recorded(), "blocks.1.pattern", 2, 13, 3))
        explorer.choose_model("shakespeare-2017")
        wait_for_value(explorer, value(recorded("shakespeare-2017"), "blocks.1.pattern", 2, 13, 3))
        wait_for_heading(explorer, "Block 2 of 2 · attention pattern", "head 3/4")
        assert "Tab stages" in explorer.footer
        explorer.choose_model("shakespeare")
        wait_for_value(explorer, value(recorded(), "blocks.1.pattern", 2, 13, 3))


def test_a_stage_that_the_other_model_lacks_gives_way_to_its_neighbour() -> None:
    with Explorer("--stage", "ln_final") as explorer:
        explorer.choose_model("shakespeare-2017")
        wait_for_heading(explorer, "Logits")


def test_a_prompt_of_ones_own_changes_title_shapes_and_numbers() -> None:
    session = Session.open("shakespeare")
    trace = session.trace(session.prepare("What light"))
    with Explorer() as explorer:
        explorer.run_prompt("What light")
        wait_for_value(explorer, value(trace, "blocks.0.pattern", 0, 9, 9))
        assert "“What light”" in explorer.title
        assert "(4, 10, 10)" in explorer.chosen
        assert "(4, 10, 10)" in "\n".join(explorer.panel)
        assert "9 t" in "\n".join(explorer.panel)
        for stage in ("blocks.0.z", "blocks.0.attn_out", "blocks.0.resid_mid"):
            explorer.send(DOWN)
            index = cell_of(find_stage(trace.run.stages, stage), 0, 9, first_column())
            wait_for_value(explorer, value(trace, stage, *index))
        explorer.send(END)
        wait_for_value(explorer, value(trace, "probs", 9, first_column()))
        # The default prompt comes back from its recording.
        explorer.open_prompt()
        explorer.type("To be, or not to be")
        explorer.send("\r")
        explorer.wait_for(lambda _: "recorded" in explorer.status)
        wait_for_value(explorer, value(recorded(), "probs", 18, first_column()))


def test_d_shows_two_rows_a_line() -> None:
    with Explorer() as explorer:
        assert "▀" not in explorer.text
        explorer.send("d")
        explorer.wait_for("▀")
        assert any(row.startswith(" 0 T  1 o") for row in explorer.panel)
        explorer.send("d")
        explorer.wait_for(lambda _: "▀" not in explorer.text)
