"""Records in, rows of text out: no clock, no app, nothing read from the environment."""
