"""A question to a cube, its answer with expected errors, and quantiles of ordered codes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fractions import Fraction
from functools import cached_property
from math import isfinite, prod
from statistics import NormalDist

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.agree.least_squares import Axes
from sfumato.arrays import Floats, Integers
from sfumato.cells import Dimension
from sfumato.errors import SfumatoError
from sfumato.statistics.cube.cube import Cube, refusal
from sfumato.statistics.cube.figures import ColumnNoise
from sfumato.statistics.cube.levels import MeasuredMargin, effect_variances, query_covariance, query_variance

# A question to a cube: which dimensions, which codes, and how many codes go into one cell of the answer.

By = str | Sequence[str]
"""The dimensions of an answer, in its order; one of them may be named without a list."""
Where = Mapping[str, str | Iterable[str]]
"""The codes to keep, by dimension."""
CubePlaces = tuple[int, ...]
_LISTED = 12


@dataclass(frozen=True, kw_only=True)
class CubeQuery:
    """A question as counts of codes: how many of each dimension go into one cell of the answer."""

    by: tuple[str, ...]
    axes: Axes
    """The dimensions of the answer, in its order."""
    kept: Mapping[int, CubePlaces]
    """The places of the codes that are kept, ascending, of dimensions with a filter."""
    selected: tuple[int, ...]
    codes: tuple[NDArray[np.intp], ...]
    """Of every dimension, the places of the codes that are kept."""

    @classmethod
    def of(cls, cube: Cube, by: By, where: Where | None) -> "CubeQuery":
        """The question, once every name and every code in it is known and no dimension is named twice."""
        names = listed_once(by)
        kept = {name: kept_codes(name, codes) for name, codes in (where or {}).items()}
        for name in (*names, *kept):
            if name not in cube.names:
                raise unknown("cube", "one of its dimensions", name, cube.names)
        axes = {name: cube.names.index(name) for name in (*names, *kept)}
        places = {axes[name]: kept_places(cube.dimensions[axes[name]], codes) for name, codes in kept.items()}
        return cls.at(cube, tuple(axes[name] for name in names), places)

    @classmethod
    def at(cls, cube: Cube, axes: Axes, kept: Mapping[int, CubePlaces]) -> "CubeQuery":
        """The question by the places of its dimensions and of the codes that are kept, which are known to be right."""
        codes = tuple(
            np.array(kept[axis], dtype=np.intp) if axis in kept else every for axis, every in enumerate(cube.places)
        )
        selected = tuple(1 if axis in axes else len(places) for axis, places in enumerate(codes))
        return cls(by=tuple(cube.names[axis] for axis in axes), axes=axes, kept=kept, selected=selected, codes=codes)


def listed_once(by: By) -> tuple[str, ...]:
    """The names of dimensions, each of which is there once."""
    names = (by,) if isinstance(by, str) else tuple(by)
    if len(set(names)) != len(names):
        raise SfumatoError(
            "dimensions", expected="each dimension once", found=", ".join(map(repr, names)), do="name it once"
        )
    return names


def kept_codes(name: str, codes: str | Iterable[str]) -> tuple[str, ...]:
    """The codes of a filter, of which there is at least one."""
    kept = (codes,) if isinstance(codes, str) or not isinstance(codes, Iterable) else tuple(codes)
    if not kept:
        raise SfumatoError(
            f"dimension {name!r}",
            expected="at least one code to keep",
            found="none",
            do="name the codes, or leave the filter out to keep all",
        )
    return kept


def unknown(where: str, what: str, name: object, known: Sequence[str]) -> SfumatoError:
    """A name or code that is none, with those there are and the nearest of them."""
    close = get_close_matches(str(name), known, n=1)
    listed = ", ".join(known[:_LISTED]) + (", …" if len(known) > _LISTED else "")
    return SfumatoError(
        where,
        expected=f"{what}: {listed or 'it has none'}",
        found=repr(name),
        do=f"did you mean {close[0]!r}?" if close else "choose one of these",
    )


def kept_places(dimension: Dimension, codes: Iterable[str]) -> CubePlaces:
    """The places of codes in a dimension that has them, ascending, each once."""
    codes = tuple(codes)
    for code in codes:
        if code not in dimension.places:
            raise unknown(f"dimension {dimension.name!r}", "codes of its codelist", code, dimension.codes)
    return tuple(sorted({dimension.places[code] for code in codes}))


# What a question to a cube gets: figures with their expected errors, and marks where they should not be published.

STATUSES = ("", "too few records", "too uncertain", "not defined", "too small")
_FEW, _UNCERTAIN, _UNDEFINED, _SMALL = range(1, len(STATUSES))


@dataclass(frozen=True, kw_only=True)
class Rules:
    """When a figure is marked as not fit for publication; the rules look at noisy numbers only."""

    least_count: int = 0
    largest_cv: float | None = None
    least_weighted: float = 0.0

    @property
    def some(self) -> bool:
        """Whether there is any rule."""
        return bool(self.least_count or self.largest_cv is not None or self.least_weighted)

    def __str__(self) -> str:
        """The rules in words."""
        cv = self.largest_cv
        words = [
            f"at least {self.least_count:,} records" if self.least_count else "",
            f"a weighted count of at least {self.least_weighted:,g}" if self.least_weighted else "",
            "" if cv is None else f"a coefficient of variation of at most {cv:g}",
        ]
        return " and ".join(filter(None, words)) or "any figure"

    def described(self) -> dict[str, float | None]:
        """The rules for machines; readers of earlier versions do not know the last one, and need not where it is 0."""
        found: dict[str, float | None] = {"least_count": self.least_count, "largest_cv": self.largest_cv}
        return found | ({"least_weighted": self.least_weighted} if self.least_weighted else {})


@dataclass(frozen=True, kw_only=True)
class CubeAnswer:
    """Arrays with one axis for each dimension that was asked for."""

    dimensions: tuple[Dimension, ...]
    values: Floats
    """Figures; where `codes` is told, the places of codes in it."""
    counts: Floats
    """The noisy numbers of records behind the values."""
    perturbation_error: Floats
    """The expected standard error that noise adds, from parameters alone; where values are codes, that of the share."""
    sampling_error: Floats | None
    """The expected standard error of sampling; None where the data have no replicate weights."""
    status: Integers
    """Places in STATUSES."""
    exact: Integers | None = None
    """Totals in the whole parts of the cube's column, which add up exactly; None for other figures."""
    interval: tuple[Floats, Floats] | None = None
    """Where a quantile lies with 90% confidence, in numbers or places of codes; None for other figures."""
    codes: Dimension | None = None
    """The dimension whose codes the values are; None where they are numbers."""
    compared_with: Floats | None = None
    """What errors are divided by in a coefficient of variation, where that is not the value."""

    @cached_property
    def errors(self) -> Floats:
        """The expected standard errors of sampling and perturbation total_error, or of the latter alone."""
        return total_error(self.perturbation_error, self.sampling_error)

    @property
    def cv(self) -> Floats:
        """The coefficient of variation; infinite where the value is 0 and has an error."""
        return _variation(self.errors, self.values if self.compared_with is None else self.compared_with)

    @property
    def publishable(self) -> NDArray[np.bool_]:
        """Where no rule marks the figure."""
        found: NDArray[np.bool_] = self.status == 0
        return found

    def to_arrow(self) -> pa.Table:
        """A row for every cell: codes, value, number of records, errors and status; what is not finite is left empty.

        A dimension that is called like one of the other columns has `_code` after its name.
        """
        figures = {"value": self._column(self.values)}
        if self.interval is not None:
            figures |= {name: self._column(end) for name, end in zip(("low", "high"), self.interval, strict=True)}
        numbers = {"records": self.counts, "error" if self.codes is None else "share_error": self.errors}
        numbers["perturbation_error"] = self.perturbation_error
        if self.sampling_error is not None:
            numbers["sampling_error"] = self.sampling_error
        numbers["cv"] = self.cv
        figures |= {name: _finite(number) for name, number in numbers.items()}
        figures["status"] = _named(np.ravel(self.status), STATUSES)
        shape = tuple(map(len, self.dimensions))
        places = np.unravel_index(np.arange(self.values.size), shape) if shape else ()
        columns = {
            f"{d.name}_code" if d.name in figures else d.name: _named(place, d.codes)
            for d, place in zip(self.dimensions, places, strict=True)
        }
        return pa.table(columns | figures)

    def _column(self, figure: Floats) -> pa.Array:
        if self.codes is None:
            return _finite(figure)
        flat = np.ravel(figure)
        known = np.isfinite(flat)
        return _named(np.where(known, flat, 0).astype(np.int64), self.codes.codes, missing=~known)


