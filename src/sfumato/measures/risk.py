"""Measures of risk: what a table reveals by proof, what suppression would hide, which attacks it withstands."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, inf, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Flags, Floats, Integers
from sfumato.cells import Cells
from sfumato.measures.attacks import (
    BY_CHANCE,
    AttackResult,
    growth_attack,
    pooled,
    reidentification_attack,
    shape_attack,
    size_attack,
)
from sfumato.measures.formulas import mean
from sfumato.measures.utility import defined
from sfumato.measures.views import View
from sfumato.privacy.guarantee import Guarantee, loss, workforce_steps

# Suppression rules, as the comparison: which cells an office would hide if it did not add noise.

Values = NDArray[Any]

LEAST_CONTRIBUTORS = 3
"""The threshold rule hides cells with fewer establishments than this."""
P_PERCENT = 10
"""The p% rule hides cells whose largest contributor the second largest could estimate within this many percent."""
DOMINANCE_PERCENT = 75
"""The dominance rule hides cells whose largest contributor has more than this many percent of the total."""


def below_threshold(*, contributors: Values, least: int = LEAST_CONTRIBUTORS) -> Flags:
    """The cells with some contributors, but fewer than the threshold."""
    flags: Flags = (contributors > 0) & (contributors < least)
    return flags


def fails_p_percent(*, total: Values, largest: Values, second: Values, percent: int = P_PERCENT) -> Flags:
    """The cells where the second largest contributor knows the largest within p%.

    What it subtracts from the total leaves the largest plus the remainder of all others; the cell is safe when that
    remainder is at least p% of the largest.

    >>> fails_p_percent(total=np.array([120, 111]), largest=np.array([100, 100]), second=np.array([10, 10]))
    array([False,  True])
    """
    flags: Flags = (largest > 0) & (100 * (total - largest - second) < percent * largest)
    return flags


def is_dominated(*, total: Values, largest: Values, percent: int = DOMINANCE_PERCENT) -> Flags:
    """The cells of which the largest contributor, or the n largest summed, have more than k%."""
    flags: Flags = (total > 0) & (100 * largest > percent * total)
    return flags


def least_second(*, total: Values, largest: Values, contributors: Values) -> Values:
    """The least the second largest contributor can be: the mean of all but the largest, in whole units."""
    others = np.maximum(contributors - 1, 1)
    least: Values = -(-(total - largest) // others)
    return least


@dataclass(frozen=True, kw_only=True)
class Suppression:
    """How many of the cells with jobs each rule would hide, where this release publishes them all.

    Tabulation knows the largest establishment of a cell and not the second, and of a worker cell how many
    establishments may contribute and not how many do; so the figures for the threshold and the p% rule are the
    least that these rules would hide.
    """

    cells: int
    threshold: int | None
    """None where the number of establishments is not known, as in a joined table."""
    p_percent: int
    dominance: int
    any_rule: int


def suppression(counted: Cells) -> Suppression:
    """Apply the three rules to the true cells of a table."""
    total, largest = counted["count"], counted["largest"]
    known = "establishments" in counted.columns
    contributors = counted["establishments"] if known else np.zeros_like(total)
    some = total > 0
    second = least_second(total=total, largest=largest, contributors=contributors) if known else np.zeros_like(total)
    small = below_threshold(contributors=contributors) & some
    p_percent = fails_p_percent(total=total, largest=largest, second=second)
    dominated = is_dominated(total=total, largest=largest)
    return Suppression(
        cells=int(some.sum()),
        threshold=int(small.sum()) if known else None,
        p_percent=int(p_percent.sum()),
        dominance=int(dominated.sum()),
        any_rule=int((small | p_percent | dominated).sum()),
    )


def publishable(*, contributors: Values, least: int, variation: Values, most: float) -> Flags:
    """The estimates with at least so many contributors and at most so large a coefficient of variation.

    An estimate whose coefficient is NaN, being 0, is not publishable.
    """
    flags: Flags = (contributors >= least) & (variation <= most)
    return flags


@dataclass(frozen=True, kw_only=True)
class PublicationChange:
    """How many estimates protection makes publishable, makes unpublishable, or leaves as they were."""

    publishable: int
    newly_publishable: int
    newly_suppressed: int
    suppressed: int


def publication_change(*, before: Flags, after: Flags) -> PublicationChange:
    """Compare what may be published before and after protection.

    >>> publication_change(before=np.array([True, True, False]), after=np.array([True, False, True]))
    PublicationChange(publishable=1, newly_publishable=1, newly_suppressed=1, suppressed=0)
    """
    return PublicationChange(
        publishable=int((before & after).sum()),
        newly_publishable=int((~before & after).sum()),
        newly_suppressed=int((before & ~after).sum()),
        suppressed=int((~before & ~after).sum()),
    )


# Measures of risk: what a reader may learn from protected values, by proof and by comparison with the true ones.

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
    >>> from sfumato.privacy.guarantee import EmployerEmployee
    >>> tenth = EmployerEmployee(definition="strong", alpha=Fraction(1, 10), epsilon=Fraction(2))
    >>> size_odds(tenth, smaller=10, larger=12).steps
    2
    """
    if not 0 <= smaller <= larger:
        raise ValueError("sizes must not be negative, and the smaller comes first")
    bound = guarantee.bound
    if bound is None:
        return SizeOdds(smaller=smaller, larger=larger, steps=None, factor=inf, delta=0.0)
    found = loss(bound, workforce_steps(bound, size=smaller, added=larger - smaller))
    factor = exp(found.epsilon) if found.epsilon < _LARGEST_EXPONENT else inf
    return SizeOdds(smaller=smaller, larger=larger, steps=found.steps, factor=factor, delta=float(found.delta))


