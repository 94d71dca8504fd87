"""What can be refused, and the exit code each refusal has.

A message names the thing, gives both numbers and says what to do. It is one line of plain
text; whatever part of it came from outside is sanitized where it is shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


class TuiGPTError(Exception):
    """Something that tui-gpt refuses or cannot do; the message is for the person."""

    exit_code = 1


class UsageError(TuiGPTError):
    """The request itself does not make sense, whatever the files hold."""

    exit_code = 2


class ImpossibleShape(TuiGPTError):
    """No model can have these sizes."""


class UnknownModel(TuiGPTError):
    """There is no model of that name or at that path."""


class DamagedModel(TuiGPTError):
    """A model folder or weight file is incomplete, damaged or contradicts itself."""


class DamagedRecording(TuiGPTError):
    """A recording file is incomplete, damaged or of another kind."""


class UnknownStage(TuiGPTError):
    """The model has no stage, head or parameter of that name."""


class UnknownCell(TuiGPTError):
    """A stage has no cell at that index."""


class MissingStage(TuiGPTError):
    """A stage exists but could not be recorded; the message is the reason."""


class EmptyPrompt(TuiGPTError):
    """There is no token to start from."""

    def __init__(self) -> None:
        super().__init__("the prompt is empty; type at least one character")


class UnknownCharacters(TuiGPTError):
    """The prompt holds characters the model never saw in training."""

    def __init__(self, found: Sequence[tuple[int, str]], n_known: int) -> None:
        self.found = tuple(found)
        """(position counted from 0, character), in the order of the text."""
        listed = ", ".join(f"{char!r} at {position}" for position, char in self.found)
        count = "1 character" if len(self.found) == 1 else f"{len(self.found)} characters"
        super().__init__(
            f"{count} this model never saw (it knows {n_known}): {listed}, "
            "positions counted from 0; remove or replace them"
        )


class PromptTooLong(TuiGPTError):
    """The prompt has more tokens than the model has positions."""

    def __init__(self, n_tokens: int, block_size: int) -> None:
        self.n_tokens = n_tokens
        self.block_size = block_size
        super().__init__(
            f"the prompt is {n_tokens} tokens but this model reads {block_size}; "
            f"cut at least {n_tokens - block_size}, or keep only the last {block_size} (--crop)"
        )


class UnknownTokenId(TuiGPTError):
    """A token id lies outside the vocabulary."""

    def __init__(self, token_id: object, vocab_size: int) -> None:
        super().__init__(f"token id {token_id} is not one of 0…{vocab_size - 1}")


class NotTokenIds(UsageError):
    """What should be a list of token ids is something else."""

    def __init__(self, part: str, vocab_size: int) -> None:
        super().__init__(
            f"{part!r} is no token id; give whole numbers, each one of 0…{vocab_size - 1}, with "
            "commas between"
        )


class NoTokenizer(TuiGPTError):
    """The model has ids and no vocabulary, so no text can be read."""

    def __init__(self) -> None:
        super().__init__(
            "this model has no tokenizer, so it reads no text; give token ids (--ids 1,2,3)"
        )


class CannotDownload(TuiGPTError):
    """A model could not be fetched; what was there before is still there."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"cannot download {name}: {reason}")


class NotEnoughMemory(TuiGPTError):
    """The weights alone do not fit."""

    def __init__(self, name: str, needed: int, available: int) -> None:
        super().__init__(
            f"{name} needs {needed / 1e9:.1f} GB for its weights and {available / 1e9:.1f} GB are "
            "free; take a smaller one"
        )


class NothingToChoose(TuiGPTError):
    """A step of generation has no token that could be taken."""

    def __init__(self, step: int, reason: str) -> None:
        self.step = step
        super().__init__(
            f"step {step} has no next token: {reason}; `tui-gpt trace` shows where the first "
            "number breaks"
        )


class UnusableText(TuiGPTError):
    """A text file cannot be trained on."""


class TrainingDiverged(TuiGPTError):
    """The loss is no longer a number, so nothing more can be learnt."""


class Interrupted(TuiGPTError):
    """The person stopped it with Ctrl-C; the message says what is kept."""

    exit_code = 130


class CannotWrite(TuiGPTError):
    """A file or folder could not be written; nothing half-written is left."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"cannot write {path}: {reason}")
