"""A table larger than memory."""
