"""Distorted sums: noise infusion for workforce indicators, flows and graphs, published as whole numbers."""

from dataclasses import dataclass
from math import prod
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Floats, Integers
from sfumato.cells import Cells
from sfumato.errors import MethodError
from sfumato.method import HIDDEN, NOT_AVAILABLE, SUPPRESSED, SYNTHESISED, PlannedError, added, of_table
from sfumato.noise.factors import LEAK, ONE, WHOLE_NUMBERS, refuse_base, rounded_by_thresholds
from sfumato.noise.randomness import Randomness
from sfumato.privacy.guarantee import NoFormalGuarantee
from sfumato.statistics.jobs.noise_infusion import no_guarantee
from sfumato.statistics.panel.indicators import CODES, INDICATORS, NAME
from sfumato.statistics.panel.question import BEHIND
from sfumato.statistics.panel.synthesise import PairLayout, synthesised

PAYROLLS = ("payroll", "full_quarter_payroll")
_AVERAGE = "average_monthly_earnings"
_BASES = {"jobs": "rounding", "earnings": "earnings_rounding"}
_MADE_OF = {"accessions": 2, "separations": 2, "recalls": 3, "job_destruction": 3}
"""Of how many rounded values an indicator is the difference, where it is not rounded by itself; see `_indicators`."""
ROUNDINGS = "roundings"
"""Of tables that are published as sums of a finer one, a further column: of how many rounded values."""
_SPREAD = float(np.sqrt(2 / np.pi))  # mean absolute deviation of a normal variable with standard deviation 1


