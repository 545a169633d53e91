"""Synthetic children with income ranks of their parents and their own; docs/economy-opportunity.md describes them."""
