"""A synthetic survey of what jobs require, by occupation; docs/economy-requirements.md describes it."""
