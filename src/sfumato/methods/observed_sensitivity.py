"""χ, the largest sensitivity times number of people that is observed in a class of groups, told only roughly."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Floats, Integers

STEPS = tuple(map(Fraction, ("1", "1.5", "2", "3", "5", "7", "10")))
"""χ is rounded up to one of these times a power of ten."""
# More than the arithmetic of a sensitivity can err by, so that a rounded χ is never below the true one.
_HAIR = 1 + 1e-9
LEAST = Fraction(1, 10**9)
"""Where no record could move any group, as where all predictions are clipped: the smallest χ that is told."""


def rounded_up(chi: float) -> Fraction:
    """The next number of a coarse scale that is not below χ: a maximum over real people is never told exactly.

    >>> rounded_up(1234.5), rounded_up(0.0071)
    (Fraction(1500, 1), Fraction(1, 100))
    """
    if not 0 <= chi < float("inf"):
        raise ValueError("χ must be finite and not negative")
    if chi <= LEAST:
        return LEAST
    least = Fraction(chi * _HAIR)
    unit = Fraction(10) ** Decimal(chi).adjusted()
    return next((step * unit for step in STEPS if step * unit >= least), 15 * unit)


def observed(
    products: Floats, classes: Integers, *, taken: NDArray[np.bool_], least_groups: int = 1
) -> dict[int, Fraction]:
    """χ of every class by its number: the greatest n·sensitivity of the groups that take part, rounded up.

    Classes in which fewer than `least_groups` take part have none.

    >>> observed(np.array([3.0, 8.0, 90.0]), np.array([4, 4, 4]), taken=np.array([True, True, False]))
    {4: Fraction(10, 1)}
    """
    found, place, many = np.unique(classes[taken], return_inverse=True, return_counts=True)
    greatest = np.zeros(len(found))
    np.maximum.at(greatest, place, products[taken])
    enough = many >= least_groups
    return {int(n): rounded_up(float(chi)) for n, chi in zip(found[enough], greatest[enough], strict=True)}
