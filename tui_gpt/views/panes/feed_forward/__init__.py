"""Pane 3: the hidden units of a block."""
