"""Perturbed totals of records: the part `contributors`."""
