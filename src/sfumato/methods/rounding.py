"""How coarsely distorted sums are rounded: the base follows from how many values of one employer are published.

A factor δ times whole numbers lies on a lattice, and values rounded to whole numbers show it: some never occur.
docs/methods/noise-infusion.md derives what values that are rounded to multiples of a base tell about δ.
"""

from collections.abc import Iterator
from fractions import Fraction
from itertools import count

from sfumato.errors import MethodError

LIFE = 100
"""The periods that a key is taken to serve: 25 years of quarters. A longer panel counts as it is."""
EARNINGS = 100
"""The base of earnings is so many times that of counts: payrolls may be multiples of wages in round sums."""
LARGEST_FACTOR = 2
"""Every factor is below this."""
LARGEST = 1_000_000
"""No base is above this."""
WHOLE_NUMBERS = 1
"""The base of earlier versions: whole numbers, which show the lattice."""
LEAK = (
    "Published to the last whole number, some tens of values of one employer give its factor exactly, and so all its "
    "figures"
)
"""What must be said of values that are rounded to whole numbers."""


def least_base(values: int) -> int:
    """The least of 3, 5, 10, 20, 50, 100, … at which so many published values tell at most one nat about a factor.

    A value rounded by a threshold of its own tells at most δ⁴/(45·base⁴) nats.

    >>> [least_base(values) for values in (1, 200, 800, 12_800, 1_000_000)]
    [3, 3, 5, 10, 50]
    """
    return next(base for base in _bases() if information(values, base) <= 1)


def information(values: int, base: int) -> Fraction:
    """A bound on what so many values tell about the factor of one employer, in nats, whatever the factor is."""
    return Fraction(values * LARGEST_FACTOR**4, 45 * base**4)


def refuse_base(method: str, option: str, base: int) -> None:
    """Raise MethodError for a base that is none."""
    if not 1 <= base <= LARGEST:
        raise MethodError(
            f"{method}, {option}",
            expected=f"a whole number from 1 to {LARGEST:,}",
            found=f"{base:,}",
            do="leave it out: it is chosen from how many values of one employer the release publishes",
        )


def _bases() -> Iterator[int]:
    yield from (3, 5)
    for power in count(1):
        yield from (digit * 10**power for digit in (1, 2, 5))
