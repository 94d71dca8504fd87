"""Text to token ids and back, byte for byte. `open.py` says which kind belongs to which files."""