@dataclass(frozen=True, kw_only=True)
class InfusedSums:
    """Sums over jobs or edges of a label times the secret, permanent factor of an employer.

    They are rounded to multiples of a base by chance, so that a sum of many published cells is right for the distorted
    sum: with the base 5 a sum of 6 becomes 5 or 10, the latter with probability 0.2. Rounding to the nearest would
    publish all small cells as 0. Indicators are rounded together, so that their identities hold exactly.
    docs/methods/noise-infusion.md describes both, and why the base must not be 1.

    The chance of a cell must be the same whenever it is asked about, or readers would average it away:
    `sfumato.noise.keyed` supplies it.
    """

    name: ClassVar[str] = "noise-infusion-sums"
    keyed: ClassVar[bool] = True
    """It takes its chance from a key file and costs no budget: it has no formal guarantee."""
    unbiased: ClassVar[bool] = False
    needs: ClassVar[frozenset[str]] = frozenset(
        {"count", "distorted", "remainder", "factors", "deviation", "available"}
    )

    minimum: int = 0
    """Published values below this are suppressed or synthesised; of indicators, the number of jobs decides."""
    below: Literal["suppressed", "synthesised"] = "suppressed"
    directed: bool = of_table(True)
    """Of flows and graphs: whether the ends of a pair are told apart."""
    ends: int = of_table(1)
    """Of flows and graphs: by how many attributes each end is classified."""
    months: int = of_table(3)
    """The months of a period, for average monthly earnings."""
    rounding: int = added(WHOLE_NUMBERS)
    """Numbers of jobs and pairs are multiples of this; a release chooses it unless it says so."""
    earnings_rounding: int = added(WHOLE_NUMBERS)
    """The same of payrolls."""
    convergence: bool = added(False)
    """Of flows and graphs: publish the convergence ratio of cells with many factors."""
    earnings: bool = added(False, of_table=True)
    """Of flows and graphs: whether values are sums of earnings."""

    @property
    def description(self) -> str:
        """What is done to the sums, as a clause of the privacy statement."""
        to = "whole numbers" if self._base == WHOLE_NUMBERS else f"multiples of {self._base:,}"
        if self.earnings_rounding > WHOLE_NUMBERS and not self.earnings:
            to += f", payrolls to multiples of {self.earnings_rounding:,},"
        return (
            "the figures of every employer were multiplied by a secret factor that never changes and is never close to "
            f"one, and the sums rounded to {to} by chance, the same chance for a cell in every release"
            + (f". {LEAK}" if self._base == WHOLE_NUMBERS else "")
        )

    def __post_init__(self) -> None:
        for option in ("rounding", "earnings_rounding"):
            refuse_base(self.name, option, getattr(self, option))
        if self.below not in ("suppressed", "synthesised"):
            raise MethodError(
                f"{self.name}, below",
                expected='"suppressed" or "synthesised"',
                found=repr(self.below),
                do="choose what is done to cells below `minimum`",
            )
        if not 0 <= self.minimum <= ONE:
            raise MethodError(
                f"{self.name}, minimum",
                expected=f"a whole number from 0 to {ONE:,}",
                found=f"{self.minimum:,}",
                do="give the least value that may be published, such as 3",
            )
        if self.earnings and (self.below == "synthesised" or self.convergence):
            option = "below" if self.below == "synthesised" else "convergence"
            raise MethodError(
                f"{self.name}, {option}",
                expected="an option of counts: sums of earnings are suppressed, and are no observations",
                found=f"{option} with earnings as weights",
                do="leave it out, or weight by workers",
            )

    @property
    def _base(self) -> int:
        """What values are rounded to; of indicators, those that are no earnings."""
        return self.earnings_rounding if self.earnings else self.rounding

    def guarantee(self) -> NoFormalGuarantee:
        """None that could be proved; said plainly."""
        return no_guarantee(self._base)

    def planned_error(self) -> PlannedError:
        """None where there is nothing; elsewhere it depends on the factors, which are secret."""
        return PlannedError(floor=0.0, floor_size=0, share=None, of="its count")

    def expected_error(self, cells: Cells) -> Floats:
        """The mean absolute error over all keys, from the employers' true shares: confidential.

        With one factor it is all but the deviation, with many it is that of a normal variable. Rounding to a base adds
        a variance of base²/6 on average, so many times as the cells have in `ROUNDINGS`: once unless they have it.
        """
        error: Floats = cells["deviation"] / ONE * np.where(cells["factors"] > 1, _SPREAD, 1.0)
        if self._base == WHOLE_NUMBERS:
            return error
        variance = self._bases(cells) ** 2 / 6 * cells.columns.get(ROUNDINGS, 1)
        return np.where(cells["count"] > 0, np.sqrt(error**2 + _SPREAD**2 * variance), error)

    def expected_bias(self, cells: Cells) -> Floats:
        """The change by the factors, the same in every release: confidential."""
        bias: Floats = cells["distorted"] + cells["remainder"] / ONE - cells["count"]
        if _has_indicators(cells):
            bias.reshape(-1, len(CODES))[:, CODES.index(_AVERAGE)] = 0.0
        return bias

    def protect(self, cells: Cells, randomness: Randomness) -> Cells:
        """Whole numbers in the column `value`, and in `status` what became of a cell."""
        words = randomness.words(len(cells))
        status = np.where(cells["available"] == 1, 0, NOT_AVAILABLE)
        if _has_indicators(cells):
            value = self._indicators(cells, words)
            few = (value > 0) & (value < self.minimum)
            few = np.repeat(few.reshape(-1, len(CODES))[:, CODES.index("employment")], len(CODES))
            status[few & (status == 0)] = SUPPRESSED
            status = self.with_averages(value, status)
        else:
            value = self._rounded(cells["distorted"], cells["remainder"], words, base=self._base)
            # Of earnings, the workers behind them decide, distorted as they would be published.
            few = ((cells[BEHIND] if self.earnings else value) < self.minimum) & (status == 0)
            if self.below == "synthesised":
                value = self._synthesised(cells, value, few, randomness)
                status[few] = SYNTHESISED
            else:
                status[few] = SUPPRESSED
        value = np.where(np.isin(status, HIDDEN), 0, value)
        columns = {"value": value, "status": status.astype(np.int64)}
        if self.convergence and not _has_indicators(cells):
            columns["convergence"] = published_convergence(value, cells["factors"], status)
        return Cells(dimensions=cells.dimensions, positions=cells.positions, columns=columns)

    def published_error(self, values: Integers) -> Floats:
        """Nothing may be told: it would reveal how far factors are from one."""
        return np.full(len(values), np.nan)

    def published_interval(self, values: Integers, confidence: float) -> tuple[Floats, Floats]:
        """The least value the published one is consistent with, all factors being below 2; there is no greatest.

        A value v ≥ 1 comes from a true one above (v − base)/2. The larger base is taken: nothing says of a single value
        whether it is of earnings.
        """
        if not 0 < confidence < 1:
            raise ValueError(f"confidence must be between 0 and 1, not {confidence}")
        base = max(self.rounding, self.earnings_rounding)
        low: Floats = np.maximum((values - base) // 2 + 1, 0).astype(np.float64)
        return np.where(values > 0, low, 0.0), np.full(len(values), np.nan)

    def average(self, payroll: Integers, jobs: Integers) -> Integers:
        """Average monthly earnings from the published payroll and number of jobs, in whole units.

        The ratio of the distorted sums before rounding would be exact for a single employer. With its published payroll
        it would tell the distorted number of jobs to so many digits that the factor follows.
        """
        average = np.divide(payroll, self.months * jobs, out=np.zeros(len(jobs)), where=jobs > 0)
        return np.floor(average + 0.5).astype(np.int64)

    def with_averages(self, value: Integers, status: Integers) -> Integers:
        """The status of indicators: without a published job there is no average of a payroll that is not 0."""
        if self.rounding == WHOLE_NUMBERS:
            return status
        values, known = value.reshape(-1, len(CODES)), status.reshape(-1, len(CODES)).copy()
        held, paid, average = (CODES.index(code) for code in ("full_quarter", "full_quarter_payroll", _AVERAGE))
        undefined = (values[:, held] == 0) & (values[:, paid] > 0)
        known[:, average] = np.where(undefined & (known[:, held] == 0), NOT_AVAILABLE, known[:, held])
        return known.reshape(-1)

    def _bases(self, cells: Cells) -> Floats:
        """What each value is rounded to; of one made of rounded values, what their rounding comes to."""
        if not _has_indicators(cells):
            return np.full(len(cells), float(self._base))
        bases = np.tile(
            [float(getattr(self, _BASES[indicator.unit])) for indicator in INDICATORS], len(cells) // len(CODES)
        )
        count = cells["count"].reshape(-1, len(CODES))
        for code, made_of in _MADE_OF.items():
            bases.reshape(-1, len(CODES))[:, CODES.index(code)] *= np.sqrt(made_of)
        hires, recalls = (CODES.index(code) for code in ("new_hires", "recalls"))
        all_new = np.where(count[:, recalls] == 0, np.sqrt(_MADE_OF["accessions"]), 1.0)
        bases.reshape(-1, len(CODES))[:, hires] *= all_new  # they are then the accessions
        held, average = (CODES.index(code) for code in ("full_quarter", _AVERAGE))
        jobs, mean = np.maximum(count[:, held], 1), count[:, average]
        by_pay, by_jobs = self.earnings_rounding / (self.months * jobs), self.rounding * mean / jobs
        bases.reshape(-1, len(CODES))[:, average] = np.hypot(by_pay, by_jobs)
        return bases

    def _rounded(self, whole: Integers, part: Integers, words: NDArray[np.uint64], *, base: int) -> Integers:
        """The multiple of the base below or above, by chance, so that it is right on average."""
        if base > WHOLE_NUMBERS:
            flat = rounded_by_thresholds(whole.reshape(-1), part.reshape(-1), words.reshape(-1), base=base)
            return flat.reshape(whole.shape)
        up: Integers = whole + ((words % np.uint64(ONE)).astype(np.int64) < part)
        return up

    def _stock(self, whole: Integers, part: Integers, words: NDArray[np.uint64]) -> Integers:
        """The same for numbers that share a word: a larger one is never rounded below a smaller one."""
        if self.rounding > WHOLE_NUMBERS:
            return self._rounded(whole, part, words, base=self.rounding)
        stock: Integers = whole + (part + (words % np.uint64(ONE)).astype(np.int64)) // ONE
        return stock

    def _synthesised(self, cells: Cells, value: Integers, few: NDArray[np.bool_], randomness: Randomness) -> Integers:
        """Draw the cells below the minimum from a model of the others."""
        sizes = tuple(map(len, cells.dimensions))
        layout = PairLayout.of(
            cells.positions,
            classes=prod(sizes[: self.ends]),
            others=prod(sizes[2 * self.ends :]),
            directed=self.directed,
        )
        keep = ~few & (cells["available"] == 1)
        words = randomness.words(len(cells))
        return synthesised(value, keep=keep, below=few, layout=layout, minimum=self.minimum, words=words)

    def _indicators(self, cells: Cells, words: NDArray[np.uint64]) -> Integers:
        """Round the indicators of each cell together."""
        at = {code: place for place, code in enumerate(CODES)}
        whole, part = (cells[name].reshape(-1, len(CODES)) for name in ("distorted", "remainder"))
        word = words.reshape(-1, len(CODES))
        value = self._rounded(whole, part, word, base=self.rounding)
        for code in PAYROLLS:  # these stay as they are, the rest is made to agree
            place = at[code]
            value[:, place] = self._rounded(
                whole[:, place], part[:, place], word[:, place], base=self.earnings_rounding
            )

        def micro(code: str) -> Integers:
            summed: Integers = whole[:, at[code]] * ONE + part[:, at[code]]
            return summed

        # One chance for all: what is equal before rounding is equal after it, and what is no larger is no larger.
        together = word[:, at["employment"]]
        beginning, end, stayed, all_jobs = (
            self._stock(whole[:, at[code]], part[:, at[code]], together)
            for code in ("beginning", "end", "full_quarter", "employment")
        )
        # There are at least as many jobs as at the beginning and at the end together, less those at both.
        employment = np.maximum(all_jobs, beginning + end - stayed)
        accessions = employment - beginning
        value[:, at["full_quarter"]], value[:, at["employment"]] = stayed, employment
        value[:, at["beginning"]], value[:, at["end"]] = beginning, end
        value[:, at["accessions"]], value[:, at["separations"]] = accessions, employment - end
        hired, recalled = micro("new_hires"), micro("recalls")
        hires = np.where(recalled == 0, accessions, np.minimum(value[:, at["new_hires"]], accessions))
        value[:, at["new_hires"]] = np.where(hired == 0, 0, hires)
        value[:, at["recalls"]] = accessions - value[:, at["new_hires"]]
        net, gained, lost = end - beginning, micro("job_creation"), micro("job_destruction")
        creation = np.where((gained == 0) | (lost == 0), net, np.maximum(value[:, at["job_creation"]], net))
        value[:, at["job_creation"]] = np.maximum(creation, 0)
        value[:, at["job_destruction"]] = value[:, at["job_creation"]] - net
        pay = at["full_quarter_payroll"]
        value[:, pay] = np.minimum(value[:, pay], value[:, at["payroll"]])
        value[:, at[_AVERAGE]] = self.average(value[:, pay], stayed)
        return value.reshape(-1)


LEAST_FACTORS = 10
"""The convergence ratio of a cell with fewer distinct factors is not told: it would tell which employers are alone."""
HUNDREDTHS = 100
_STEPS = (100, 150, 200, 300, 500, 700)


def published_convergence(value: Integers, factors: Integers, status: Integers) -> Integers:
    """Published observations for each distinct factor, in hundredths, on a coarse scale; 0 where it is not told.

    The scale is 1, 1.5, 2, 3, 5, 7, 10, 15, …, rounded down: a finer figure would tell the number of employers.

    >>> published_convergence(np.array([38, 400, 9]), np.array([12, 100, 3]), np.array([0, 0, 0])).tolist()
    [300, 300, 0]
    """
    told = (factors >= LEAST_FACTORS) & (status == 0)
    ratio = np.where(told, value * HUNDREDTHS // np.maximum(factors, 1), 0)
    scale = np.array([0, *(step * 10**power for power in range(12) for step in _STEPS)], dtype=np.int64)
    steps: Integers = scale[np.searchsorted(scale, ratio, side="right") - 1]
    return np.where(told, np.maximum(steps, _STEPS[0]), 0)


def _has_indicators(cells: Cells) -> bool:
    return cells.dimensions[-1].name == NAME
