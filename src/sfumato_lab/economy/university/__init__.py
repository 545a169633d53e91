"""Synthetic people who left a university, with what they earned since; docs/economy-university.md describes them."""
