"""The magnitudes that Chipperfield and others (2019) found best for nine shapes of a cell."""

import numpy as np

from sfumato.methods.contributor_magnitudes import Optima

PUBLISHED_OPTIMA: dict[str, tuple[float, ...]] = {
    "90,5,5": (0.15, 0.1, 0.1),
    "80,10,5,5": (0.15, 0.1, 0.1),
    "70,20,10": (0.15, 0.1, 0.1),
    "60,20,10,10": (0.2, 0.1, 0.1),
    "60,40": (0.25, 0.15),
    "50,20,20,10": (0.25, 0.15, 0.1),
    "40,30,30": (0.3, 0.2, 0.1),
    "30,30,30,10": (0.4, 0.3, 0.2),
    "25,25,25,25": (0.5, 0.4, 0.3),
}
"""By the relative sizes of a cell's contributors; for the three largest, where there are so many."""
CONTRIBUTORS = 3
"""How many contributors these magnitudes are for."""


def published_optima() -> Optima:
    """The nine shapes, each as its three largest contributors and all others together, with their magnitudes."""
    shapes = np.zeros((len(PUBLISHED_OPTIMA), CONTRIBUTORS + 1))
    magnitudes = np.full((len(PUBLISHED_OPTIMA), CONTRIBUTORS), np.nan)
    for row, (shape, found) in enumerate(PUBLISHED_OPTIMA.items()):
        sizes = [float(size) for size in shape.split(",")]
        shapes[row, : len(sizes)] = sizes
        magnitudes[row, : len(found)] = found
    return Optima(shapes=shapes, magnitudes=magnitudes)
