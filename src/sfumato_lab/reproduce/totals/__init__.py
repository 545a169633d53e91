"""Totals and indicators with a guarantee beside the legacy protection: errors, growth, attacks; docs/reproduce.md."""
