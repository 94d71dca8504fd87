"""Taps on the one forward pass."""
