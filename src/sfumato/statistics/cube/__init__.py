"""The dense cube: every combination of codes with its numbers, and what can be summed from them."""
