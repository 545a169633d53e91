"""Counts of jobs beside DuckDB's: the part `foundation`."""
