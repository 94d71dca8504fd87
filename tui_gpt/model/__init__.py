"""The transformer, its weights on disk, its tokenizers and its training."""
