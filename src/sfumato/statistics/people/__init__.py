"""Statistics of small groups of people: counts, means, predictions and percentiles."""
