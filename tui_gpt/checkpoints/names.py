"""Names of the files that a model's folder has."""

from __future__ import annotations

FORMAT = "tui-gpt"
"""What `format` says in the config of a folder of ours."""

CONFIG, WEIGHTS, CHARACTERS, CARD = (
    "config.json",
    "model.safetensors",
    "characters.json",
    "card.json",
)

CHECKPOINT = "ckpt.pt"
"""nanoGPT's file."""
