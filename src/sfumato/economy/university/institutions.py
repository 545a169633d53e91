"""Institutions: their names, how many left each, and how well they place them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.economy.names import place_names
from sfumato.economy.quantiles import stratified_normal
from sfumato.economy.streams import Purpose, stream

SIZE_SPREAD = 0.6
"""Standard deviation of the size of institutions, on the log scale."""
PAY_SPREAD = 0.08
"""Standard deviation of what people of different institutions earn, on the log scale."""
FEWEST = 20
"""Employees of an institution."""


@dataclass(frozen=True, kw_only=True)
class Institution:
    """One institution."""

    code: str
    name: str
    employees: int
    """Those who left and are followed."""
    pay: float
    """The logarithm of what they earn, beside others."""


def draw_institutions(count: int, *, employees: int, seed: int) -> tuple[Institution, ...]:
    """So many institutions with so many employees in all, the largest first."""
    rng = stream(seed, Purpose.UNIVERSITY_INSTITUTIONS)
    shares = np.exp(-SIZE_SPREAD * stratified_normal(count, rng))
    sizes = _sizes(shares / shares.sum(), employees)
    names, pay = place_names(count, seed=seed), PAY_SPREAD * rng.standard_normal(count)
    return tuple(
        Institution(
            code=f"u{number + 1:02}",
            name=f"University of {names[number]}",
            employees=int(sizes[number]),
            pay=float(pay[number]),
        )
        for number in range(count)
    )


def _sizes(shares: NDArray[np.float64], employees: int) -> NDArray[np.int64]:
    """Whole numbers in these shares that add up, none below the fewest."""
    free = employees - FEWEST * len(shares)
    ends = np.rint(free * np.cumsum(shares)).astype(np.int64)
    ends[-1] = free
    return FEWEST + np.diff(ends, prepend=0)
