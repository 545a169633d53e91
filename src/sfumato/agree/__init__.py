"""What must be decided for several tables together; it costs no budget, because it never sees the data."""
