"""Economies of every kind, as small as they can be."""

from collections.abc import Mapping

ECONOMIES: Mapping[str, tuple[str, ...]] = {
    "jobs": ("jobs", "--jobs", "10000", "--seed", "7"),
    "jobs_few_establishments": ("jobs", "--jobs", "10000", "--establishments", "200", "--seed", "8"),
    "jobs_with_residence": ("jobs", "--jobs", "10000", "--residence", "--seed", "7"),
    "federal": ("federal", "--persons", "5000", "--seed", "7"),
    "federal_histories": ("federal", "--persons", "5000", "--quarters", "6", "--first", "2011-Q2", "--seed", "7"),
    "business": ("business", "--businesses", "1000", "--seed", "7"),
    "business_without_replicates": ("business", "--businesses", "1000", "--no-replicates", "--seed", "8"),
    "requirements": ("requirements", "--quotes", "1000", "--seed", "7"),
    "opportunity": ("opportunity", "--tracts", "100", "--seed", "7"),
    "university": ("university", "--employees", "1000", "--institutions", "2", "--seed", "7"),
    "graduates": ("graduates", "--people", "1000", "--seed", "7"),
    "veterans": ("graduates", "--people", "1000", "--veterans", "--seed", "7"),
}
"""The arguments of `sfumato economy`, by name."""
RELEASED = (
    "jobs",
    "federal_histories",
    "business",
    "requirements",
    "opportunity",
    "university",
    "graduates",
    "veterans",
)
"""The economies whose own release files are run, too: one of every kind."""
