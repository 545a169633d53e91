"""What protection costs a cube: its tables and figures beside those of the true one."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations
from math import comb, pi, prod, sqrt

import numpy as np

from sfumato.measures.attacks import AttackResult
from sfumato.measures.formulas import SIZE_CLASSES, cramers_v
from sfumato.measures.limits import LimitCost, limit_cost
from sfumato.measures.risk import SizeOdds
from sfumato.measures.usability import Usability, measure_usability
from sfumato.noise.geometric import least_noise
from sfumato.noise.randomness import OperatingSystem, Randomness
from sfumato.statistics.cube.assess_measures import (
    Beside,
    Distances,
    Measures,
    ReplicateErrors,
    Replicates,
    distances,
    measures,
    measures_by_size,
    quantiles,
    replicate_errors,
    together,
)
from sfumato.statistics.cube.attacks import (
    CellRisk,
    CellsFound,
    attack_cube,
    cell_risk,
    odds_of_records,
    table_risk,
    weights_attack,
)
from sfumato.statistics.cube.cube import MILLION, Cube
from sfumato.statistics.cube.cube_query import CubeAnswer, Rules
from sfumato.statistics.cube.figures import ColumnNoise, Figures, Sampling, Scale
from sfumato.statistics.cube.linkage import Linkage, linkage_attacks
from sfumato.statistics.cube.protect import protected_cube
from sfumato.statistics.cube.published_cube import PublishedCube
from sfumato.statistics.cube.section import COUNT, WEIGHTED
from sfumato.statistics.cube.statistic import CubeStatistic
from sfumato.statistics.cube.stored import read_stored
from sfumato.statistics.cube.truncated_laplace import TruncatedLaplace

MOST_TABLES = 24
"""Of each number of dimensions, spread over all there are."""
MOST_CELLS = 1_000_000
"""Of all tables with as many dimensions together; a table that alone has more is not compared."""
TOTALS, RECORDS, PROPORTIONS = "weighted totals", "records", "proportions"
_CHANCE = OperatingSystem()
_LEAST_DELTA = 1e-15
"""Caps are compared at no smaller δ."""
_MEAN_OF_NORMAL = sqrt(2 / pi)
"""The mean size of a normal number, in standard deviations."""


@dataclass(frozen=True, kw_only=True)
class KindOfFigure:
    """Figures of one kind in all tables with as many dimensions."""

    figure: str
    """Weighted totals, numbers of records, proportions, or the means of a measure."""
    all: Measures
    by_size: tuple[Measures, ...]
    """By the true number of records in the cell."""
    distances: Distances | None
    """None where figures do not add up to a whole."""
    differences: Mapping[str, float]
    """Quantiles of the differences from true figures, in standard errors of the noise."""
    relative_differences: Mapping[str, float]
    """The same as a share of the true figure."""
    error_differences: Mapping[str, float]
    """Quantiles of the differences of standard errors, as a share of those before protection."""
    cells: Beside
    """For the charts."""


@dataclass(frozen=True, kw_only=True)
class Dimensionality:
    """A sample of the tables with so many dimensions."""

    dimensions: int
    tables: int
    of_tables: int
    """How many there are, those that are not compared included."""
    figures: tuple[KindOfFigure, ...]
    risk: CellRisk

    def kind(self, figure: str) -> KindOfFigure:
        """The figures of one kind."""
        return next(part for part in self.figures if part.figure == figure)


@dataclass(frozen=True, kw_only=True)
class Pair:
    """The association of two attributes, before and after."""

    attributes: tuple[str, str]
    true: float
    published: float


def limit_of_cube(
    planned: CubeStatistic, everything: Cube, true: Cube, published: PublishedCube, sizes: Mapping[int, int]
) -> LimitCost:
    """Compare the records that are counted with all; `sizes` is how many units have so many records."""
    noise = planned.method.counts
    weights = [cube.total(WEIGHTED) for cube in (true, everything) if WEIGHTED in cube.columns]
    return limit_cost(
        planned.question.limit,
        sizes,
        everything=everything[COUNT].ravel(),
        counted=true[COUNT].ravel(),
        published=published.cube.values(COUNT).ravel(),
        noise=lambda most: least_noise(noise.epsilon, max(noise.delta(), _LEAST_DELTA), most).expected_magnitude,
        weights=(weights[0], weights[1]) if weights else None,
    )


@dataclass(frozen=True, kw_only=True)
class CubeAssessment:
    """The confidential findings about one cube."""

    name: str
    title: str
    rules_before: Rules
    rules: Rules
    """What may be published of true figures, and of protected ones."""
    risk: CellRisk
    """Of the cells of the cube itself."""
    odds: tuple[SizeOdds, ...]
    """What the guarantee of counts bounds, whatever a reader knows."""
    told: tuple[CellsFound, ...]
    """Which cells hold records, as far as other columns than the counts tell."""
    weights: tuple[AttackResult, ...]
    """What count and weighted count together tell of the weights of records that are alone in their cell."""
    linkage: tuple[Linkage, ...]
    """What intruders learn who know some codes of a record."""
    by_dimension: tuple[Dimensionality, ...]
    associations: tuple[Pair, ...]
    replicates: tuple[ReplicateErrors, ...] = field(default=())
    """Empty without replicate weights."""
    limit: LimitCost | None = None
    """Where whole units are hidden."""

    def usability(self, accuracy: float) -> list[Usability]:
        """Which figures can be used, of the tables with as many dimensions together: by the noise that is expected."""
        found = []
        for part in self.by_dimension:
            for kind in part.figures:
                cells = kind.cells
                words = f"{kind.figure}, {part.dimensions} dimension{'' if part.dimensions == 1 else 's'}"
                usability = measure_usability(
                    name=self.name,
                    title=f"{self.title}: {words}",
                    unit=kind.figure,
                    sizes="records in the cell",
                    size=cells.records,
                    bounds=SIZE_CLASSES,
                    true=cells.true,
                    error=_MEAN_OF_NORMAL * cells.noise,
                    withheld=~cells.still,
                    accuracy=accuracy,
                )
                found.append(usability)
        return found


@dataclass(frozen=True, kw_only=True)
class _Cubes:
    """The cube before protection, as published, and as the reference would publish it."""

    before: PublishedCube
    published: PublishedCube
    reference: PublishedCube

    def figures(self, by: tuple[str, ...]) -> Iterator[tuple[str, Beside]]:
        """The figures of one table, kind by kind."""
        # Without noise a table of the cube answers like the cube; with it, errors depend on what was summed.
        before, reference = (replace(cube, cube=cube.cube.project(*by)) for cube in (self.before, self.reference))
        records = before.cube[COUNT] // MILLION

        def beside(ask: Callable[[PublishedCube], CubeAnswer], *, parts: bool = False) -> Beside:
            return Beside.of(ask(before), ask(self.published), ask(reference), records, parts=parts)

        if self.published.is_weighted:
            yield TOTALS, beside(lambda cube: cube.totals(by), parts=True)
        yield RECORDS, beside(lambda cube: cube.totals(by, column=COUNT), parts=True)
        if by:
            yield PROPORTIONS, beside(lambda cube: cube.proportions(by, within=by[:1] if len(by) > 1 else ()))
        for measure in self.published.measures:
            yield f"means of {measure}", beside(partial(PublishedCube.means, measure=measure, by=by))


def assess_cube(
    planned: CubeStatistic,
    true: Cube,
    sampling: Sampling | None,
    published: PublishedCube,
    replicates: Replicates | None = None,
    *,
    randomness: Randomness = _CHANCE,
) -> CubeAssessment:
    """Compare a published cube with the true one; nothing of the result may leave the office.

    `replicates` are the replicate variances of some of its tables, where the data have replicate weights; the reference
    protection draws from `randomness`.
    """
    rules = planned.rules_before
    before = without_noise(true.with_column(COUNT, true[COUNT] * MILLION, parts=MILLION), sampling, rules)
    reference = without_noise(reference_cube(planned, true, randomness), sampling, published.rules)
    cubes = _Cubes(before=before, published=published, reference=reference)
    return CubeAssessment(
        name=planned.name,
        title=planned.title,
        rules_before=planned.rules_before,
        rules=published.rules,
        risk=cell_risk(np.ravel(true[COUNT]), np.ravel(published.cube.values(COUNT))),
        odds=odds_of_records(planned.guarantee),
        told=attack_cube(published.cube, published.figures, true, planned.section),
        weights=weights_attack(published.cube, published.figures, true) if WEIGHTED in true.columns else (),
        linkage=linkage_attacks(published, true, planned.section),
        by_dimension=tuple(
            _compared(cubes, size, chosen) for size in range(len(true.names) + 1) if (chosen := sampled(true, size))
        ),
        associations=tuple(
            Pair(
                attributes=(pair[0], pair[1]),
                true=_association(before, pair),
                published=_association(published, pair),
            )
            for pair in sampled(true, 2)
        ),
        replicates=replicate_errors(replicates or {}, before, published),
    )


def published_cube(planned: CubeStatistic, content: bytes) -> PublishedCube:
    """A stored answer as it is published."""
    cube, figures = read_stored(planned.as_asked(content))
    return PublishedCube(name=planned.name, title=planned.title, cube=cube, figures=figures, rules=planned.rules)


def without_noise(cube: Cube, sampling: Sampling | None, rules: Rules) -> PublishedCube:
    """A cube as if its numbers were published without noise; counts are in millionths."""
    none = ColumnNoise(variance=0.0, controls={}, scale=Scale(overall=1))
    figures = Figures(noise=dict.fromkeys(cube.columns, none), sampling=sampling)
    return PublishedCube(name="", title="", cube=cube, figures=figures, rules=rules)


def reference_cube(planned: CubeStatistic, true: Cube, randomness: Randomness) -> Cube:
    """The reference protection: all of the cube's ε spent on noise in its cells, without controls or calibration."""
    cube, _ = protected_cube(true, cells_only(planned.method), randomness, stratum=planned.section.stratum)
    return cube


