"""What a key costs on the wire, and in time: the budgets of an 80 x 24 terminal."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from statistics import median

import pytest
from explorer import Explorer
from terminal import DOWN, HOME, LEFT, RIGHT, TAB, UP

STAGES = 36


@pytest.fixture(scope="module", params=["truecolor", ""], ids=["truecolor", "256"])
def explorer(request: pytest.FixtureRequest) -> Iterator[Explorer]:
    """One program for each upper rung; torch is loaded."""
    with Explorer(env={"COLORTERM": request.param}) as explorer:
        explorer.wait_until_loaded()
        explorer.settle()
        yield explorer


def cost(explorer: Explorer, key: str) -> int:
    """The bytes of one key that moves the cell."""
    before, read = len(explorer.received), explorer.reading
    explorer.send(key)
    explorer.wait_for(lambda _: explorer.reading != read, most=5)
    explorer.settle(quiet=0.02)
    return len(explorer.received) - before


def test_nothing_is_sent_while_nobody_types(explorer: Explorer) -> None:
    sent, used = len(explorer.received), cpu_seconds(explorer.pid)
    explorer.settle(quiet=5, most=5)
    assert len(explorer.received) == sent
    assert cpu_seconds(explorer.pid) - used < 0.02 * 5


def test_reading_another_cell_costs_little_at_every_column(explorer: Explorer) -> None:
    explorer.send(TAB + HOME)
    explorer.settle(quiet=0.1)
    assert max(cost(explorer, RIGHT) for _ in range(18)) <= 1_500
    assert max(cost(explorer, key) for key in (UP, UP, LEFT, DOWN)) <= 1_500
    explorer.send(".." + HOME)  # attn_out, 64 wide: the window scrolls after its last column
    explorer.wait_for(lambda _: "feature 0 " in explorer.reading)
    explorer.settle(quiet=0.1)
    shown = explorer.panel[6]
    costs: list[int] = []
    while explorer.panel[6] == shown or len(costs) < 10:
        costs.append(cost(explorer, RIGHT))
        if "feature 63 " in explorer.reading:
            break
    assert len(costs) >= 30
    assert max(costs[:-1]) <= 1_500
    explorer.send(",," + TAB)
    explorer.wait_for("Tab cells")


def test_a_key_is_echoed_within_a_tenth_of_a_second(explorer: Explorer) -> None:
    def echo(key: str) -> float:
        sent, before = time.monotonic(), len(explorer.received)
        explorer.send(key)
        explorer.wait_for(lambda _: len(explorer.received) > before)
        waited = time.monotonic() - sent
        explorer.settle(quiet=0.05)
        return waited

    steps = [echo(key) for key in (DOWN, UP) * 4]
    explorer.press(TAB)
    moves = [echo(key) for key in (LEFT, RIGHT) * 4]
    explorer.press(TAB)
    # The typical key; a single one may meet another process on a busy machine.
    assert median(steps) < 0.1
    assert median(moves) < 0.1


@pytest.mark.parametrize(
    ("options", "colorterm", "most"),
    [((), "", 25_000), (("--ascii", "--color", "none"), "truecolor", 6_000)],
    ids=["256 colours", "ASCII"],
)
def test_a_stage_step_stays_within_its_budget(
    options: tuple[str, ...], colorterm: str, most: int
) -> None:
    with Explorer(*options, env={"COLORTERM": colorterm}) as explorer:
        explorer.wait_until_loaded()
        explorer.press(HOME)
        costs = [explorer.press(DOWN, quiet=0.16) for _ in range(STAGES - 1)]
        assert "Probabilities" in explorer.panel[0]
        assert max(costs) <= most


def cpu_seconds(pid: int) -> float:
    """User and system time of a process so far."""
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
