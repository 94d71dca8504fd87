"""The layouts that are known, the first that recognises a model reads it."""

from __future__ import annotations

from tui_gpt.checkpoints.layouts.gguf import GGUF, GGUF_UNPAIRED
from tui_gpt.checkpoints.layouts.gpt2 import GPT2, NANOGPT
from tui_gpt.checkpoints.layouts.layout import Layout
from tui_gpt.checkpoints.layouts.llama import LLAMA
from tui_gpt.checkpoints.layouts.neox import NEOX
from tui_gpt.checkpoints.layouts.own import OWN

LAYOUTS: tuple[Layout, ...] = (OWN, NANOGPT, GPT2, LLAMA, NEOX, GGUF_UNPAIRED, GGUF)
