"""Measures of risk: what a reader may learn from protected values, by proof and by comparison with the true ones."""

from dataclasses import dataclass
from math import exp, inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.measures import mean
from sfumato.privacy.distance import loss, workforce_steps
from sfumato.privacy.guarantee import EmployerEmployee, Guarantee

Values = NDArray[Any]

_LARGEST_EXPONENT = 700


def share_within(*, estimates: Values, target: Values, percent: float) -> float:
    """The probability that an attacker's estimate is within V% of the target; a target of 0 must be hit exactly.

    >>> share_within(estimates=np.array([90, 95, 130]), target=np.array(100), percent=10)
    0.6666666666666666
    """
    # Compared without a division, so that 90 is within 10% of 100 whatever the rounding of 0.1.
    return mean(100 * np.abs(np.subtract(estimates, target)) <= percent * np.abs(target))


def share_exact(*, true: Values, protected: Values) -> float:
    """The share of cells whose published value is the true one."""
    return mean(np.equal(true, protected))


@dataclass(frozen=True, kw_only=True)
class Uniques:
    """Cells that hold a single job: how many truly do, how many seem to, and how many of these do."""

    true: int
    published: int
    both: int


def uniques(*, true: Values, protected: Values) -> Uniques:
    """Count the cells with a single job before and after protection."""
    one, seems_one = np.equal(true, 1), np.equal(protected, 1)
    return Uniques(true=int(one.sum()), published=int(seems_one.sum()), both=int((one & seems_one).sum()))


@dataclass(frozen=True, kw_only=True)
class ZeroChanges:
    """Cells that protection moved from zero to non-zero, and from non-zero to zero."""

    to_nonzero: int
    to_zero: int


def zero_changes(*, true: Values, protected: Values, near: float = 0) -> ZeroChanges:
    """Count the cells that went from near zero to non-zero and back; a value is near zero up to `near` either way.

    >>> zero_changes(true=np.array([0, 0, 5, 5]), protected=np.array([0, 2, 0, 4]))
    ZeroChanges(to_nonzero=1, to_zero=1)
    """
    before, after = np.abs(true) <= near, np.abs(protected) <= near
    return ZeroChanges(to_nonzero=int((before & ~after).sum()), to_zero=int((~before & after).sum()))


@dataclass(frozen=True, kw_only=True)
class SizeOdds:
    """How far a release can move the odds between two sizes of one establishment.

    For every set of outputs P[output | one size] ≤ `factor`·P[output | the other] + `delta`, in both directions. With
    delta = 0 the odds of any reader move by at most `factor`, and a belief of one half to at most `belief`.
    """

    smaller: int
    larger: int
    steps: int | None
    factor: float
    delta: float

    @property
    def belief(self) -> float:
        """The most that a belief of one half in either size can become."""
        return 1.0 if self.factor == inf else self.factor / (1 + self.factor)


def size_odds(guarantee: Guarantee, *, smaller: int, larger: int) -> SizeOdds:
    """The bound a guarantee puts on the odds between two sizes: k steps cost k·ε; without a guarantee there is none.

    Only the strong definition lets many workers be one step whoever they are; under the others each may be a step.

    >>> from fractions import Fraction
    >>> tenth = EmployerEmployee(definition="strong", alpha=Fraction(1, 10), epsilon=Fraction(2))
    >>> size_odds(tenth, smaller=10, larger=12).steps
    2
    """
    if not 0 <= smaller <= larger:
        raise ValueError("sizes must not be negative, and the smaller comes first")
    if not isinstance(guarantee, EmployerEmployee):
        return SizeOdds(smaller=smaller, larger=larger, steps=None, factor=inf, delta=0.0)
    found = loss(guarantee, workforce_steps(guarantee, size=smaller, added=larger - smaller))
    factor = exp(found.epsilon) if found.epsilon < _LARGEST_EXPONENT else inf
    return SizeOdds(smaller=smaller, larger=larger, steps=found.steps, factor=factor, delta=float(found.delta))
