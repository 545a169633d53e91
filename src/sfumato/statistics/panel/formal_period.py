"""The workforce indicators of one period with a guarantee: what is measured of each cell, and how it is protected.

Jobs of a period are of six kinds, by what is around the period, and every count of jobs is a sum of some of them. So
they are protected as workers of six kinds are. docs/methods/formal-indicators.md has the proofs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from types import MappingProxyType

import numpy as np

from sfumato.arrays import Flags, Integers
from sfumato.errors import MethodError
from sfumato.noise.randomness import Randomness
from sfumato.statistics.jobs.mean_of import MeanOf
from sfumato.statistics.jobs.vector import VectorPareto
from sfumato.statistics.panel.indicators import CODES

KINDS = ("kept", "left", "recalled", "recalled and left", "hired", "hired and left")
"""What a job of a period is: held before and after, held before only, and so on of those that began."""
_ALL = tuple(range(len(KINDS)))
OF: Mapping[str, tuple[int, ...]] = MappingProxyType(
    {
        "employment": _ALL,
        "beginning": (0, 1),
        "end": (0, 2, 4),
        "full_quarter": (0,),
        "accessions": (2, 3, 4, 5),
        "separations": (1, 3, 5),
        "new_hires": (4, 5),
        "recalls": (2, 3),
    }
)
"""The kinds of jobs that each count adds up."""
GAINED, LOST = (2, 4), (1,)
"""The kinds that the end of a period has and its beginning has not, and the other way round."""
CHANGE, KEPT_PAY, OTHER_PAY = (len(KINDS) + place for place in range(3))
"""Behind the kinds of jobs: how far employers are from where they began, and the payroll of kept jobs and of others."""
MEASURED = len(KINDS) + 3
"""How many numbers are tabulated of each cell."""
AVERAGE = "average_monthly_earnings"
FLOWS = ("job_creation", "job_destruction")
PAYROLLS = ("payroll", "full_quarter_payroll")
COUNTS, CHANGES, PAY = "counts", "changes", "payroll"
"""The three things that are protected, each with its own noise, by their names in a release file."""
AT = {code: place for place, code in enumerate(CODES)}
MOST = 2**58
"""Protected numbers are cut here, so that sums of a few of them fit 64 bits; noise saturates far beyond."""


def grouped(indicators: Sequence[str]) -> tuple[tuple[int, ...], ...]:
    """The kinds of jobs in the fewest groups that all these indicators are sums of, in order.

    >>> grouped(["employment", "accessions"])
    ((0, 1), (2, 3, 4, 5))
    """
    sets = [OF[code] for code in indicators if code in OF]
    sets += [GAINED, LOST] if any(code in FLOWS for code in indicators) else []
    sets += [OF["full_quarter"]] if AVERAGE in indicators else []
    alike: dict[tuple[bool, ...], list[int]] = {}
    for kind in _ALL:
        alike.setdefault(tuple(kind in some for some in sets), []).append(kind)
    return tuple(map(tuple, alike.values()))


@dataclass(frozen=True, kw_only=True)
class PeriodPareto:
    """Strong (α, ε) privacy for some indicators of one period, in all worker cells of a workplace cell at once.

    Counts, what employers gained and lost, and payrolls have noise of their own, which shares ε. All of it follows the
    jobs, or the payroll, of the largest establishment of the workplace cell in that period.
    """

    alpha: Fraction
    epsilon: Fraction
    indicators: tuple[str, ...]
    """Those that are asked for and can be known of the period."""
    worker_cells: int = 1
    months: int = 3
    cap: int | None = None
    """What one job adds to a payroll at most."""
    shares: tuple[tuple[str, Fraction], ...] = ()
    """How ε is shared, in proportion to these; empty by how many cells each of the three has."""

    @cached_property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """The groups of kinds of jobs that are counted; none where only payrolls are asked for."""
        return () if all(code in PAYROLLS for code in self.indicators) else grouped(self.indicators)

    @property
    def has_changes(self) -> bool:
        """Whether what employers gained and lost is measured."""
        return any(code in FLOWS for code in self.indicators)

    @property
    def pay(self) -> tuple[tuple[int, ...], ...]:
        """The payrolls that are measured: of kept jobs and others, or of all."""
        if AVERAGE in self.indicators or PAYROLLS[1] in self.indicators:
            return ((KEPT_PAY,), (OTHER_PAY,))
        return ((KEPT_PAY, OTHER_PAY),) if PAYROLLS[0] in self.indicators else ()

    @cached_property
    def known(self) -> tuple[str, ...]:
        """The indicators that an answer has: those that are asked for, and those that their errors are told by."""
        found = {*self.indicators, *(["employment"] if self.groups else []), *([PAYROLLS[0]] if self.pay else [])}
        found |= {"full_quarter", PAYROLLS[1]} if AVERAGE in self.indicators else set()
        return tuple(code for code in CODES if code in found)

    @cached_property
    def cells(self) -> dict[str, int]:
        """How many cells of each measured part a worker cell has."""
        found = {COUNTS: len(self.groups), CHANGES: int(self.has_changes), PAY: len(self.pay)}
        return {part: number for part, number in found.items() if number}

    @cached_property
    def spent(self) -> dict[str, Fraction]:
        """What each part spends of ε."""
        said = dict(self.shares) or {part: Fraction(number + 1) for part, number in self.cells.items()}
        weights = {part: said[part] for part in self.cells}
        return {part: self.epsilon * weight / sum(weights.values()) for part, weight in weights.items()}

    @cached_property
    def parts(self) -> dict[str, VectorPareto]:
        """The noise of each part; a MethodError where ε is too small for it."""
        floors = {PAY: self.cap or 1}
        return {
            part: VectorPareto(
                alpha=self.alpha,
                epsilon=self.spent[part],
                worker_cells=number * self.worker_cells,
                floor=floors.get(part, 1),
            )
            for part, number in self.cells.items()
        }

    @cached_property
    def mean_of(self) -> MeanOf:
        """The payroll of kept jobs over their number."""
        return MeanOf(total=self.parts[PAY], jobs=self.parts[COUNTS])

    def groups_of(self, kinds: Sequence[int]) -> list[int]:
        """The groups that make up some kinds of jobs."""
        return [place for place, group in enumerate(self.groups) if set(group) <= set(kinds)]

    # From true numbers to protected ones.

    def protect(self, measured: Integers, largest: Integers, randomness: Randomness) -> Integers:
        """All known indicators but the average, the others 0.

        `measured` has for each workplace cell, worker cell and number what `tabulate_formal` counted; `largest` the
        jobs and the payroll of the largest establishment of each workplace cell.
        """
        values = np.zeros((*measured.shape[:2], len(CODES)), dtype=np.int64)
        if self.groups:
            groups = self._noised(COUNTS, _sums(measured, self.groups), largest[:, 0], randomness)
            for code in self.known:
                if code in OF:
                    values[..., AT[code]] = groups[..., self.groups_of(OF[code])].sum(axis=-1)
        if self.has_changes:
            change = self._noised(CHANGES, measured[..., [CHANGE]], largest[:, 0], randomness)[..., 0]
            gained, lost = (groups[..., self.groups_of(kinds)].sum(axis=-1) for kinds in (GAINED, LOST))
            created, destroyed = created_and_destroyed(change, gained - lost, randomness)
            values[..., AT[FLOWS[0]]], values[..., AT[FLOWS[1]]] = created, destroyed
        if self.pay:
            paid = self._noised(PAY, _sums(measured, self.pay), largest[:, 1], randomness)
            values[..., AT[PAYROLLS[0]]] = paid.sum(axis=-1)
            if len(self.pay) > 1:
                values[..., AT[PAYROLLS[1]]] = paid[..., 0]
        return values

    def _noised(self, part: str, rows: Integers, largest: Integers, randomness: Randomness) -> Integers:
        """Numbers of one part with their noise, drawn for all cells of a workplace cell together."""
        method = self.parts[part]
        p, q = self.alpha.numerator, self.alpha.denominator
        # The error names no number: these are confidential.
        if not _fits(rows, largest, most=2**56 // (p * rows[0].size if len(rows) else 1)):
            raise MethodError(
                "smooth-pareto",
                expected="numbers of jobs and payrolls that are not negative and fit 64 bits after multiplication",
                found="a cell outside these limits",
                do="check the earnings, or choose an alpha with fewer decimals",
            )
        noise = method.noise.sample(np.maximum(largest * p, q * method.floor), randomness)
        noised: Integers = np.clip(rows + noise.reshape(rows.shape), -MOST, MOST)
        return noised

    def average(self, values: Integers) -> Integers:
        """Average monthly earnings from protected payrolls and numbers of jobs; 0 where that is not above 0."""
        paid, jobs = values[..., AT[PAYROLLS[1]]], values[..., AT["full_quarter"]]
        found = np.divide(paid, self.months * jobs, out=np.zeros(paid.shape), where=jobs > 0)
        return np.floor(found + 0.5).astype(np.int64)


def created_and_destroyed(change: Integers, net: Integers, randomness: Randomness) -> tuple[Integers, Integers]:
    """Jobs created and destroyed: together the change of employers, and their difference the net change.

    Their true sum and difference are both even or both odd. Where noise left one of each, a coin makes the sum one more
    or one less, so that both are whole and right on average.
    """
    odd = (change + net) & 1
    coin = (randomness.words(change.size) & np.uint64(1)).astype(np.int64).reshape(change.shape)
    created = (change + net + odd * (2 * coin - 1)) // 2
    return created, created - net


def _sums(measured: Integers, groups: Sequence[Sequence[int]]) -> Integers:
    return np.stack([measured[..., list(group)].sum(axis=-1) for group in groups], axis=-1)


def _fits(rows: Integers, largest: Integers, *, most: int) -> bool:
    inside: Flags = (rows >= 0) & (rows < most)
    return bool(inside.all() and ((largest >= 0) & (largest < most)).all())
