"""Noise infusion of counts: every establishment's figures times its permanent factor, rounded."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Floats, Integers
from sfumato.cells import Cells
from sfumato.errors import MethodError
from sfumato.method import PlannedError, added
from sfumato.noise.factors import LEAK, ONE, WHOLE_NUMBERS, refuse_base, rounded_by_thresholds
from sfumato.noise.randomness import Randomness
from sfumato.privacy.guarantee import NoFormalGuarantee
from sfumato.statistics.jobs.smooth import LIMIT

_AS_OFTEN = ", about as often as cells of the same kind of workers hold one or two"
# Every establishment's figures are multiplied by its permanent factor: the legacy protection.

_FACTORS = (
    "every employer's figures are multiplied by a secret factor that is the same in every release and differs from one "
    "by at least a fixed share, which is secret too, so that no figure of an employer enters a table as it is. This "
    "bounds nothing that a reader may learn: where a cell holds one employer, the ratios of its figures and its growth "
    "are published as they are but for rounding, one known figure reveals all its others, and "
)


def no_guarantee(rounding: int) -> NoFormalGuarantee:
    """What factors do and what they do not, in the words of the privacy statement."""
    # Ledgers hold the words of earlier versions, which rounded to whole numbers: these stay what they were.
    zeros = "zeros are true" if rounding == WHOLE_NUMBERS else "what is empty is published as 0"
    return NoFormalGuarantee(statement=_FACTORS + zeros)


_SMALL = 2  # true counts from 1 to here are replaced by a draw from {1, 2}
_PRIOR = 2  # how many cells what is thought of a group of cells before counts for
COIN, POSTERIOR = "coin", "posterior"
"""How a small count is drawn: fairly, or as the small counts of cells like it lead one to expect."""


@dataclass(frozen=True, kw_only=True)
class NoiseInfusion:
    """Cells that sum establishments' jobs times a secret, permanent factor each; there is no formal guarantee.

    The factors are applied by tabulation, which alone knows establishments: `distorted` and `remainder` are
    Σ factor·jobs in whole jobs and millionths. They are rounded to multiples of `rounding` by secret thresholds; zeros
    stay zero. Rounded to whole numbers, as by earlier versions, a count of 1 or 2 is replaced by a draw from {1, 2}, by
    a fair coin or from the posterior predictive distribution of such counts.
    docs/methods/noise-infusion.md says what this does not hide.

    >>> isinstance(NoiseInfusion().guarantee(), NoFormalGuarantee)
    True
    """

    name: ClassVar[str] = "noise-infusion"
    keyed: ClassVar[bool] = True
    """It takes its chance from a key file and costs no budget: it has no formal guarantee."""
    unbiased: ClassVar[bool] = False
    needs: ClassVar[frozenset[str]] = frozenset({"count", "distorted", "remainder"})

    rounding: int = added(WHOLE_NUMBERS)
    """Sums are rounded to multiples of this; a release chooses it unless its file says so."""
    small_cells: str = added(COIN)
    """How counts of 1 or 2 are drawn, where sums are rounded to whole numbers."""

    def __post_init__(self) -> None:
        refuse_base(self.name, "rounding", self.rounding)
        if self.small_cells not in (COIN, POSTERIOR):
            raise MethodError(
                f"method '{self.name}', small_cells",
                expected=f'"{COIN}" or "{POSTERIOR}"',
                found="another word",
                do=f'leave it out, or write small_cells = "{POSTERIOR}"',
            )
        if self.small_cells != COIN and self.rounding != WHOLE_NUMBERS:
            raise MethodError(
                f"method '{self.name}', small_cells",
                expected="sums in whole numbers: rounded to multiples of more, no count has to be replaced",
                found=f"multiples of {self.rounding:,}",
                do="leave `small_cells` out, or write rounding = 1 beside it and read what whole numbers give away",
            )

    @property
    def description(self) -> str:
        """What is done to the counts, as a clause of the privacy statement."""
        done = "the jobs of every establishment were multiplied by a secret factor that never changes, and the sums "
        if self.rounding > WHOLE_NUMBERS:
            return done + (
                f"rounded to a multiple of {self.rounding:,} by chance, up or down so that they are right on average; "
                "where there are no jobs 0 is published"
            )
        return done + (
            "rounded to one of the two nearest whole numbers by chance; a count of 1 or 2 was replaced by 1 or 2 at "
            f"random{_AS_OFTEN if self.small_cells == POSTERIOR else ''}, and zeros were left as they are. {LEAK}"
        )

    def guarantee(self) -> NoFormalGuarantee:
        """None that could be proved; said plainly."""
        return no_guarantee(self.rounding)

    def planned_error(self) -> PlannedError:
        """None where there are no jobs; elsewhere it depends on the factors, which are secret."""
        return PlannedError(floor=0.0, floor_size=0, share=None, of="its count")

    def expected_error(self, cells: Cells) -> Floats:
        """How far the published value is off on average, given the permanent factors: confidential."""
        count, below, chance = self._sums(cells)
        off = (1 - chance) * np.abs(below - count) + chance * np.abs(below + self.rounding - count)
        one = self.chance_of_one(cells)
        error: Floats = np.where(self._is_redrawn(count), np.where(count == 1, 1 - one, one), off)
        return error

    def expected_bias(self, cells: Cells) -> Floats:
        """The change by the factors, the same in every release, or that of the draw in a small cell: confidential."""
        count, below, chance = self._sums(cells)
        drawn = 2 - self.chance_of_one(cells)
        bias: Floats = np.where(self._is_redrawn(count), drawn, below + self.rounding * chance) - count
        return bias

    def chance_of_one(self, cells: Cells) -> Floats:
        """With which probability a small count of each cell is drawn as 1: confidential where it is not one half."""
        kind, chances = self._chances_of_one(cells)
        chance: Floats = np.array(chances, dtype=np.float64)[kind]
        return chance

    def protect(self, cells: Cells, randomness: Randomness) -> Cells:
        """The distorted sums, rounded so that they are right on average; zeros stay."""
        count, below, chance = self._sums(cells)
        words = randomness.words(len(cells))
        if self.rounding > WHOLE_NUMBERS:
            value = rounded_by_thresholds(cells["distorted"], cells["remainder"], words, base=self.rounding)
        else:
            up = ((words >> np.uint64(1)) % np.uint64(ONE)) / ONE < chance
            value = np.where(self._is_redrawn(count), self._small(cells, words), below + up)
        return Cells(dimensions=cells.dimensions, positions=cells.positions, columns={"value": value})

    def published_error(self, values: Integers) -> Floats:
        """Nothing may be told: it would reveal how far factors are from one."""
        return np.full(len(values), np.nan)

    def published_interval(self, values: Integers, confidence: float) -> tuple[Floats, Floats]:
        """The least count the published value is consistent with, all factors being below 2; there is no greatest.

        A value of v ≥ 1 comes from 2n + base > v; of whole numbers, also from a draw in place of n ≥ 1. Both mean that
        n ≥ (v − base)//2 + 1, with certainty.
        """
        if not 0 < confidence < 1:
            raise ValueError(f"confidence must be between 0 and 1, not {confidence}")
        low: Floats = np.where(values > 0, (values - self.rounding) // 2 + 1, 0).astype(np.float64)
        return low, np.full(len(values), np.nan)

    def _small(self, cells: Cells, words: NDArray[np.uint64]) -> Integers:
        """A draw from {1, 2} for every cell."""
        if self.small_cells == COIN:
            return 1 + (words & np.uint64(1)).astype(np.int64)
        kind, chances = self._chances_of_one(cells)
        # Both outcomes are possible, so that no limit is as large as 2⁶⁴.
        limits = np.array([int(chance * 2**64) for chance in chances], dtype=np.uint64)
        return 1 + (words >= limits[kind]).astype(np.int64)

    def _chances_of_one(self, cells: Cells) -> tuple[Integers, list[Fraction]]:
        """The kind of workers of every cell, and for each kind with which probability a small count is drawn as 1.

        Small counts are thought to be ones with one unknown probability in the whole table, any being as likely as any
        other before, and with another in the cells of each kind of workers, which is thought to be the table's before:
        Dirichlet priors that count for two cells each.
        """
        kind = np.zeros(len(cells), dtype=np.int64)
        if self.small_cells == COIN:
            return kind, [Fraction(1, 2)]
        for dimension in cells.dimensions:
            if not dimension.public:
                kind = kind * len(dimension) + cells.codes(dimension.name)
        one, two = (
            np.bincount(kind[cells["count"] == small], minlength=cells.worker_cells).tolist()
            for small in range(1, _SMALL + 1)
        )
        of_table = Fraction(sum(one) + _PRIOR // 2, sum(one) + sum(two) + _PRIOR)
        return kind, [(n + _PRIOR * of_table) / (n + m + _PRIOR) for n, m in zip(one, two, strict=True)]

    def _is_redrawn(self, count: Integers) -> NDArray[np.bool_]:
        """Whether a count is replaced by a draw from {1, 2}; coarser rounding needs none."""
        return (count > 0) & (count <= _SMALL) & (self.rounding == WHOLE_NUMBERS)

    def _sums(self, cells: Cells) -> tuple[Integers, Integers, Floats]:
        """The counts, the multiples below their distorted sums, and the chances that the next one is published."""
        count, distorted, part = cells["count"], cells["distorted"], cells["remainder"]
        # The error names no number: these are confidential. Every factor lies between 0 and 2.
        if len(cells) and not (
            int(count.min()) >= 0
            and int(count.max()) < LIMIT // ONE
            and bool(np.all((distorted >= 0) & (distorted <= 2 * count) & (part >= 0) & (part < ONE)))
            and bool(np.all(((distorted > 0) | (part > 0)) == (count > 0)))
        ):
            raise MethodError(
                self.name,
                expected="0 < distorted < 2·count where there are jobs, and 0 where there are none",
                found="a cell outside these limits",
                do="tabulate `distorted` with the factors of sfumato.noise.factors",
            )
        below = distorted // self.rounding * self.rounding
        return count, below, (distorted - below + part / ONE) / self.rounding