def total_error(perturbation: Floats, sampling: Floats | None) -> Floats:
    """The standard errors of perturbation and, where there is any, sampling."""
    return perturbation if sampling is None else np.hypot(perturbation, sampling)


def statuses(
    rules: Rules,
    values: Floats,
    errors: Floats,
    *,
    compared_with: Floats,
    base: Floats,
    weighted: Floats | None,
    total: Floats | None,
) -> Integers:
    """The status of every figure: it needs enough records in its base, and a small coefficient of variation.

    A figure that is divided by a total needs one above 0, and a figure needs an error.
    """
    status = np.zeros(values.shape, dtype=np.int64)
    if rules.largest_cv is not None:
        status[~(_variation(errors, compared_with) <= rules.largest_cv)] = _UNCERTAIN
    if rules.least_weighted and weighted is not None:
        status[~(weighted >= rules.least_weighted)] = _SMALL
    if rules.least_count:
        status[~(base >= rules.least_count)] = _FEW
    undefined = np.isnan(values) | np.isnan(errors)
    status[undefined if total is None else undefined | ~(total > 0)] = _UNDEFINED
    return status


def where_defined(figures: Floats, status: Integers) -> Floats:
    """The figures, and no number where there is no such figure."""
    undefined = status == _UNDEFINED
    return np.where(undefined, np.nan, figures) if undefined.any() else figures


