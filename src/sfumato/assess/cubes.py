"""What protection costs a cube and what it reveals: tables of the published cube beside those of the true one."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations, islice

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.cube_attack import CellsTold, read_digits
from sfumato.assess.measures import cramers_v, hellinger_distance, interval_overlap, mean
from sfumato.cube.answer import Answer, Rules
from sfumato.cube.cube import MILLION, Cube
from sfumato.cube.figures import ColumnNoise, Figures
from sfumato.cube.query import PublishedCube
from sfumato.cube.sampling import Sampling
from sfumato.cube.scale import Scale
from sfumato.cube.stored import read_stored
from sfumato.planned_cube import PlannedCube

Floats = NDArray[np.float64]

DIMENSIONS = 3
"""Tables of up to so many dimensions are compared."""
MOST_TABLES = 120
"""Of each number of dimensions, in the order of the attributes."""
WIDTH = 1.96
"""Half the width of a 95% interval, in standard errors."""
NEAR_ZERO = 0.5
"""Records; a cell with fewer is near zero."""


@dataclass(frozen=True, kw_only=True)
class Dimensionality:
    """All tables with so many dimensions, weighted totals: how far published figures are from true ones."""

    dimensions: int
    tables: int
    cells: int
    mean_square_error: float
    expected: float
    """The mean of the perturbation variances that the query tool tells."""
    median_difference: float
    """The median relative difference of totals that are not 0."""
    largest_tenth: float
    """One relative difference in ten is above this."""
    error_ratio: float
    """The median ratio of published standard errors to √(var + (θ̃ − θ̂)²), the paper's form, which is confidential."""
    overlap: float
    """The mean overlap of 95% intervals with and without perturbation."""
    hellinger: float
    """The mean Hellinger distance of the shares of a table."""
    newly_publishable: int
    newly_marked: int
    publishable: int
    """Figures that the rules leave unmarked before perturbation."""


@dataclass(frozen=True, kw_only=True)
class Pair:
    """The association of two attributes, before and after."""

    attributes: tuple[str, str]
    true: float
    published: float


@dataclass(frozen=True, kw_only=True)
class CubeAssessment:
    """The confidential findings about one cube."""

    name: str
    title: str
    cells: int
    empty: int
    from_zero: int
    """Cells without records that are published as at least half a record."""
    to_zero: int
    """Cells with records that are published as less than that."""
    unchanged: int
    """Cells with records whose count is published within a thousandth of a record."""
    told: tuple[CellsTold, ...]
    """Which cells hold records, as far as the digits of each column tell."""
    by_dimension: tuple[Dimensionality, ...]
    associations: tuple[Pair, ...]
    true: Floats
    """Counts of the two-way tables, for the chart."""
    protected: Floats


def assess_cube(
    planned: PlannedCube, true: Cube, sampling: Sampling | None, published: PublishedCube
) -> CubeAssessment:
    """Compare a published cube with the true one; nothing of the result may leave the office."""
    before = _unperturbed(true, sampling, published.rules)
    counts, noisy = true["count"], published.cube.values("count")
    near = np.abs(noisy) < NEAR_ZERO
    names = true.names
    pairs = list(islice(combinations(names, 2), MOST_TABLES))
    return CubeAssessment(
        name=planned.name,
        title=planned.title,
        cells=len(true),
        empty=int((counts == 0).sum()),
        from_zero=int(((counts == 0) & ~near).sum()),
        to_zero=int(((counts > 0) & near).sum()),
        unchanged=int(((counts > 0) & (np.abs(noisy - counts) < 0.001)).sum()),
        told=read_digits(published.cube, published.figures, true, planned.section),
        by_dimension=tuple(
            _compared(size, islice(combinations(names, size), MOST_TABLES), before, published)
            for size in range(min(DIMENSIONS, len(names)) + 1)
        ),
        associations=tuple(
            Pair(
                attributes=pair,
                true=cramers_v(before.totals(pair).values),
                published=cramers_v(np.maximum(published.totals(pair).values, 0)),
            )
            for pair in pairs
        ),
        true=_counts(before, pairs),
        protected=_counts(published, pairs),
    )


def published_cube(planned: PlannedCube, content: bytes) -> PublishedCube:
    """A stored answer as it is published."""
    cube, figures = read_stored(content)
    section = planned.section
    largest = None if section.largest_cv is None else float(section.largest_cv)
    rules = Rules(least_count=section.least_count, largest_cv=largest)
    return PublishedCube(name=planned.name, title=planned.title, cube=cube, figures=figures, rules=rules)


def _unperturbed(true: Cube, sampling: Sampling | None, rules: Rules) -> PublishedCube:
    """The true cube as if it had been published without noise."""
    none = ColumnNoise(variance=0.0, controls={}, scale=Scale(overall=1))
    cube = true.with_column("count", true["count"] * MILLION, parts=MILLION)
    figures = Figures(noise=dict.fromkeys(cube.columns, none), sampling=sampling)
    return PublishedCube(name="", title="", cube=cube, figures=figures, rules=rules)


def _compared(
    size: int, tables: Iterable[tuple[str, ...]], before: PublishedCube, published: PublishedCube
) -> Dimensionality:
    pairs = [(before.totals(by), published.totals(by)) for by in tables]
    true, noisy = (_all(pairs, at, "values") for at in (0, 1))
    own, told = (_all(pairs, at, "errors") for at in (0, 1))
    noise = _all(pairs, 1, "perturbation_error")
    fit, still = (_all(pairs, at, "publishable").astype(bool) for at in (0, 1))
    seen = true != 0
    relative = np.abs(noisy - true)[seen] / np.abs(true[seen])
    paper = np.sqrt(own**2 + (noisy - true) ** 2)
    some = seen & (paper > 0)
    overlap = interval_overlap(
        low=true - WIDTH * own,
        high=true + WIDTH * own,
        protected_low=noisy - WIDTH * told,
        protected_high=noisy + WIDTH * told,
    )
    distances = [
        hellinger_distance(true=np.ravel(one.values), protected=np.ravel(np.maximum(two.values, 0)))
        for one, two in pairs
    ]
    return Dimensionality(
        dimensions=size,
        tables=len(pairs),
        cells=len(true),
        mean_square_error=mean((noisy - true) ** 2),
        expected=mean(noise**2),
        median_difference=_quantile(relative, 0.5),
        largest_tenth=_quantile(relative, 0.9),
        error_ratio=_quantile((told / np.where(some, paper, 1.0))[some], 0.5),
        overlap=mean(overlap[seen & (own > 0)]),
        hellinger=mean(np.array(distances)),
        newly_publishable=int((~fit & still).sum()),
        newly_marked=int((fit & ~still).sum()),
        publishable=int(fit.sum()),
    )


def _all(pairs: list[tuple[Answer, Answer]], at: int, what: str) -> Floats:
    return np.concatenate([np.ravel(getattr(pair[at], what)) for pair in pairs]).astype(np.float64)


def _counts(cube: PublishedCube, pairs: list[tuple[str, str]]) -> Floats:
    found = [np.ravel(cube.totals(pair, column="count").values) for pair in pairs]
    return np.concatenate(found) if found else np.empty(0)


def _quantile(values: Floats, share: float) -> float:
    return float(np.quantile(values, share)) if len(values) else float("nan")
