"""tui-gpt: watch one prompt become the next token inside a small GPT, in the terminal."""

__version__ = "0.1.0"
