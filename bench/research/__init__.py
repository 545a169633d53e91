"""Figures of docs/research.md, measured again."""
