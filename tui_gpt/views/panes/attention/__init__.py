"""Pane 2: the heads of a block."""
