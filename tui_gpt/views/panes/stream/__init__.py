"""Pane 4: the residual stream by depth."""
