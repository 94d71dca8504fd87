"""Pane 7: a text that grows by one token at a time."""