def posterior(guarantee: Guarantee, *, size: int, others: Sequence[int]) -> Floats:
    """The least that a reader must still believe in each of some other sizes, relative to their belief in `size`.

    All are as likely before. Where nothing is bounded it may be nothing. With delta > 0 it holds but for that.

    >>> from fractions import Fraction
    >>> from sfumato.privacy.guarantee import EmployerEmployee
    >>> tenth = EmployerEmployee(definition="strong", alpha=Fraction(1, 10), epsilon=Fraction(1))
    >>> np.log(posterior(tenth, size=100, others=[90, 100, 110, 121]))
    array([-2.,  0., -1., -2.])
    """
    pairs = (size_odds(guarantee, smaller=min(size, other), larger=max(size, other)) for other in others)
    return np.array([1 / pair.factor for pair in pairs])


# Sensitivity: how much of a cell one establishment has, which is what noise has to hide.

EMPLOYER = "largest_employer"
"""The column with all workers of the largest establishment of a workplace cell."""
SENSITIVITY_SHARES = tuple(percent / 100 for percent in range(0, 101, 5))
"""The shares of cells at which the distribution is given."""


@dataclass(frozen=True, kw_only=True)
class Sensitivity:
    """Distributions over the cells with jobs, at `SENSITIVITY_SHARES`: so large in that share of cells, or less."""

    cells: int
    share: tuple[float, ...]
    """Of the jobs of a cell that are in its largest establishment: what noise that hides whole ones is at least."""
    largest: tuple[float, ...]
    """The jobs of the largest establishment."""
    step: tuple[float, ...] | None
    """The most that one neighbour step changes a cell, max(α·largest, 1); None where alpha plays no part.

    Under the strong definition all workers of a step may be of one kind: the largest is then that of all workers, of
    whatever kind, of an establishment that may be in the cell. Under the weak one it is that in the cell.
    """


def sensitivity(counted: Cells, guarantee: Guarantee, least: int = 1) -> Sensitivity | None:
    """The distribution of the sensitivity over the cells with jobs; None where there are none.

    `least` is what one job adds to a cell at most: 1, or the cap of what is added up.
    """
    some = counted["count"] > 0
    if not some.any():
        return None
    largest, bound = counted["largest"][some], guarantee.bound
    alpha = None if bound is None or bound.definition == "individuals" else float(bound.alpha)
    strong = bound is not None and bound.definition == "strong" and EMPLOYER in counted.columns
    growing = counted[EMPLOYER][some] if strong else largest
    return Sensitivity(
        cells=int(some.sum()),
        share=_quantiles(largest / counted["count"][some]),
        largest=_quantiles(largest),
        step=None if alpha is None else _quantiles(np.maximum(alpha * growing, least)),
    )


def _quantiles(values: Values) -> tuple[float, ...]:
    """At every share the least value that so many cells do not exceed."""
    found: list[float] = np.quantile(values, SENSITIVITY_SHARES, method="inverted_cdf").tolist()
    return tuple(map(float, found))


# Exposure of a table: what it reveals by proof, what chance revealed, and which attacks it withstands.

SIZE_PAIRS = ((10, 11), (10, 12), (10, 20), (100, 110), (100, 121), (100, 200), (1_000, 1_100), (1_000, 2_000))
"""Pairs of establishment sizes whose odds the report bounds."""


