"""A synthetic survey of businesses with dominant firms; docs/economies.md describes it."""
