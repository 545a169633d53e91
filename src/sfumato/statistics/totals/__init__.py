"""Totals, means and counts of records, perturbed by their largest contributors."""