@dataclass(frozen=True, kw_only=True)
class Exposure:
    """What one table reveals; computed from true values and confidential."""

    name: str
    exact: float | None
    """The share of cells published as they are."""
    exact_with_jobs: float | None
    """The same among cells that are not 0."""
    uniques: Uniques
    zero_changes: ZeroChanges
    suppression: Suppression | None
    """None where the largest establishment of a cell is not known."""
    sensitivity: Sensitivity | None
    """None where the largest establishment of a cell is not known."""
    odds: tuple[SizeOdds, ...]
    """Empty for tables of records, which are about no establishment's workers."""
    attacks: tuple[AttackResult, ...]
    """Empty for tables without worker attributes, and where the number of establishments is not counted."""


def measure_exposure(view: View) -> Exposure:
    """Compare what was published with the true cells, as an attacker would like to."""
    planned, counted, protected = view.planned, view.counted, view.shown
    true = counted["count"]
    some = true != 0
    return Exposure(
        name=view.name,
        exact=defined(share_exact(true=true, protected=protected)),
        exact_with_jobs=defined(mean((true == protected)[some])),
        uniques=uniques(true=true, protected=protected),
        zero_changes=zero_changes(true=true, protected=protected),
        suppression=suppression(counted) if "largest" in counted.columns else None,
        sensitivity=sensitivity(counted, planned.guarantee, planned.one_job) if "largest" in counted.columns else None,
        odds=() if planned.of_records else odds_of_sizes(planned.guarantee),
        attacks=attack(counted, protected, rounding=max(planned.roundings or (0,)))
        if view.indicator is None and view.additive
        else (),
    )


def odds_of_sizes(guarantee: Guarantee) -> tuple[SizeOdds, ...]:
    """The bounds on the odds of all `SIZE_PAIRS`."""
    return tuple(size_odds(guarantee, smaller=smaller, larger=larger) for smaller, larger in SIZE_PAIRS)


def attack(counted: Cells, protected: NDArray[np.int64], *, rounding: float = 0) -> tuple[AttackResult, ...]:
    """Run the attacks that one period of a table allows, with side knowledge taken from the true cells.

    Values were rounded to multiples of `rounding`, or to whole numbers.

    The reader of the size attack knows the true number of workers in the largest published group; the reader of the
    re-identification knows of everyone who is alone in one attribute, such as the only college graduate.
    """
    if counted.worker_cells == 1 or "establishments" not in counted.columns or not len(counted):
        return ()
    blocks = counted.blocks()
    published, true = protected[blocks], counted["count"][blocks]
    establishments = counted["establishments"][blocks[:, 0]]
    known, rounding = published.argmax(axis=1), max(rounding, BY_CHANCE)
    results = [
        shape_attack(published=published, establishments=establishments, true=true, rounding=rounding),
        size_attack(
            published=published,
            establishments=establishments,
            known_column=known,
            known_count=true[np.arange(len(true)), known],
            true=true,
            rounding=rounding,
        ),
    ]
    kinds = _kinds(counted)
    if kinds:
        results.append(
            pooled(
                reidentification_attack(
                    published=published,
                    establishments=establishments,
                    candidates=candidates,
                    alone=true[:, candidates].sum(axis=1) == 1,
                    true=true,
                )
                for candidates in kinds
            )
        )
    return tuple(results)


def attack_growth(
    *, before: Cells, after: Cells, published_before: Integers, published_after: Integers, rounding: float = 0
) -> AttackResult:
    """Read the growth of establishments off two periods of a table, where one is alone in a workplace cell in both.

    Both have the same dimensions; values were rounded to multiples of `rounding`, or to whole numbers.
    """
    _, first, last = np.intersect1d(before.positions, after.positions, assume_unique=True, return_indices=True)
    common = Cells(dimensions=after.dimensions, positions=after.positions[last])
    blocks = common.blocks()
    alone = (before["establishments"][first] == 1) & (after["establishments"][last] == 1)
    return growth_attack(
        before=published_before[first][blocks],
        after=published_after[last][blocks],
        establishments=alone[blocks[:, 0]].astype(np.int64),
        true_before=before["count"][first][blocks],
        true_after=after["count"][last][blocks],
        rounding=max(rounding, BY_CHANCE),
    )


def _kinds(counted: Cells) -> list[NDArray[np.intp]]:
    """The columns of each code of each worker attribute, where at least one other attribute is left to learn."""
    shape = tuple(len(dimension) for dimension in counted.dimensions if not dimension.public)
    places = np.unravel_index(np.arange(prod(shape)), shape)
    kinds = [
        np.flatnonzero(place == code) for place, length in zip(places, shape, strict=True) for code in range(length)
    ]
    return [columns for columns in kinds if len(columns) > 1] if len(shape) > 1 else []
