"""Composite estimates: a protected cell and what the rest of its table predicts for it; docs/composite.md has it all.

Workers of alike workplaces are alike: their shares by sex or age in other cells, times the agreed total of a cell,
predict it. A noisy value is moved towards that, the more the noisier it is and the less cells differ (Fay and Herriot).
Only published numbers go in. The result is closer to the truth on average, and no longer right on average: it is
published beside the value, never in its place.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Floats, Integers
from sfumato.cells import Cells
from sfumato.errors import ReleaseError
from sfumato.method import KnownVariance

COMPOSITE, COMPOSITE_ERROR = "composite", "composite_error"
"""The columns of composite estimates: whole jobs, and the root of their mean squared error."""
HUNDREDTHS = 100
"""Cells have whole numbers: in them the error is in hundredths of a job."""
LEAST_CELLS = 50
"""Workplace cells that a table must be able to have: how much they differ is learnt from them."""
_LEAST_IN_CLASS = {"establishments": 30, "prediction": 50}
_MOST_SPREAD = 1_000.0
_ROUNDING = 1 / 12
"""The variance that rounding to whole jobs adds."""


@dataclass(frozen=True, kw_only=True)
class Composite:
    """How the composite estimates of a table are made, by the release file and public parameters alone.

    Variances are those of noise in units of max(αx, 1)², x being the workers of the largest establishment.
    """

    within: tuple[str, ...]
    """The public dimensions of the table within whose codes workers are taken for alike."""
    alpha: float
    variance: float
    """Of one cell."""
    totals: Mapping[str, float]
    """The other tables that measured the jobs of every workplace cell, and the variance of what each says."""

    def described(self) -> dict[str, Any]:
        """As fields of the structure of a bundle: with its columns all estimates can be computed again."""
        return {
            "within": list(self.within),
            "alpha": self.alpha,
            "variance": self.variance,
            "totals": dict(self.totals),
        }


def composite_of(table: Any, alike: Sequence[Any], *, reconciled: bool, numbered: bool) -> Composite:
    """How the composite estimates of a table are made, or why there can be none.

    `alike` are the other tables that are made to agree and are about the same jobs; `numbered` tells whether the number
    of establishments is known.
    """
    public = {dimension.name: dimension.codes for dimension in table.by if dimension.public}
    # Tables that ask the same question have one answer, and its noise once.
    asked = {one.digest(""): one for one in alike if {d.name: d.codes for d in one.by if d.public} == public}
    same = [one for question, one in asked.items() if question != table.digest("")]
    known = {one.name: _variances(one) for one in (table, *same)}
    own = known[table.name]
    totals = {one.name: found[2] for one in same if (found := known[one.name]) and own and found[0] == own[0]}
    named = f"table '{table.name}', composite"
    within = tuple(table.table.composite)
    strange = [name for name in within if name not in public]
    if strange or (public and set(within) == set(public)):
        raise ReleaseError(
            named,
            expected="some public attributes in `by`, but not all: the others tell cells apart that predict each other",
            found=f"{list(within)} of {list(public)}" if not strange else f"'{strange[0]}'",
            do="write composite = [] to take workers of all workplaces for alike",
        )
    if not reconciled:
        raise ReleaseError(
            named,
            expected="a table that is made to agree with another one by the same public attributes",
            found="a table that is not reconciled",
            do="write reconcile = true in [release]; `sfumato check` says which tables it leaves as they are",
        )
    cells = prod(map(len, public.values()))
    told = numbered and table.table.establishments
    if cells < LEAST_CELLS or not told or table.table.nonnegative:
        raise ReleaseError(
            named,
            expected=f"at least {LEAST_CELLS} workplace cells, which tell their number of establishments, and values "
            "that may be negative",
            found=f"{cells} workplace cells, {'with' if told else 'without'} their number of establishments, and "
            f"nonnegative = {str(table.table.nonnegative).lower()}",
            do="leave `composite` out, or change the table",
        )
    if own is None or not any(not dimension.public for dimension in table.by):
        raise ReleaseError(
            named,
            expected="vector-pareto with attributes of workers in `by`, and noise that has a fourth moment",
            found=f"{table.method.name}, by = {list(table.table.by)}",
            do="give the table more epsilon or fewer worker cells, or leave `composite` out; elsewhere it does not pay",
        )
    if not totals:
        raise ReleaseError(
            named,
            expected="another table of the release by the same public attributes and the same alpha, with noise that "
            "has a fourth moment: how far the two disagree tells how noisy cells are",
            found="none",
            do=f"add a table by = {list(public)}, or give it more epsilon",
        )
    return Composite(within=within, alpha=own[0], variance=own[1], totals=totals)


def _variances(table: Any) -> tuple[float, float, float] | None:
    """Alpha, and the variances of a cell and of the total of a workplace cell, where these tell how noisy cells are."""
    method = table.method
    if not isinstance(method, KnownVariance) or table.table.nonnegative:
        return None
    variance, cells = method.variance, prod(len(d) for d in table.by if not d.public)
    if variance is None:
        return None
    return float(method.alpha), variance + _ROUNDING, cells * (variance + _ROUNDING)


def with_composite(rule: Composite, name: str, agreed: Cells, measured: Mapping[str, Cells]) -> Cells:
    """The agreed cells of a table with its composite estimates; `measured` has tables before they were made to agree.

    The steps have the numbers of docs/composite.md.
    """
    order = agreed.blocks()
    cells = order.shape[1]
    value = agreed["value"][order].astype(np.float64)
    number = np.maximum(agreed["establishments"][order].max(axis=1, initial=1), 1).astype(np.float64)
    total = value.sum(axis=1)
    jobs = np.maximum(total, 0.0)
    # 1. The noise, by how far tables disagree about the same workplace cells.
    first = order[:, 0]
    own, others, certain = _disagreeing(rule, name, measured, agreed, first)
    scales = _scales(rule, jobs, number, np.square(own - others), cells * rule.variance + 1 / certain)[:, None]
    noise, of_total = rule.variance * scales, scales / (certain + 1 / (cells * rule.variance))
    # 2. The prediction: shares in the rest of the group, times the agreed total.
    shares, unsure = _shares(value, noise, _keys(agreed, rule.within)[first])
    known = np.isfinite(unsure)
    predicted, apart = jobs[:, None] * shares, value - total[:, None] * shares
    within = noise * (1 - 1 / cells) + of_total * np.square(1 / cells - shares)
    # 3. How much cells differ from their predictions, beyond that noise: at least by the draw of workers.
    drawn = predicted * (1 - shares)
    least = drawn + np.square(jobs[:, None]) * np.where(known, unsure, 0.0)
    spread = _spread(np.square(apart), within, predicted, drawn, least)
    # 4. The weight of the value that makes the mean squared error least, and that error.
    shared = shares * (1 / cells - shares) * of_total
    weight = np.where(known, np.clip((spread - shared) / (within + spread), 0.0, 1.0), 1.0)
    squared = np.square(weight) * within + np.square(1 - weight) * spread + 2 * weight * shared
    squared = squared + np.square(shares) * of_total + _ROUNDING
    estimate = np.maximum(value - (1 - weight) * apart, 0.0)
    laid = agreed.with_column(COMPOSITE, _laid_back(order, estimate))
    return laid.with_column(COMPOSITE_ERROR, _laid_back(order, HUNDREDTHS * np.sqrt(squared)))


def _shares(value: Floats, noise: Floats, group: Integers) -> tuple[Floats, Floats]:
    """The shares of worker cells in all other workplace cells of each one's group, and the variance of their noise.

    It is infinite where there are no jobs to tell shares; these are equal then.
    """
    _, at = np.unique(group, return_inverse=True)
    sums, variances = np.zeros((int(at.max(initial=-1)) + 1, value.shape[1])), np.bincount(at, weights=noise[:, 0])
    np.add.at(sums, at, value)
    rest = np.maximum(sums[at] - value, 0.0)
    whole = rest.sum(axis=1, keepdims=True)
    told = np.where(whole > 0, whole, 1.0)
    unsure = np.where(whole > 0, (variances[at, None] - noise) / np.square(told), np.inf)
    return np.where(whole > 0, rest / told, 1 / value.shape[1]), unsure


def _disagreeing(
    rule: Composite, name: str, measured: Mapping[str, Cells], agreed: Cells, first: NDArray[np.intp]
) -> tuple[Floats, Floats, float]:
    """The jobs of every workplace cell as the table measured them, and as others did, with the precision of these."""
    public = [dimension.name for dimension in agreed.dimensions if dimension.public]
    known = _keys(agreed, public)[first]

    def sums(cells: Cells) -> Floats:
        at = np.searchsorted(known, _keys(cells, public))
        return np.bincount(at, weights=cells["value"], minlength=len(known)).astype(np.float64, copy=False)

    certain = sum(1 / variance for variance in rule.totals.values())
    others = sum((sums(measured[other]) / variance for other, variance in rule.totals.items()), np.zeros(len(known)))
    return sums(measured[name]), others / certain, certain


def _scales(rule: Composite, jobs: Floats, number: Floats, squares: Floats, variance: float) -> Floats:
    """The mean of max(αx, 1)² by class of establishments, such that tables disagree as much as they do."""
    found = np.ones(len(jobs))
    reach = np.square(rule.alpha * jobs)
    for some in _classes(np.floor(np.log2(number)), _LEAST_IN_CLASS["establishments"]):
        falling = number[some] ** -0.5

        def scales(share: float, falling: Floats = falling, reach: Floats = reach[some]) -> Floats:
            largest: Floats = np.maximum(np.minimum(share * falling, 1.0) * reach, 1.0)
            return largest

        share = _least(squares[some] / variance, scales, most=float(np.sqrt(number[some].max())))
        found[some] = scales(share)
    return found


def _spread(squares: Floats, noise: Floats, predicted: Floats, drawn: Floats, least: Floats) -> Floats:
    """The variance of true cells around predictions, by class of predictions, and not below the least one.

    It errs to the safe side by a standard error: too small a spread would move cells too far, and call that certain.
    """
    found = np.array(least)
    for some in _classes(np.floor(np.log2(np.maximum(predicted, 1.0)) / 2), _LEAST_IN_CLASS["prediction"]):
        start, shape = (noise + least)[some], np.square(drawn[some])

        def variances(times: float, start: Floats = start, shape: Floats = shape) -> Floats:
            return start + times * shape

        found[some] += _least(squares[some], variances, most=_MOST_SPREAD, safe=1.0) * shape
    return found


def _classes(keys: Floats, least: int) -> list[NDArray[np.bool_]]:
    """Neighbouring keys together, so that each class has enough members; fewer are one class."""
    found, sizes = np.unique(keys, return_counts=True)
    classes, high, members = [], np.inf, 0
    for at in range(len(found) - 1, -1, -1):
        members += int(sizes[at])
        if at == 0 or (members >= least and int(sizes[:at].sum()) >= least):
            classes.append((keys >= found[at]) & (keys < high))
            high, members = found[at], 0
    return classes


def _least(squares: Floats, expected: Callable[[float], Floats], *, most: float, safe: float = 0.0) -> float:
    """The least factor at which squares are no more than expected, on average and but for `safe` standard errors."""
    low, high = 0.0, most
    for _ in range(60):
        middle = (low + high) / 2
        ratios = squares / expected(middle)
        if ratios.mean() > 1 - safe * ratios.std() / np.sqrt(ratios.size):
            low = middle
        else:
            high = middle
    return high


def _keys(cells: Cells, names: Sequence[str]) -> Integers:
    """One number for every combination of codes of some dimensions."""
    keys = np.zeros(len(cells), dtype=np.int64)
    sizes = {dimension.name: len(dimension) for dimension in cells.dimensions}
    for name in names:
        keys = keys * sizes[name] + cells.codes(name)
    return keys


def _laid_back(order: NDArray[np.intp], rows: Floats) -> Integers:
    column = np.empty(order.size, dtype=np.int64)
    column[order.ravel()] = np.rint(rows).astype(np.int64).ravel()
    return column
