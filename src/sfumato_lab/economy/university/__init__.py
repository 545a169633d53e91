"""Synthetic people who left a university, with what they earned since; docs/economies.md describes them."""
