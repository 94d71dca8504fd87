"""Whose files these are. A further family or container: a module here, a line in `known.py`."""
