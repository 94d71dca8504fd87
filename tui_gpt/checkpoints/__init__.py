"""Files to a config and parameters: finding a model, its layout, its weights, the report."""
