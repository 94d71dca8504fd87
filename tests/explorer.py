"""The explorer on a terminal, with the parts of its screen by name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import pyte.screens
from terminal import CTRL_G, DOWN, ENTER, EXPLORER, Terminal

_STATUS = re.compile(
    r"(recorded run|recorded . loading torch\S*|loading torch to run it\S*|computed here"
    r"|running\S*|checking \d+ of \d+ tensors\S*)\s*$"
)
"""The words of the status line."""


class Explorer(Terminal):
    """`tui-gpt explore`, opened and showing the values of its first stage."""

    def __init__(
        self,
        *arguments: str,
        size: tuple[int, int] = (80, 24),
        env: Mapping[str, str] | None = None,
        command: Sequence[str] = EXPLORER,
    ) -> None:
        command = (*command, "explore", *arguments) if arguments else command
        super().__init__(command, size=size, env=env)
        try:
            self.wait_for(lambda _: bool(self.reading))
        except BaseException:
            self.__exit__()
            raise

    @property
    def title(self) -> str:
        return self._row(0)

    @property
    def status(self) -> str:
        """What is going on, at the right end of the line that is read."""
        found = _STATUS.search(self._row(-2))
        return found.group().strip() if found else ""

    @property
    def stages(self) -> str:
        """The stage list."""
        rule = self._rule
        return "\n".join(row[:rule] for row in self._body)

    @property
    def chosen(self) -> str:
        """The row of the list that is marked, without its mark."""
        marked = (row[1:] for row in self.stages.splitlines() if row[0] in "▸>")
        return next(marked, "").strip()

    @property
    def panel(self) -> list[str]:
        """What is right of the list."""
        rule = self._rule
        return [row[rule + 1 :].rstrip() for row in self._body]

    @property
    def reading(self) -> str:
        """The cell that is read aloud."""
        return _STATUS.sub("", self._row(-2)).strip()

    @property
    def footer(self) -> str:
        return self._row(-1)

    def background(self, y: int) -> list[str]:
        """The background colours of a screen row."""
        row: dict[int, pyte.screens.Char] = self.screen.buffer[y % self.screen.lines]
        return [row[x].bg for x in range(self.screen.columns)]

    def wait_until_loaded(self) -> None:
        """Wait for torch and the weights, which are fetched after the first picture."""
        self.wait_for("loading torch")
        self.wait_for(lambda _: "loading torch" not in self.text)

    def run_prompt(self, prompt: str) -> None:
        """Type a short prompt in place of the old one, and wait for its numbers."""
        self.open_prompt()
        self.type(prompt)
        self.send(ENTER)
        self.wait_for(lambda _: f"“{prompt}”" in self.title and bool(self.reading))

    def open_prompt(self) -> None:
        self.send("p")
        self.wait_for("Your prompt")

    def type(self, text: str) -> None:
        """Type as a person does, so that a following Enter is not taken for a part of it."""
        self.send(text)
        self.settle(quiet=0.1)

    def close_dialog(self) -> None:
        self.send(CTRL_G)
        self.wait_for(lambda _: bool(self.reading) and "Ctrl+G" not in self.text)

    def choose_model(self, name: str) -> None:
        """Open the other bundled model from the list."""
        self.send("m")
        self.wait_for("Open a model")
        self.send({"shakespeare": "\x1b[A", "shakespeare-2017": DOWN}[name])
        self.settle(quiet=0.1)
        self.send(ENTER)
        self.wait_for(lambda _: f" {name} " in self.title and bool(self.reading))

    @property
    def _rule(self) -> int:
        """The column of the line between the list and the panel."""
        rows = self.screen.display[3:7]  # a dialog may cover those below
        columns = range(5, self.screen.columns)
        return next((x for x in columns if all(row[x] in "│|" for row in rows)), 0)

    @property
    def _body(self) -> list[str]:
        """The rows of list and panel; a notice may stand above them."""
        rule = self._rule
        return [row for row in self.screen.display[2:-2] if rule and row[rule] in "│|"]

    def _row(self, y: int) -> str:
        row: str = self.screen.display[y]
        return row.strip()
