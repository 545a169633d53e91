"""Noise infusion of counts: every establishment's figures times its permanent factor, rounded."""

from dataclasses import dataclass
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


@dataclass(frozen=True, kw_only=True)
class NoiseInfusion:
    """Cells that sum establishments' jobs times a secret, permanent factor each; there is no formal guarantee.

    The factors are applied by tabulation, which alone knows establishments: `distorted` and `remainder` are
    Σ factor·jobs in whole jobs and millionths. They are rounded to multiples of `rounding` by secret thresholds; zeros
    stay zero. Rounded to whole numbers, as by earlier versions, a count of 1 or 2 is replaced by a draw from {1, 2}.
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

    def __post_init__(self) -> None:
        refuse_base(self.name, "rounding", self.rounding)

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
            f"random, and zeros were left as they are. {LEAK}"
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
        error: Floats = np.where(self._is_redrawn(count), 0.5, off)  # a fair draw from {1, 2} in place of 1 or of 2
        return error

    def expected_bias(self, cells: Cells) -> Floats:
        """The change by the factors, the same in every release, or half a job in a small cell: confidential."""
        count, below, chance = self._sums(cells)
        bias: Floats = np.where(self._is_redrawn(count), 1.5, below + self.rounding * chance) - count
        return bias

    def protect(self, cells: Cells, randomness: Randomness) -> Cells:
        """The distorted sums, rounded so that they are right on average; zeros stay."""
        count, below, chance = self._sums(cells)
        words = randomness.words(len(cells))
        if self.rounding > WHOLE_NUMBERS:
            value = rounded_by_thresholds(cells["distorted"], cells["remainder"], words, base=self.rounding)
        else:
            up = ((words >> np.uint64(1)) % np.uint64(ONE)) / ONE < chance
            value = np.where(self._is_redrawn(count), 1 + (words & np.uint64(1)).astype(np.int64), below + up)
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
