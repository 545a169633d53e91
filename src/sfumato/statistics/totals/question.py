"""What totals, means and counts of records ask of the data."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, prod

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Integers
from sfumato.cells import Dimension
from sfumato.noise.factors import ONE, triangular

TOTAL = "total"
"""The last code of a dimension with totals: all its other codes together."""


@dataclass(frozen=True, kw_only=True)
class ValueNoise:
    """By which share values of those who asked are moved: a magnitude times noise on 1 ± spread; both are secrets."""

    magnitude: Fraction = field(repr=False)
    spread: Fraction = field(repr=False)

    def shares(self, words: NDArray[np.uint64]) -> Integers:
        """Shares in whole millionths, rounded up: nobody is moved by less than the noise says.

        >>> noise = ValueNoise(magnitude=Fraction("0.2"), spread=Fraction("0.3"))
        >>> noise.shares(np.array([0, 2**64 - 1], dtype=np.uint64)).tolist()
        [140000, 260000]
        """
        magnitude = ceil(self.magnitude * ONE)
        return -(-triangular(words, spread=int(self.spread * ONE)) * magnitude // ONE)


@dataclass(frozen=True, kw_only=True)
class ContributorQuestion:
    """Sum a measure of records `by` some attributes, and say who contributes most to every cell.

    With `margins` every dimension but the period ends with the code `TOTAL`. The answer lists every combination of
    codes, with the integer columns that `totals/tabulate.py` documents.
    """

    by: tuple[Dimension, ...]
    measure: str | None
    """None counts records: each has the value 1."""
    contributors: int
    """How many of the largest units are told of every cell."""
    margins: bool = False
    period: str | None = None
    """The attribute that no total is made over: a unit has a record in each of its codes, and one in every cell."""
    ratio: bool = False
    """Whether the sampling error of the mean is asked for too."""
    where: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    units: tuple[str, ...] = ()
    """The names of the levels of units that are protected, that of a record first."""
    noise: ValueNoise | None = None
    """Asks for the total of values that were perturbed one by one, too."""
    weighted: bool = True
    """Whether records have weights: without them there is no sampling error to compare perturbation with."""

    @property
    def looks_at(self) -> frozenset[str]:
        """Every attribute and measure whose values decide the answer."""
        return frozenset([*(dimension.name for dimension in self.by), *self.where, *filter(None, [self.measure])])

    @property
    def cells(self) -> int:
        """The number of cells."""
        return prod(map(len, self.by))
