"""The screen: widgets, messages and keys. Textual is imported here and nowhere else."""
