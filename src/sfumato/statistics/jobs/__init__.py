"""Counts of jobs: how they are tabulated, protected, attacked and tuned."""
