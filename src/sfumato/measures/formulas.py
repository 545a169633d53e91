"""Measures of utility: how far protected values are from true ones, in classes of cells."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Floats

# Classes of cells: any measure by stratum or by size, through one helper.

Result = TypeVar("Result")

SIZE_CLASSES = ((0, 0), (1, 9), (10, 99), (100, 999), (1_000, 9_999), (10_000, None))
"""Classes of true cell counts, both ends included."""
AMOUNT_CLASSES = ((0, 0), (1, 999), (1_000, 10**6 - 1), (10**6, 10**9 - 1), (10**9, 10**12 - 1), (10**12, None))
"""Classes of amounts such as money, without their sign."""
_WORDS = {10**6: "1 million", 10**9: "1 billion", 10**12: "1 trillion"}
EDGE_CLASSES = (
    *((0, 0), (1, 6), (7, 9), (10, 19), (20, 35), (36, 75), (76, 161), (162, 272)),
    (273, None),
)
"""Classes of cells of a graph by their number of distinct edges, as Abowd and McKinney (2016) have them."""

Bounds = tuple[tuple[int, int | None], ...]


def by_class(
    measure: Callable[..., Result], *, classes: NDArray[Any], **columns: NDArray[Any]
) -> dict[int | str, Result]:
    """Apply a measure to the cells of each class alone; classes without a cell are left out.

    >>> by_class(lambda values: int(values.sum()), classes=np.array([1, 0, 1]), values=np.array([5, 7, 2]))
    {0: 7, 1: 7}
    """
    order = np.argsort(classes, kind="stable")
    names, starts = np.unique(classes[order], return_index=True)
    members = np.split(order, starts[1:]) if len(names) else []
    return {
        name: measure(**{column: values[inside] for column, values in columns.items()})
        for name, inside in zip(names.tolist(), members, strict=True)
    }


def size_classes(counts: NDArray[np.int64], bounds: Bounds = SIZE_CLASSES) -> NDArray[np.intp]:
    """The place of every true count in the classes."""
    ends = [high for _, high in bounds if high is not None]
    return np.searchsorted(ends, counts, side="left")


def size_label(place: int, bounds: Bounds = SIZE_CLASSES) -> str:
    """A class in words.

    >>> size_label(0), size_label(1), size_label(5)
    ('0', '1–9', '10,000+')
    >>> size_label(3, AMOUNT_CLASSES)
    '1 million to below 1 billion'
    """
    low, high = bounds[place]
    if low in _WORDS:
        return f"{_WORDS[low]} or more" if high is None else f"{_WORDS[low]} to below {_WORDS[high + 1]}"
    if high is None:
        return f"{low:,}+"
    return f"{low:,}" if low == high else f"{low:,}–{high:,}"


# Pure functions of arrays, one number a cell; `docs/assess.md` says what each means. A measure that the cells do not
# define, such as a correlation of one cell, is NaN. Where trials are compared, `protected` may have a row for each
# trial.

Values = NDArray[Any]


def absolute_error(*, true: Values, protected: Values) -> Values:
    """How far every protected value is from the true one."""
    return np.abs(np.subtract(protected, true))


def mean_error(*, true: Values, protected: Values) -> float:
    """The mean L1 error of a cell."""
    return mean(absolute_error(true=true, protected=protected))


def total_error(*, true: Values, protected: Values) -> float:
    """The L1 error of all cells together."""
    return float(absolute_error(true=true, protected=protected).sum(dtype=np.float64))


def error_ratio(*, true: Values, protected: Values, reference: Values) -> float:
    """The mean L1 error as a ratio to that of a reference protection; below 1 the protection is the better one.

    >>> error_ratio(true=np.array([10, 20]), protected=np.array([11, 20]), reference=np.array([12, 22]))
    0.25
    """
    return ratio(mean_error(true=true, protected=protected), mean_error(true=true, protected=reference))


def ratio_interval(before: tuple[Floats, Floats], after: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """Between what the ratio of two figures lies that each lie between two ends; NaN where these set no limit.

    A ratio is farthest from 0 where its lower part is smallest, and has an interval where that is above 0.

    >>> ends = ratio_interval((np.array([2.0]), np.array([4.0])), (np.array([-2.0]), np.array([8.0])))
    >>> [end.tolist() for end in ends]
    [[-1.0], [4.0]]
    """
    (low, high), (least, most) = before, after
    below, above = (np.full(len(low), np.nan) for _ in range(2))
    np.divide(least, np.where(least >= 0, high, low), out=below, where=low > 0)
    np.divide(most, np.where(most >= 0, low, high), out=above, where=low > 0)
    known = np.isfinite(below) & np.isfinite(above)
    return np.where(known, below, np.nan), np.where(known, above, np.nan)


def relative_error(*, true: Values, protected: Values) -> Floats:
    """The error of every cell as a share of its true value; NaN where that is 0."""
    return _divide(absolute_error(true=true, protected=protected), np.abs(true))


def percentage_difference(*, true: Values, protected: Values) -> Floats:
    """The absolute percentage difference: the relative error in percent."""
    return 100 * relative_error(true=true, protected=protected)


def utility_loss(*, perturbation: Values, estimate: Values) -> Floats:
    """The perturbation of every estimate as a share of the estimate, |P|/Y; NaN where that is 0."""
    return _divide(np.abs(perturbation), np.abs(estimate))


def share_near_reference(
    *, true: Values, protected: Values, reference: Values, points: float = 10.0, two_sided: bool = False
) -> float:
    """The share of cells whose relative error is at most so many percentage points above the reference's.

    Being better than the reference by more than that is no fault, so only the upper side counts, unless both are asked
    for. Cells that are truly 0 have no relative error and are left out.

    >>> both = {"true": np.array([100, 100]), "protected": np.array([100, 105]), "reference": np.array([120, 100])}
    >>> share_near_reference(**both), share_near_reference(**both, two_sided=True)
    (1.0, 0.5)
    """
    ours = percentage_difference(true=true, protected=protected)
    theirs = percentage_difference(true=true, protected=reference)
    excess = ours - theirs
    excess = excess[~np.isnan(excess)]
    return mean((np.abs(excess) if two_sided else excess) <= points)


def coefficient_of_variation(*, estimate: Values, variance: Values) -> Floats:
    """The standard error of every estimate as a share of it; NaN where the estimate is 0.

    Before protection `variance` is that of sampling; afterwards the variance of the noise is added to it and the
    estimate is the protected one.
    """
    return _divide(np.sqrt(variance), np.abs(estimate))


def spearman(*, true: Values, protected: Values) -> float:
    """Spearman's rank correlation; tied values share the mean of their ranks.

    >>> spearman(true=np.array([1, 2, 3, 4]), protected=np.array([10, 20, 40, 30]))
    0.8
    """
    if len(true) < 2:
        return float("nan")
    first, second = ranks(true), ranks(protected)
    first, second = first - first.mean(), second - second.mean()
    return ratio(float(first @ second), float(np.sqrt((first @ first) * (second @ second))))


def ranks(values: Values) -> Floats:
    """The rank of every value from 1, equal values sharing the mean of their ranks."""
    _, place, times = np.unique(values, return_inverse=True, return_counts=True)
    shared: Floats = np.cumsum(times) - (times - 1) / 2
    return shared[place]


@dataclass(frozen=True, kw_only=True)
class TailClassification:
    """The probability that a group of the bottom or the top tail is still found in it after protection."""

    bottom: float
    top: float


def tail_classification(*, true: Values, protected: Values, tail: float = 0.1) -> TailClassification:
    """Look for the groups of both true tails in the tails of the protected values; `tail` is the share of one tail.

    >>> tail_classification(true=np.arange(10), protected=np.array([1, 0, 2, 3, 4, 5, 6, 7, 8, 9]))
    TailClassification(bottom=0.0, top=1.0)
    """
    if not 0 < tail < 0.5:
        raise ValueError(f"a tail is a share between 0 and one half, not {tail}")
    if not np.size(true):
        return TailClassification(bottom=float("nan"), top=float("nan"))
    low, high = np.quantile(true, (tail, 1 - tail))
    cuts = np.quantile(protected, (tail, 1 - tail), axis=-1, keepdims=True)
    return TailClassification(
        bottom=mean((protected <= cuts[0])[..., true <= low]), top=mean((protected >= cuts[1])[..., true >= high])
    )


def shares(values: Values) -> Floats:
    """Every cell's share of its table; a negative protected value counts as 0, since no share is negative."""
    positive = np.maximum(np.asarray(values, dtype=np.float64), 0)
    return _divide(positive, np.full_like(positive, positive.sum()))


