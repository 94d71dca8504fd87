"""Text to token ids and back, byte for byte."""