def _variation(errors: Floats, below: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Floats = np.abs(errors / below)
    return found


def _finite(figure: Floats) -> pa.Array:
    flat = np.ravel(figure).astype(np.float64)
    return pa.array(flat, mask=~np.isfinite(flat))


def _named(places: NDArray[np.int64], codes: tuple[str, ...], missing: NDArray[np.bool_] | None = None) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(places.astype(np.int32), mask=missing), pa.array(codes, pa.string()))


# Quantiles of an attribute with ordered codes, from noisy sums: they rise with the share, whatever the noise is.

CONFIDENCE = 0.9
"""Of the interval of a quantile."""
WIDTH = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
"""Half the width of that interval, in standard errors."""
_FINEST = 1_000_000
_LARGEST = 9.2e18
"""Just below 2^63, beyond which no 64-bit number is."""


@dataclass(frozen=True, kw_only=True)
class Classes:
    """The numbers that codes stand for: each one all numbers from its low end to its high end."""

    low: Floats
    high: Floats

    @classmethod
    def between(cls, dimension: Dimension, edges: Sequence[float]) -> "Classes":
        """Classes side by side: one edge more than there are codes."""
        found = np.array([_number(dimension, edge) for edge in edges], dtype=np.float64)
        if len(found) != len(dimension) + 1 or not np.all(np.diff(found) > 0):
            raise refusal(
                f"dimension {dimension.name!r}",
                f"{len(dimension) + 1} edges that rise, one more than there are codes, both ends included",
                f"{len(found)} edges" + ("" if np.all(np.diff(found) > 0) else ", which do not all rise"),
                "give every class its ends; close an open class with a number of your choice",
            )
        return cls(low=found[:-1], high=found[1:])

    @classmethod
    def around(cls, dimension: Dimension, scores: Mapping[str, float]) -> "Classes":
        """Classes that reach half-way to the scores of the neighbours, as for an interpolated median."""
        if set(scores) != set(dimension.codes):
            raise refusal(
                f"dimension {dimension.name!r}", "one score for every code", f"{len(scores)} scores", "score every code"
            )
        found = np.array([_number(dimension, scores[code]) for code in dimension.codes], dtype=np.float64)
        half = np.diff(found) / 2
        if not np.all(half > 0):
            raise refusal(
                f"dimension {dimension.name!r}",
                "scores that rise in the order of the codelist",
                "others",
                "a quantile needs ordered codes: change the scores, or ask for a mean",
            )
        below, above = (half[:1], half[-1:]) if len(half) else (np.zeros(1), np.zeros(1))
        return cls(low=found - np.append(below, half), high=found + np.append(half, above))

    def only(self, places: NDArray[np.intp]) -> "Classes":
        """The classes of some of the codes."""
        return Classes(low=self.low[places], high=self.high[places])


