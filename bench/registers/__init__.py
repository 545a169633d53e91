"""A register with headcounts: the part `registers`."""
