"""Records as JSON and CSV: which keys there are, and the text."""
