"""Four size classes by employment, and the employees of an establishment within its class."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Integers
from sfumato.economy.codelists import Codelist

SIZE: Final = Codelist(
    name="size",
    label="Size by employment",
    entries=(
        ("0-4", "0 to 4 employees"),
        ("5-19", "5 to 19 employees"),
        ("20-199", "20 to 199 employees"),
        ("200+", "200 or more employees"),
    ),
)
STARTS: Final = np.array([0, 5, 20, 200])
"""Where every class starts."""
LARGE: Final = len(SIZE) - 1
"""The position of the largest class."""
MOST_EMPLOYEES: Final = 60_000

_CUTS = np.array([0.12, 0.92, 1.76])
"""Cuts of the latent size between one class and the next; large businesses are sampled more often than there are."""
_TAIL = 1.3
"""Tail index of the largest class."""


def size_of(employees: Integers) -> NDArray[np.int8]:
    """Positions in the codelist of sizes."""
    return (np.searchsorted(STARTS, employees, side="right") - 1).astype(np.int8)


def draw_employees(latent: NDArray[np.float64], rng: np.random.Generator) -> Integers:
    """Employees of establishments with these latent sizes."""
    size = np.searchsorted(_CUTS, latent)
    within = rng.random(len(latent))
    # In the smallest class the fewer the likelier, in the next two evenly on the log scale, then a Pareto tail.
    start, end = STARTS[size].astype(np.float64), np.append(STARTS[1:], 0)[size]
    employees = np.where(size == 0, STARTS[1] * within**1.4, 0.0)
    middle = (size > 0) & (size < LARGE)
    employees[middle] = start[middle] * (end[middle] / start[middle]) ** within[middle]
    large = size == LARGE
    employees[large] = np.minimum(STARTS[LARGE] * (1 - within[large]) ** (-1 / _TAIL), MOST_EMPLOYEES)
    return employees.astype(np.int64)
