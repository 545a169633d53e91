"""What the column `status` of a protected table says of a cell."""

STATUSES = ("", "suppressed", "synthesised", "not available", "mostly perturbation")
"""By its number: nothing to say, or why a value is missing, made up, or to be used with care."""
SUPPRESSED, SYNTHESISED, NOT_AVAILABLE, MOSTLY_PERTURBATION = range(1, len(STATUSES))
HIDDEN = (SUPPRESSED, NOT_AVAILABLE)
"""Cells of which no value is published."""
