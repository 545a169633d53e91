"""Samplers over secure randomness, exact on the integers."""
