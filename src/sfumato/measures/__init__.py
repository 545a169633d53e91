"""Measures of utility and risk: pure functions of true and published numbers, and how they are drawn."""
