"""What the paper published: its Table 1, to print beside measured figures, never results.

Source: J. M. Abowd, K. L. McKinney, "Noise infusion as a confidentiality protection measure for graph-based
statistics", Statistical Journal of the IAOS 32 (2016). The table is about 13 years of federal employment: edges between
7,341 employers, by the states of both ends, protected by factors of a = 1.15 and b = 1.25.
"""

from typing import Final, Literal

PaperTable = Literal["edge", "worker"]
TABLES: Final[tuple[PaperTable, ...]] = ("edge", "worker")
"""Counts of pairs of employers that share a worker, and of the workers they share."""

SIZE_CLASSES: Final = ("1-6", "7-9", "10-19", "20-35", "36-75", "76-161", "162-272", "272+")
"""Classes of cells by the number of unique edges; the paper calls the last one 272-15035."""
CLASS_ENDS: Final = (6, 9, 19, 35, 75, 161, 272)
"""The greatest number of edges of each class but the last."""
ALL: Final = "all"

_MEANS: Final = {
    "edge": (0.005, 0.009, 0.006, -0.003, -0.006, -0.004, 0.001, 0.004),
    "worker": (0.011, 0.026, 0.015, 0.007, 0.005, 0.004, 0.001, 0.010),
}
_DEVIATIONS: Final = {
    "edge": (0.114, 0.060, 0.055, 0.043, 0.033, 0.026, 0.026, 0.021),
    "worker": (0.120, 0.083, 0.080, 0.068, 0.061, 0.055, 0.055, 0.057),
}
_DISTANCES: Final = {"jsd": {"edge": 0.011, "worker": 0.027}, "rimse": {"edge": 0.002, "worker": 0.010}}

PUBLISHED: Final[dict[tuple[str, PaperTable, str], float]] = {
    **{
        ("c_mean", table, size): value
        for table in TABLES
        for size, value in zip(SIZE_CLASSES, _MEANS[table], strict=True)
    },
    **{
        ("c_sd", table, size): value
        for table in TABLES
        for size, value in zip(SIZE_CLASSES, _DEVIATIONS[table], strict=True)
    },
    **{(quantity, table, ALL): _DISTANCES[quantity][table] for quantity in _DISTANCES for table in TABLES},
}
"""By quantity, table and size class."""

AIMED_DISTANCES: Final[dict[PaperTable, tuple[float, float]]] = {"edge": (0.005, 0.02), "worker": (0.015, 0.045)}
"""Between these the Jensen-Shannon distance of a workforce of the published shape must come out."""
MOST_MEAN: Final[dict[PaperTable, float]] = {"edge": 0.01, "worker": 0.03}
"""The published means of c are all within these of 0."""