def jensen_shannon_distance(*, true: Values, protected: Values) -> float:
    """The root of the Jensen-Shannon divergence of the shares in bits: 0 for equal tables, 1 for disjoint ones."""
    p, q = _two_distributions(true, protected)
    middle = (p + q) / 2
    divergence = (_relative_entropy(p, middle) + _relative_entropy(q, middle)) / 2
    return float(np.sqrt(np.clip(divergence, 0, 1)))


def root_integrated_squared_error(*, true: Values, protected: Values) -> float:
    """The root of the summed squared differences of the shares."""
    p, q = _two_distributions(true, protected)
    return float(np.sqrt(np.sum((p - q) ** 2)))


def hellinger_distance(*, true: Values, protected: Values) -> float:
    """The Hellinger distance of the shares: 0 for equal tables, 1 for disjoint ones."""
    p, q = _two_distributions(true, protected)
    return float(np.sqrt(np.sum((np.sqrt(p) - np.sqrt(q)) ** 2) / 2))


def proportional_difference(*, true: Values, protected: Values) -> Floats:
    """The difference of every share relative to the mean of both, c = (π − π*)/(½π + ½π*); 0 where both are 0.

    It is between −2 and 2, and positive where protection made the share smaller.
    """
    p, q = shares(true), shares(protected)
    return np.where((p == 0) & (q == 0), 0.0, _divide(2 * (p - q), p + q))


