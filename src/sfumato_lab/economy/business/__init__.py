"""A synthetic survey of businesses with dominant firms; docs/economy-business.md describes it."""
