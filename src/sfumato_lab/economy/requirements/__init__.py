"""A synthetic survey of what jobs require, by occupation; docs/economies.md describes it."""
