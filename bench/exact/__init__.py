"""Withheld cells beside another tool: the part `exact`."""
