"""Percentiles of small cells, such as graduates' earnings, from noisy counts in public bins."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from types import MappingProxyType
from typing import Any, ClassVar, Literal, Self

import numpy as np
import scipy

from sfumato.arrays import Floats, Integers
from sfumato.cells import Cells, Dimension
from sfumato.errors import MethodError
from sfumato.measures.attacks import AttackResult
from sfumato.method import ABOVE, ADDED, BELOW, SUPPRESSED, PlannedError, added, check_parameters, of_table
from sfumato.noise.randomness import Randomness
from sfumato.privacy.guarantee import EmployerEmployee, plain
from sfumato.statistics.people.adaptive_curve import AdaptiveCurve
from sfumato.statistics.people.bins import BETWEEN, SPREAD_OF_SPREADS, WITHIN, LogNormalFit, PublicBins
from sfumato.statistics.people.curves import (
    ChosenBins,
    Crossings,
    Curve,
    IsotonicCurve,
    Percentiles,
    PlainCurve,
    TreeCurve,
    curve_of,
    shares_of,
)
from sfumato.statistics.people.question import BoundedMeasure
from sfumato.statistics.people.section import Bins
from sfumato.statistics.people.small_samples import NO_ERROR, NORMAL, OfWeights

# The curves that percentiles can be read from, and which of them suits cells of a given size.

CurveName = Literal["adaptive", "isotonic", "hierarchical", "exponential", "plain"]
_CLASSES: Mapping[CurveName, Any] = MappingProxyType(
    {
        "adaptive": AdaptiveCurve,
        "isotonic": IsotonicCurve,
        "hierarchical": TreeCurve,
        "exponential": ChosenBins,
        "plain": PlainCurve,
    }
)
CURVES: tuple[CurveName, ...] = tuple(_CLASSES)
"""Every curve by its name in a release file."""

_MEANS, _SPREADS = 15, 5
"""How many means, and how many spreads, the planned cells have."""


@dataclass(frozen=True, kw_only=True)
class PlannedCurve:
    """What one curve promises for cells of one size."""

    curve: CurveName
    size: int
    errors: tuple[float, ...]
    """The expected mean absolute relative error of each percentile."""

    @property
    def error(self) -> float:
        """The mean over the percentiles."""
        return sum(self.errors) / len(self.errors)


def curve_named(
    name: CurveName, *, bins: PublicBins, at: Sequence[Fraction], epsilon: Fraction, largest: int = 1
) -> Curve:
    """The named curve at these percentiles, with so much ε for each cell, of people of this largest weight."""
    if name not in _CLASSES:
        raise MethodError(
            "curve of percentiles", expected=f"one of {', '.join(CURVES)}", found=repr(name), do="name one of these"
        )
    curve: Curve = _CLASSES[name](bins=bins, at=tuple(at), epsilon=epsilon, largest=largest)
    return curve


def bins_of_guess(
    name: CurveName,
    *,
    median: Fraction | int,
    sigma: Fraction,
    number: int,
    minimum: int | None = None,
    maximum: int | None = None,
) -> PublicBins:
    """The public bins of a guess that suit a curve.

    The adaptive curve reaches far beyond the guess: a tail without people costs it little. All others would spread
    their noise over bins that are mostly empty.
    """
    made = PublicBins.of_guess if name == "adaptive" else PublicBins.equal_mass
    return made(median=median, sigma=sigma, number=number, minimum=minimum, maximum=maximum)


def bins_of(bins: Bins, of: BoundedMeasure, *, curve: CurveName) -> PublicBins:
    """The public bins of percentiles: those that are listed, or of a guess within the bounds of the measure."""
    if bins.edges is not None:
        return PublicBins(edges=bins.edges)
    if bins.median is None or bins.sigma is None or bins.number is None:
        raise ValueError("bins are a list of edges or a guess")
    return bins_of_guess(
        curve, median=bins.median, sigma=bins.sigma, number=bins.number, minimum=of.low, maximum=of.high
    )


def planned(name: CurveName, *, bins: PublicBins, at: Sequence[Fraction], epsilon: Fraction, size: int) -> PlannedCurve:
    """The error in log-normal cells of a size, as the bins lead one to expect them: no data are read.

    >>> bins = PublicBins.equal_mass(median=45_000, sigma=Fraction("0.8"), number=20, minimum=0, maximum=10**6)
    >>> plan = planned("adaptive", bins=bins, at=[Fraction(50)], epsilon=Fraction(3, 2), size=100)
    >>> 0.02 < plan.error < 0.03
    True
    """
    usual, spread = bins.guess
    means, spreads = (places.ravel() for places in np.meshgrid(_middles(_MEANS), _middles(_SPREADS)))
    cells = LogNormalFit(
        bins=bins,
        people=np.full(len(means), float(size)),
        mean=usual + BETWEEN * spread * means,
        spread=WITHIN * spread * np.exp(SPREAD_OF_SPREADS * spreads),
    )
    curve = curve_named(name, bins=bins, at=at, epsilon=epsilon)
    found = curve.percentiles(curve.expected(size * cells.shares))
    told = found.ends.side == 0
    told |= ~told.any(axis=0)
    errors = np.sqrt(2 / np.pi) * np.mean(found.likely, axis=0, where=told)
    return PlannedCurve(curve=name, size=size, errors=tuple(errors.tolist()))


def recommended(*, bins: PublicBins, at: Sequence[Fraction], epsilon: Fraction, size: int) -> list[PlannedCurve]:
    """Every curve at cells of this size, from the least expected error to the largest; nothing is spent by asking."""
    plans = [
        planned(name, bins=bins if name == "adaptive" else bins.even, at=at, epsilon=epsilon, size=size)
        for name in CURVES
    ]
    return sorted(plans, key=lambda plan: plan.error)


def _middles(number: int) -> Floats:
    """The middles of equal parts of a normal distribution."""
    middles: Floats = scipy.special.ndtri((np.arange(number) + 0.5) / number)
    return middles


BIN = "bin"
AT = "at"

_LIMIT = 2**40
"""People in a cell; times the finest percentile it fits 64 bits."""
_FINEST = 10**6
_MEAN_OF_DEVIATION = np.sqrt(2 / np.pi)
_CHUNK = 1 << 12
"""Cells at a time: the working arrays stay small."""
_TYPICAL = 100
"""People in the cell whose error is planned."""


@dataclass(frozen=True, kw_only=True)
class NoisyQuantiles(OfWeights):
    """ε privacy for persons by noisy counts in public bins; percentiles, counts and errors follow from these alone.

    A person is in one cell a period and in one bin of it. Cells whose noisy count is below `minimum` are withheld; of
    people with weights, those that weigh less than `minimum` of the largest weight.
    docs/methods/earnings-percentiles.md has the proofs and the measured errors.
    """

    name: ClassVar[str] = "noisy-quantiles"
    of_people: ClassVar[tuple[str, ...]] = ("quantiles",)
    """The statistics of people that it makes."""
    description: ClassVar[str] = (
        "people were counted in bins of values that are the same for all cells and do not come from the data, random "
        "noise was added to these counts, and percentiles were worked out from the noisy counts only"
    )
    needs: ClassVar[frozenset[str]] = frozenset({"count"})

    alpha: Fraction
    epsilon: Fraction
    worker_cells: int = 0
    curve: CurveName = "adaptive"
    minimum: int = 30
    at: tuple[Fraction, ...] = of_table((Fraction(25), Fraction(50), Fraction(75)))
    edges: tuple[int, ...] = of_table((0, 1, 2))
    """Of the bins, in the smallest unit."""
    tails: tuple[int, int] = of_table((1, 1))
    """How many bins make up the first bin of equal mass, and how many the last one."""
    bounds: bool = of_table(True)
    """Whether percentiles in the end bins are bounds. Questions that version 0.1.0 answered have False: its answers
    tell an error there."""
    periods: int = of_table(1)
    """Of the table: a person may be in a cell of each, so that each gets an even part of ε."""
    decimals: int = of_table(0)
    """Values are published in units of 10^−decimals of the smallest unit."""
    step: int = added(1, of_table=True)
    """Values are rounded to multiples of this, in the middle between edges, and percentiles are such multiples."""

    def true_estimates(self, counted: Cells) -> Floats:
        """The percentiles of the true counts in bins: confidential."""
        counts = counted["count"].reshape(-1, len(self.bins)).astype(np.float64)
        targets = counts.sum(axis=1, keepdims=True) * shares_of(self.at)
        values = np.exp(Crossings.of(curve_of(counts), targets).logs(self.bins))
        values = values if self.step == 1 else np.rint(values / self.step) * self.step
        return np.where(targets > 0, values, np.nan).ravel()

    def people(self, counted: Cells) -> Integers:
        """The true number of people of every cell: confidential."""
        found: Integers = counted["count"].reshape(-1, len(self.bins)).sum(axis=1)
        return found

    def in_order(self) -> Self:
        """The same method with its percentiles in one order."""
        return replace(self, at=tuple(sorted(self.at)))

    def attacks(self, counted: Cells, answer: Cells) -> tuple[AttackResult, ...]:  # noqa: ARG002
        """None is known: everything follows from noisy counts."""
        return ()

    def typical_error(self) -> str:
        """How far a percentile is typically off."""
        error = self.planned_error()
        return f"{error.of[0].upper() + error.of[1:]} is typically off by {100 * (error.share or 0):.2g} % of itself."

    def typical_by_size(self) -> tuple[str, str]:
        """The same in short, for small and for large groups."""
        error = self.planned_error()
        return ("by group", "by group") if error.share is None else ("by group", error.in_a_large_cell)

    def __post_init__(self) -> None:
        check_parameters(self.name, alpha=self.alpha, epsilon=self.epsilon, worker_cells=self.worker_cells)
        self.check_weights()
        in_order = all(low < high for low, high in pairwise(self.at))
        rules = (
            (self.curve in CURVES, "curve", f"one of {', '.join(CURVES)}"),
            (0 <= self.minimum < _LIMIT, "minimum", "a whole number from 0 on"),
            (len(self.at) > 0 and all(0 < place < 100 for place in self.at), "at", "percentiles between 0 and 100"),
            (in_order, "at", "percentiles that increase"),
            (
                all((place / 100).denominator <= _FINEST for place in self.at),
                "at",
                "at most four digits after the point",
            ),
            (self.periods >= 1, "periods", "at least one"),
            (0 <= self.decimals <= 6, "decimals", "a whole number from 0 to 6"),
            (self.bounds or self.tails == (1, 1), "tails", "one bin, as in version 0.1.0"),
        )
        for holds, option, expected in rules:
            if not holds:
                value = getattr(self, option)
                found = ", ".join(map(plain, value)) or "none" if option == AT else repr(value)
                raise MethodError(
                    f"{self.name}, {option}", expected=expected, found=found, do="correct the release file"
                )
        _ = self.bins  # refuses edges that do not increase, before anything is charged

    def __repr__(self) -> str:
        """All parameters; questions of version 0.1.0 are told as it told them, so that their answers are found."""
        known = (part.name for part in fields(self) if not part.metadata.get(ADDED))
        told = [name for name in known if self.bounds or name not in ("tails", "bounds")]
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in told)})"

    @cached_property
    def bins(self) -> PublicBins:
        """The public bins."""
        return PublicBins(edges=self.edges, tails=self.tails)

    @cached_property
    def percentile_curve(self) -> Curve:
        """How percentiles are found, with the ε that each cell has."""
        epsilon = self.epsilon / self.periods
        return curve_named(self.curve, bins=self.bins, at=self.at, epsilon=epsilon, largest=self.largest_weight)

    @property
    def most_people(self) -> int:
        """How many people, or how much weight, a bin may have, so that all arithmetic stays within 64 bits."""
        return _LIMIT // len(self.bins)

    def guarantee(self) -> EmployerEmployee:
        """For individuals: one person in or out, with everything that is published about all periods."""
        return EmployerEmployee(definition="individuals", alpha=self.alpha, epsilon=self.epsilon)

    def planned_error(self) -> PlannedError:
        """The mean error of a percentile of a hundred people, as a share of it."""
        plan = planned(self.curve, bins=self.bins, at=self.at, epsilon=self.epsilon / self.periods, size=_TYPICAL)
        who = f"{_TYPICAL} people"
        if self.largest_weight > 1:
            who = f"people who weigh {_TYPICAL * self.largest_weight:,} together"
        return PlannedError(floor=0.0, floor_size=0, share=plan.error, of=f"a percentile of {who}")

    def expected_error(self, cells: Cells) -> Floats:
        """The mean absolute error of every percentile, NaN in the end bins, from the true counts: confidential."""
        errors = []
        for counts in self._chunks(cells):
            found = self.percentile_curve.percentiles(self.percentile_curve.expected(counts.astype(np.float64)))
            error = np.exp(found.logs) * found.likely * (_MEAN_OF_DEVIATION * 10**self.decimals)
            errors.append(np.where(found.ends.side == 0, error, np.nan))
        return np.concatenate(errors, axis=None) if errors else np.empty(0)

    def protect(self, cells: Cells, randomness: Randomness) -> Cells:
        """Percentiles with their standard errors, and the noisy number of people, for the groups of the table.

        The last dimension of the cells, the bins, becomes the percentiles.
        """
        codes = tuple(f"p{plain(place)}" for place in self.at)
        columns: dict[str, list[Integers]] = {"value": [], "count": [], "error": [], "status": []}
        for counts in self._chunks(cells):
            measured = self.percentile_curve.measured(counts, randomness)
            for name, column in self._published(self.percentile_curve.percentiles(measured)).items():
                columns[name].append(column)
        groups = cells.positions[:: len(self.bins)] // len(self.bins)
        return Cells(
            dimensions=(*cells.dimensions[:-1], Dimension(name=AT, codes=codes)),
            positions=(groups[:, None] * len(codes) + np.arange(len(codes))).ravel(),
            columns={name: np.concatenate([*parts, np.empty(0, dtype=np.int64)]) for name, parts in columns.items()},
        )

    def published_error(self, values: Integers) -> Floats:
        """Nothing but what `protect` publishes beside the value: it depends on the noisy counts in all bins."""
        return np.full(len(values), np.nan)

    def published_interval(self, values: Integers, confidence: float) -> tuple[Floats, Floats]:
        """Nothing but the bounds: the error beside the value tells more."""
        if not 0 < confidence < 1:
            raise ValueError(f"confidence must be between 0 and 1, not {confidence}")
        unit = 10.0**self.decimals
        return np.full(len(values), self.edges[0] * unit), np.full(len(values), self.edges[-1] * unit)

    def _published(self, found: Percentiles) -> dict[str, Integers]:
        """Rounded to whole units; a bound without an error in the first and the last bin; withheld with few people.

        All of it is decided by noisy counts.
        """
        unit, side = 10**self.decimals, found.ends.side
        status = np.where(side < 0, BELOW, np.where(side > 0, ABOVE, 0))
        status = np.where((found.people < self.minimum * self.largest_weight)[:, None], SUPPRESSED, status)
        value = np.where(side == 0, np.rint(np.exp(found.logs) * unit).astype(np.int64), found.ends.bound * unit)
        error = np.maximum(np.rint(np.exp(found.logs) * found.errors * unit), 1.0).astype(np.int64)
        if self.step > 1:
            inside, step = np.exp(found.logs), self.step
            nearest = np.rint(inside / step)
            # Every multiple whose people the interval around the crossing meets; half a step where it meets no other.
            ends = (np.rint(inside * (1 + side * NORMAL * found.errors) / step) - nearest for side in (-1, 1))
            off = np.maximum(np.maximum.reduce([np.abs(end) for end in ends]), 0.5) * step * unit
            value = np.where(side == 0, (nearest * step * unit).astype(np.int64), value)
            error = np.ceil(off / NORMAL).astype(np.int64)
        return {
            "value": np.where(status == SUPPRESSED, 0, value).ravel(),
            "count": np.broadcast_to(found.people[:, None], status.shape).ravel(),
            "error": np.where(status == 0, error, NO_ERROR).ravel(),
            "status": status.astype(np.int64).ravel(),
        }

    def _chunks(self, cells: Cells) -> Iterator[Integers]:
        """The counts of some cells at a time: one row a cell, one column a bin."""
        if cells.dimensions[-1].name != BIN or len(cells.dimensions[-1]) != len(self.bins):
            raise ValueError(f"the last dimension must be {BIN!r}, with {len(self.bins)} codes")
        bins = np.arange(len(self.bins))
        for start in range(0, len(cells), _CHUNK * len(bins)):
            part = slice(start, start + _CHUNK * len(bins))
            places, counts = cells.positions[part], cells["count"][part]
            if len(places) % len(bins) or not np.array_equal(places % len(bins), np.resize(bins, len(places))):
                raise ValueError("every cell must list all its bins, empty ones too")
            # The error names no number: these are confidential.
            if int(counts.min()) < 0 or int(counts.max()) >= self.most_people:
                raise MethodError(
                    self.name,
                    expected="no negative count, and fewer than 2^40 people in a cell",
                    found="a cell outside these limits",
                    do="check the counts",
                )
            yield counts.reshape(-1, len(bins))
