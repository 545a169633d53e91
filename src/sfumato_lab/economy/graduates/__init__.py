"""Synthetic graduates or veterans with earnings years after; docs/economy-graduates.md describes them."""
