"""What the column `status` of a protected table says of a cell."""

STATUSES = (
    "",
    "suppressed",
    "synthesised",
    "not available",
    "mostly perturbation",
    "below",
    "above",
    "error unknown",
)
"""By its number: nothing to say, or why a value is missing, made up, a bound, or to be used with care.

Stored answers hold these numbers: new ones come last."""
SUPPRESSED, SYNTHESISED, NOT_AVAILABLE, MOSTLY_PERTURBATION, BELOW, ABOVE, ERROR_UNKNOWN = range(1, len(STATUSES))
HIDDEN = (SUPPRESSED, NOT_AVAILABLE, ERROR_UNKNOWN)
"""Cells of which no value is published."""
BOUNDS = (BELOW, ABOVE)
"""Cells whose value is an edge that a percentile is below, or at and above: it has no error."""
