"""Where a model's tokenizer is to be found: told by the files, before any of them is read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Kind = Literal["characters", "folder", "gguf", "gpt2", "none"]


@dataclass(frozen=True, slots=True)
class VocabularySource:
    """What cuts a model's text into ids.

    characters    characters.json in a folder of ours
    folder        whatever vocabulary files a folder has
    gguf          in the model's own file
    gpt2          OpenAI's, from this program
    none          nothing: token ids only
    """

    kind: Kind
    path: Path | None = None
    """The folder or file."""
    or_gpt2: bool = False
    """A folder without any vocabulary reads GPT-2's."""


NO_VOCABULARY = VocabularySource("none")