@dataclass(frozen=True, kw_only=True)
class QuantilePlaces:
    """Where a share of the total is reached: in which code, and how far inside."""

    places: Integers
    inside: Floats

    def values(self, classes: Classes) -> Floats:
        """The number there, as if every class were filled evenly."""
        low, high = classes.low[self.places], classes.high[self.places]
        return np.clip(low + self.inside * (high - low), low, high)

    def upto(self, codes: int) -> Floats:
        """The weight of every code in the sum that ends there, along a last axis: 1, then a part, then 0."""
        place = np.arange(codes)
        weights: Floats = np.clip(self.inside[..., None] + self.places[..., None] - place, 0.0, 1.0)
        return weights


@dataclass(frozen=True, kw_only=True)
class Distribution:
    """Sums up to every code, made to rise: the mean of the least rising sums above them and the greatest below.

    Noise may make sums fall; then neither end of the codelist is preferred. All is twice as large as the sums, so that
    it stays whole.
    """

    doubled: Integers
    total: Integers
    """0 where noise made it negative; quantiles mean nothing there."""

    @classmethod
    def of(cls, sums: Integers) -> "Distribution":
        """The distribution over the last axis; sums may have either sign."""
        upto = np.cumsum(sums, axis=-1)
        above = np.maximum.accumulate(upto, axis=-1)
        below = np.minimum.accumulate(upto[..., ::-1], axis=-1)[..., ::-1]
        total = 2 * np.maximum(upto[..., -1], 0)
        return cls(doubled=np.clip(above + below, 0, total[..., None]), total=total)

    def at(self, share: Fraction) -> QuantilePlaces:
        """Where this share is reached, decided in whole numbers."""
        n, d = share.numerator, share.denominator
        # The least whole number not below total·n/d, without leaving 64 bits: d is at most a million.
        reached = self.total // d * n + -(-(self.total % d) * n // d)
        return self._found(np.asarray(reached), np.asarray(float(share) * self.total))

    def near(self, shares: Floats) -> QuantilePlaces:
        """Where shares are reached that differ from cell to cell; below 0 and above 1 they are taken as 0 and 1."""
        wanted: Floats = np.clip(shares, 0.0, 1.0) * self.total
        whole = np.minimum(np.ceil(wanted), _LARGEST).astype(np.int64)
        return self._found(np.minimum(whole, self.total), wanted)

    def _found(self, reached: Integers, wanted: Floats) -> QuantilePlaces:
        places = np.argmax(self.doubled >= np.maximum(reached, 1)[..., None], axis=-1).astype(np.int64)
        before = np.take_along_axis(self.doubled, np.maximum(places - 1, 0)[..., None], axis=-1)[..., 0]
        before = np.where(places > 0, before, 0)
        own = np.take_along_axis(self.doubled, places[..., None], axis=-1)[..., 0] - before
        inside = np.clip((wanted - before) / np.maximum(own, 1), 0.0, 1.0)
        return QuantilePlaces(places=places, inside=inside)


def exact_shares(shares: float | str | Fraction | Iterable[float | str | Fraction]) -> tuple[Fraction, ...]:
    """Shares as exact numbers between 0 and 1, in six decimals at most.

    >>> exact_shares([0.25, "1/3"])
    (Fraction(1, 4), Fraction(1, 3))
    """
    asked = [shares] if isinstance(shares, str | int | float | Fraction) else list(shares)
    found = tuple(map(_share, asked))
    if not found or len(set(found)) != len(found):
        raise refusal(
            "quantiles", "at least one share, each once", ", ".join(map(str, asked)) or "none", "correct them"
        )
    return found


def _share(share: float | str | Fraction) -> Fraction:
    try:
        exact = Fraction(str(share))
    except (ValueError, ZeroDivisionError):
        exact = Fraction(0)
    if not 0 < exact < 1 or exact.denominator > _FINEST:
        raise refusal(
            "quantile", "a share between 0 and 1, in six decimals at most", repr(share), "ask for 0.5 to get the median"
        )
    return exact


