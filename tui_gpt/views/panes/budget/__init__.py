"""Pane 6: where the parameters of a shape sit."""
