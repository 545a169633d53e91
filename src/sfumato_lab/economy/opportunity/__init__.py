"""Synthetic children with income ranks of their parents and their own; docs/economies.md describes them."""
