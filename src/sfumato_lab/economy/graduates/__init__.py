"""Synthetic graduates or veterans with earnings years after; docs/economies.md describes them."""
