"""A synthetic employer-employee economy; docs/economy.md describes it."""
