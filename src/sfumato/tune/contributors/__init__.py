"""Tune top-contributors: what magnitudes reveal and cost, and which cost least; from the method, never from data."""