@dataclass(frozen=True, kw_only=True)
class Spread:
    """The mean and the standard deviation of some cells."""

    mean: float
    deviation: float


def spread(values: Values) -> Spread:
    """The mean and the standard deviation of all these values, as a description of them and not of a sample."""
    if not np.size(values):
        return Spread(mean=float("nan"), deviation=float("nan"))
    return Spread(mean=float(np.mean(values)), deviation=float(np.std(values)))


def cramers_v(table: Values) -> float:
    """Cramér's V of a two-way table, from 0 (independent) to 1; empty rows and columns say nothing and are dropped.

    Negative protected values count as 0.

    >>> round(cramers_v(np.array([[10, 0], [0, 30]])), 12), round(cramers_v(np.array([[1, 2], [2, 4]])), 12)
    (1.0, 0.0)
    """
    counts = np.maximum(np.asarray(table, dtype=np.float64), 0)
    counts = counts[counts.sum(axis=1) > 0][:, counts.sum(axis=0) > 0]
    degrees = min(counts.shape) - 1
    if degrees < 1:
        return float("nan")
    total = counts.sum()
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / total
    chi_square = float(np.sum((counts - expected) ** 2 / expected))
    return float(np.sqrt(min(chi_square / (total * degrees), 1.0)))


def interval_overlap(*, low: Values, high: Values, protected_low: Values, protected_high: Values) -> Floats:
    """The overlap of two confidence intervals relative to each of them, averaged: 1 for equal, 0 for disjoint ones.

    An interval of a single point overlaps wholly with one that holds the point.
    """
    overlap = np.minimum(high, protected_high) - np.maximum(low, protected_low)
    meet = overlap >= 0
    parts = [
        np.where(end > start, _divide(np.maximum(overlap, 0), np.subtract(end, start)), meet)
        for start, end in ((low, high), (protected_low, protected_high))
    ]
    averaged: Floats = (parts[0] + parts[1]) / 2
    return averaged


def mean(values: Values) -> float:
    """The mean, NaN of nothing."""
    return float(np.mean(values)) if np.size(values) else float("nan")


def ratio(part: float, whole: float) -> float:
    """One number over another; NaN for 0/0 and infinite for anything else over 0."""
    if whole:
        return part / whole
    return float("nan") if not part or np.isnan(part) else float("inf")


def _divide(part: Values, whole: Values) -> Floats:
    """Cell by cell, NaN where the whole is 0."""
    part, whole = np.broadcast_arrays(np.asarray(part, dtype=np.float64), np.asarray(whole, dtype=np.float64))
    divided: Floats = np.full(part.shape, np.nan)
    np.divide(part, whole, out=divided, where=whole != 0)
    return divided


def _two_distributions(true: Values, protected: Values) -> tuple[Floats, Floats]:
    """The shares of both tables, or a NaN for each unless both have a positive total: every distance is NaN then."""
    p, q = shares(true), shares(protected)
    if not len(p) or np.isnan(p[0]) or np.isnan(q[0]):
        return np.full(1, np.nan), np.full(1, np.nan)
    return p, q


def _relative_entropy(p: Floats, q: Floats) -> float:
    """Σ p·log2(p/q), where a share of 0 adds nothing."""
    if np.isnan(p[0]):
        return float("nan")
    some = p > 0
    return float(np.sum(p[some] * np.log2(p[some] / q[some])))
