"""A synthetic employer-employee economy; docs/economies.md describes it."""
