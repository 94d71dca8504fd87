"""How other programs write a model down: one layout a family or container."""
