"""Post-processing of protected values; it costs no budget, because it never sees the data."""