def sampled(cube: Cube, size: int) -> list[tuple[str, ...]]:
    """Tables with so many dimensions, spread over all of them, as many as may be compared."""
    lengths = dict(zip(cube.names, cube.shape, strict=True))
    small = [by for by in combinations(cube.names, size) if prod(lengths[name] for name in by) <= MOST_CELLS]
    places = np.unique(np.linspace(0, max(len(small) - 1, 0), min(len(small), MOST_TABLES)).astype(int))
    chosen, cells = [], 0
    for by in (small[place] for place in places):
        more = prod(lengths[name] for name in by)
        if cells + more <= MOST_CELLS:
            cells += more
            chosen.append(by)
    return chosen


def cells_only(method: TruncatedLaplace) -> TruncatedLaplace:
    """The noise that spends all of the ε on cells; at a larger ε the same cap has a smaller δ."""
    cells = method.counts.epsilon + (0 if method.weights is None else method.weights.epsilon)
    more = (method.spends().epsilon - method.cost_of_dropping) / cells
    return replace(
        method,
        counts=replace(method.counts, epsilon=method.counts.epsilon * more),
        weights=None if method.weights is None else replace(method.weights, epsilon=method.weights.epsilon * more),
        controls=(),
    )


def _compared(cubes: _Cubes, size: int, tables: list[tuple[str, ...]]) -> Dimensionality:
    found: dict[str, list[Beside]] = {}
    for by in tables:
        for figure, cells in cubes.figures(by):
            found.setdefault(figure, []).append(cells)
    return Dimensionality(
        dimensions=size,
        tables=len(tables),
        of_tables=comb(len(cubes.before.cube.names), size),
        figures=tuple(_kind(figure, parts) for figure, parts in found.items()),
        risk=table_risk([(part.records, part.published) for part in found[RECORDS]]),
    )


def _kind(figure: str, tables: list[Beside]) -> KindOfFigure:
    cells = together(tables)
    return KindOfFigure(
        figure=figure,
        all=measures("all", cells),
        by_size=measures_by_size(cells),
        distances=distances(tables) if figure in (TOTALS, RECORDS) else None,
        differences=quantiles(cells.standardised),
        relative_differences=quantiles(cells.relative),
        error_differences=quantiles(cells.error_differences),
        cells=cells,
    )


def _association(cube: PublishedCube, pair: tuple[str, ...]) -> float:
    return cramers_v(np.maximum(cube.totals(pair).values, 0))
