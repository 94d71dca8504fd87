"""Where one person stands: frozen values, and the moves from one to the next."""
