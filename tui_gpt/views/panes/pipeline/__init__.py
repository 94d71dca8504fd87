"""Pane 1: the stage list, the chosen stage, and where a cell comes from."""
