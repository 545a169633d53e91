"""A synthetic federal workforce with the published shape of the real one; docs/economies.md describes it."""