def _number(dimension: Dimension, number: float) -> float:
    if isinstance(number, bool) or not isinstance(number, int | float | Fraction) or not isfinite(number):
        raise refusal(f"dimension {dimension.name!r}", "finite numbers", repr(number), "correct the number")
    return float(number)


# The noise that is expected in the answers of a column, from published parameters; docs/methods/hypercube.md.


@dataclass(frozen=True, kw_only=True)
class AnswerNoise:
    """The noise of a column: variances of its effects in units of noise, and what a unit is."""

    shape: tuple[int, ...]
    effects: Mapping[Axes, float]
    otherwise: float
    column: ColumnNoise
    parts: int

    @classmethod
    def of(cls, shape: tuple[int, ...], noise: ColumnNoise, *, parts: int) -> "AnswerNoise":
        """The noise of a column of a cube of this shape: what controls tell is combined with what the cube tells."""
        measured = [MeasuredMargin(axes=axes, variance=variance) for axes, variance in noise.controls.items()]
        own = noise.variance
        effects = {
            effect: variance * own / (variance + own) if own else 0.0
            for effect, variance in effect_variances(shape, measured).items()
        }
        return cls(shape=shape, effects=effects, otherwise=own, column=noise, parts=parts)

    def of_totals(self, query: CubeQuery, counts: Floats) -> Floats:
        """The variance of every sum of an answer, given the published numbers of records behind them."""
        variance: Floats = self._variance(query, counts) * self._square(query, query)
        return variance

    def of_shares(self, part: CubeQuery, whole: CubeQuery, shares: Floats, counts: Floats, base: Floats) -> Floats:
        """The variance of A − pB, where B is the larger sum that holds A, from `base` records."""
        both = self._rounding(part, self._noise(part), counts) + query_covariance(
            self.shape, part.selected, whole.selected, part.selected, self.effects, otherwise=self.otherwise
        )
        own = self._square(part, part) * (self._variance(part, counts) - 2 * shares * both)
        variance: Floats = own + self._square(whole, part) * self._variance(whole, base) * shares**2
        return variance

    def of_ratio(self, query: CubeQuery, below: "AnswerNoise", ratio: Floats, counts: Floats) -> Floats:
        """The variance of Y − rX, where the two sums have draws of their own."""
        variance: Floats = self.of_totals(query, counts) + ratio**2 * below.of_totals(query, counts)
        return variance

    def of_weighted_codes(self, query: CubeQuery, weights: Floats, counts: Floats) -> Floats:
        """The variance of Σ weight·sum over the codes of the last dimension of an answer."""
        last = query.axes[-1]
        none = tuple(0 if axis == last else n for axis, n in enumerate(query.selected))
        alike = self._variance(query, counts)
        unlike = query_covariance(
            self.shape, query.selected, query.selected, none, self.effects, otherwise=self.otherwise
        )
        scaled = weights * np.sqrt(self._square(query, query))
        variance: Floats = ((alike - unlike) * scaled**2).sum(axis=-1) + unlike * scaled.sum(axis=-1) ** 2
        return variance

    def _variance(self, query: CubeQuery, counts: Floats) -> Floats:
        noise = self._noise(query)
        return noise + self._rounding(query, noise, counts)

    def _noise(self, query: CubeQuery) -> float:
        return query_variance(self.shape, query.selected, self.effects, otherwise=self.otherwise)

    def _rounding(self, query: CubeQuery, noise: float, counts: Floats) -> Floats:
        """Of all cells in a sum that hold records, of which there are at most as many as records.

        Controls take as large a part of it away as of the noise.
        """
        cells = prod(query.selected)
        left = noise / (self.otherwise * cells) if self.otherwise else 1.0
        rounded: Floats = self.column.rounding * left * np.minimum(np.maximum(counts, 0), cells)
        return rounded

    def _square(self, query: CubeQuery, over: CubeQuery) -> Floats:
        """The square of one unit of noise in the sums of one question, laid over the cells of another."""
        scale = self.column.scale
        return scale.products(scale, query.codes, by=query.axes, over=over.axes) / float(self.parts) ** 2
