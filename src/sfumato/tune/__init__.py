"""Tune: the smallest epsilon that gives a stated accuracy, from public assumptions and never from data."""
