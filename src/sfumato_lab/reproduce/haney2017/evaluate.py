"""Run the trials of every method at every setting, and compare them with the legacy."""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import product
from math import prod
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Floats, Integers
from sfumato.cells import Cells, Dimension
from sfumato.engine.connect import connect
from sfumato.engine.validate import read_public_codes
from sfumato.errors import DataError, MethodError
from sfumato.measures.formulas import absolute_error, ranks, ratio, share_near_reference
from sfumato.noise.factors import Factors
from sfumato.noise.keyed import hashes
from sfumato.noise.laplace import RoundedLaplace
from sfumato.noise.randomness import Randomness, Repeatable
from sfumato.release import Release
from sfumato.statistics.jobs.laplace import NodeLaplace
from sfumato.statistics.jobs.noise_infusion import POSTERIOR, NoiseInfusion
from sfumato.statistics.jobs.question import Question
from sfumato.statistics.jobs.tabulate import tabulate
from sfumato.statistics.jobs.tabulate_establishments import Contributions, contributions
from sfumato.statistics.registry import build

# The workloads of an evaluation: tabulated once through the engine, then only arrays.

PUBLIC = ("place", "industry", "ownership")
WORKERS = ("sex", "education")
STRATUM = "place_size"
ALL = "all"
GRADUATES = {"sex": "F", "education": "college"}
"""The second ranking orders cells by the number of women with a college degree."""


@dataclass(frozen=True, kw_only=True)
class Workload:
    """One set of counts to protect; `worker_cells` is what a method must know about its attributes."""

    number: int
    title: str
    cells: Cells
    worker_cells: int
    strata: NDArray[np.intp]
    """The stratum of every cell, by the population of its place."""
    ranked: NDArray[np.intp]
    """The cells that the ranking of the same number orders; none where there is no such ranking."""


@dataclass(frozen=True, kw_only=True)
class Tabulated:
    """Everything the evaluation needs to know about the economy: confidential if the economy were real."""

    workloads: Mapping[int, Workload]
    contributions: Contributions
    """Of every establishment to the cells of workloads 2 and 3."""
    strata: tuple[str, ...]

    @property
    def jobs(self) -> int:
        """The jobs of the economy."""
        return int(self.contributions.jobs.sum())


def tabulate_workloads(release: Release) -> Tabulated:
    """Count the three workloads of an economy that `sfumato economy` wrote."""
    lacking = [name for name in (*PUBLIC, STRATUM, *WORKERS) if name not in release.frame.attributes]
    if lacking or release.frame.joined:
        raise DataError(
            f"data {release.frame.folder}",
            expected="an economy as `sfumato economy` writes it, with place, industry, ownership, sex and education",
            found=f"no attribute {', '.join(lacking)}" if lacking else "one joined table",
            do="name such a folder with --data, or leave --data out",
        )
    frame = release.frame
    with connect(frame) as tables:
        codelists = read_public_codes(frame, tables)

        def question(*names: str) -> Question:
            by = tuple(Dimension(name=n, codes=codelists[n].codes, public=frame.is_public(n)) for n in names)
            return Question(by=by, needs=frozenset({"largest_employer"}))

        full = question(*PUBLIC, *WORKERS)
        asked = {"workplaces": question(*PUBLIC), "workers": full, "places": question(PUBLIC[0], STRATUM)}
        cells = tabulate(frame, tables, asked)
        contributed = contributions(frame, tables, full, cells["workers"])
    strata = asked["places"].by[1].codes
    return Tabulated(
        workloads=_workloads(cells["workplaces"], cells["workers"], _stratum_of_place(cells["places"]), contributed),
        contributions=contributed,
        strata=strata,
    )


def _workloads(
    workplaces: Cells, workers: Cells, stratum: NDArray[np.intp], contributed: Contributions
) -> dict[int, Workload]:
    place = PUBLIC[0]
    kept = (contributed.sizes < NodeLaplace.threshold).astype(np.int64)
    below = contributed.sums(kept)
    inside = prod(len(d) for d in workers.dimensions if not d.public)
    # The worker cells of a workplace cell stand side by side, because their dimensions come last.
    workplaces = workplaces.with_column("count_below_threshold", below.reshape(-1, inside).sum(axis=1))
    workers = workers.with_column("count_below_threshold", below)
    graduates = np.ones(len(workers), dtype=bool)
    for dimension in workers.dimensions:
        if dimension.name in GRADUATES:
            graduates &= workers.codes(dimension.name) == dimension.codes.index(GRADUATES[dimension.name])
    none = np.zeros(0, dtype=np.intp)
    found = (
        Workload(
            number=1,
            title="place × industry × ownership",
            cells=workplaces,
            worker_cells=0,
            strata=stratum[workplaces.codes(place)],
            ranked=np.arange(len(workplaces)),
        ),
        Workload(
            number=2,
            title="single cells of place × industry × ownership × sex × education",
            cells=_each_alone(workers),
            worker_cells=1,
            strata=stratum[workers.codes(place)],
            ranked=np.flatnonzero(graduates),
        ),
        Workload(
            number=3,
            title="place × industry × ownership × sex × education, all cells together",
            cells=workers,
            worker_cells=inside,
            strata=stratum[workers.codes(place)],
            ranked=none,
        ),
    )
    return {workload.number: workload for workload in found}


def _each_alone(cells: Cells) -> Cells:
    """Every cell as a query by itself: no method is to see the other worker cells of its workplace cell."""
    dimensions = tuple(replace(dimension, public=True) for dimension in cells.dimensions)
    return Cells(dimensions=dimensions, positions=cells.positions, columns=cells.columns)


def _stratum_of_place(places: Cells) -> NDArray[np.intp]:
    """The stratum of every place that has an establishment; the others have no cells."""
    stratum = np.zeros(len(places.dimensions[0]), dtype=np.intp)
    stratum[places.codes(PUBLIC[0])] = places.codes(STRATUM)
    return stratum


# The methods that are compared, and which of them exist where.


@dataclass(frozen=True, kw_only=True)
class Entrant:
    """A method with the options it is evaluated with."""

    name: str
    kind: str
    options: Mapping[str, Any] = field(default_factory=dict)
    depends_on_alpha: bool = True
    single_cells: bool = True
    """Whether it can protect one worker cell of a workplace cell without the others."""


PAPER = "the paper's"
BASELINE = "baseline"
OURS = "sfumato's"
DELTA = Fraction(1, 20)
"""The paper plots Smooth Laplace where a failure probability of 5% allows it."""

ENTRANTS = (
    Entrant(name="log-laplace", kind=PAPER),
    Entrant(name="smooth-gamma", kind=PAPER),
    Entrant(name="smooth-laplace", kind=PAPER, options={"delta": DELTA}),
    Entrant(name="laplace", kind=BASELINE, depends_on_alpha=False),
    Entrant(name="node-laplace", kind=BASELINE, depends_on_alpha=False),
    Entrant(name="smooth-pareto", kind=OURS),
    Entrant(name="vector-pareto", kind=OURS, single_cells=False),
    Entrant(name="log-box", kind=OURS),
    Entrant(name="smooth-box", kind=OURS),
    Entrant(name="auto", kind=OURS, single_cells=False),
    Entrant(name="vector-bell", kind=OURS, single_cells=False),
    Entrant(name="auto-bell", kind=OURS, single_cells=False),
)


class Protector(Protocol):
    """What the evaluation asks of a method; every method of the registry satisfies it."""

    def protect(self, cells: Cells, randomness: Randomness) -> Cells:
        """The same cells with the single column `value`."""
        ...


@dataclass(frozen=True, kw_only=True)
class Entry:
    """An entrant at one setting: the method, or the reason why there is none, or why it has no guarantee."""

    method: Protector | None
    reason: str = ""


def enter(entrant: Entrant, workload: Workload, *, alpha: Fraction, epsilon: Fraction) -> Entry:
    """The entrant for one workload: methods for single cells share ε among the worker cells by themselves."""
    if workload.worker_cells == 1 and not entrant.single_cells:
        return Entry(method=None, reason="protects all worker cells of a workplace cell together, not single ones")
    try:
        method = build(
            entrant.name, alpha=alpha, epsilon=epsilon, worker_cells=workload.worker_cells, options=entrant.options
        )
    except MethodError as error:
        reason = f"needs {error.expected}"
        if entrant.name == "smooth-laplace" and workload.worker_cells > 1:
            # The paper shows this curve for all settings, also where no delta up to its 5% is left for a cell.
            scale = 2 * workload.worker_cells / epsilon
            return Entry(method=UncheckedSmoothLaplace(alpha=alpha, scale=scale), reason=f"no guarantee: {reason}")
        return Entry(method=None, reason=reason)
    return Entry(method=method)


@dataclass(frozen=True, kw_only=True)
class UncheckedSmoothLaplace:
    """The noise of Smooth Laplace at any setting, for comparison only: it may guarantee nothing."""

    alpha: Fraction
    scale: Fraction

    def protect(self, cells: Cells, randomness: Randomness) -> Cells:
        """Every count plus Laplace noise of scale k·max(αx, 1)."""
        p, q = self.alpha.numerator, self.alpha.denominator
        multiples = np.maximum(cells["largest"] * p, q)
        value = cells["count"] + RoundedLaplace(unit=self.scale / q).sample(multiples, randomness)
        return Cells(dimensions=cells.dimensions, positions=cells.positions, columns={"value": value})


# The legacy protection that formal methods are compared with: permanent factors, small counts drawn anew.

LEAST, MOST = Fraction("0.10"), Fraction("0.25")
"""Factors are between 10% and 25% away from one, nearer values being more likely."""
_POSTERIOR = NoiseInfusion(small_cells=POSTERIOR)


@dataclass(frozen=True, kw_only=True)
class Legacy:
    """The legacy values of every trial, with what each comparison needs of them worked out once."""

    values: Mapping[int, tuple[Integers, ...]]
    """By number of the workload, then trial by trial."""
    errors: Mapping[int, Floats]
    """By number of the workload: the mean over trials of the L1 error in each stratum."""
    rankings: Mapping[int, tuple[tuple[Floats, ...], ...]]
    """By number of the ranking and trial: the ranks of all cells, then within each stratum."""
    drawn_errors: Mapping[int, Floats]
    """The errors of the same factors, small counts being drawn from their posterior and not by a coin."""


def draw_legacy(tabulated: Tabulated, *, trials: int, seed: int) -> Legacy:
    """Protect all workloads as the legacy does, with new factors in every trial."""
    units = hashes(tabulated.contributions.units)
    single = tabulated.workloads[3].worker_cells
    values: dict[int, list[Integers]] = {number: [] for number in tabulated.workloads}
    drawn: dict[int, list[Integers]] = {1: [], 3: []}
    for trial in range(trials):
        chance = Repeatable(seed, "legacy", trial)
        factors = Factors(key=chance.key, least=LEAST, most=MOST).of(units)
        distorted = tabulated.contributions.sums(factors)
        sums = {1: distorted.reshape(-1, single).sum(axis=1), 3: distorted}
        for number, column in sums.items():
            cells = tabulated.workloads[number].cells.with_sums(column)
            values[number].append(NoiseInfusion().protect(cells, chance)["value"])
            drawn[number].append(_POSTERIOR.protect(cells, Repeatable(seed, "small cells", trial, number))["value"])
        values[2].append(values[3][-1])  # the same published numbers, looked at one by one
    return Legacy(
        values={number: tuple(found) for number, found in values.items()},
        errors={number: _errors(tabulated, number, found) for number, found in values.items()},
        drawn_errors={number: _errors(tabulated, number, found) for number, found in drawn.items()},
        rankings={number: tuple(_rankings(tabulated, number, v) for v in values[number]) for number in (1, 2)},
    )


def error_by_stratum(tabulated: Tabulated, number: int, values: Integers) -> Floats:
    """The L1 error of one protected workload, summed over the cells of each stratum."""
    workload = tabulated.workloads[number]
    error = absolute_error(true=workload.cells["count"], protected=values)
    summed: Floats = np.bincount(workload.strata, weights=error, minlength=len(tabulated.strata)).astype(np.float64)
    return summed


def _errors(tabulated: Tabulated, number: int, drawn: list[Integers]) -> Floats:
    errors: Floats = np.mean([error_by_stratum(tabulated, number, values) for values in drawn], axis=0)
    return errors


def _rankings(tabulated: Tabulated, number: int, values: Integers) -> tuple[Floats, ...]:
    workload = tabulated.workloads[number]
    ranked, strata = values[workload.ranked], workload.strata[workload.ranked]
    return (ranks(ranked), *(ranks(ranked[strata == stratum]) for stratum in range(len(tabulated.strata))))


Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, kw_only=True)
class Grid:
    """The settings that are tried, and how often."""

    alphas: tuple[Fraction, ...]
    epsilons: tuple[Fraction, ...]
    trials: int


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One method on one workload at one α and ε."""

    workload: int
    entrant: Entrant
    alpha: Fraction
    epsilon: Fraction


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One figure of one setting; `ours` is None where the method does not exist, and `reason` says why."""

    quantity: str
    workload: int
    method: str
    alpha: Fraction
    epsilon: Fraction
    stratum: str
    ours: float | None
    reason: str = ""


def evaluate(
    tabulated: Tabulated, legacy: Legacy, grid: Grid, *, seed: int, threads: int, progress: Progress
) -> list[Measured]:
    """Every figure of every setting; only the arrays of as many trials as there are threads are held at once."""
    settings = [
        Setting(workload=number, entrant=entrant, alpha=alpha, epsilon=epsilon)
        for number, entrant, alpha, epsilon in product(tabulated.workloads, ENTRANTS, grid.alphas, grid.epsilons)
        # A method that does not know alpha is tried once and stands for all.
        if entrant.depends_on_alpha or alpha == grid.alphas[0]
    ]
    found: list[Measured] = []
    with ThreadPoolExecutor(threads) as pool:
        tried = pool.map(lambda setting: _try(tabulated, legacy, setting, trials=grid.trials, seed=seed), settings)
        for done, (setting, rows) in enumerate(zip(settings, tried, strict=True), start=1):
            progress(f"{setting.entrant.name}, workload {setting.workload}", done, len(settings))
            alphas = (setting.alpha,) if setting.entrant.depends_on_alpha else grid.alphas
            found += [replace(row, alpha=alpha) for alpha in alphas for row in rows]
    return found


def _try(tabulated: Tabulated, legacy: Legacy, setting: Setting, *, trials: int, seed: int) -> list[Measured]:
    """All figures of one setting."""
    workload = tabulated.workloads[setting.workload]
    entry = enter(setting.entrant, workload, alpha=setting.alpha, epsilon=setting.epsilon)
    names = (ALL, *tabulated.strata)
    errors: Floats = np.full((1, len(names)), np.nan)
    rankings = errors
    near = np.full((1, 2), np.nan)
    if entry.method is not None:
        chance = Repeatable(seed, setting)
        drawn = [
            _measure(tabulated, legacy, setting.workload, trial, entry.method.protect(workload.cells, chance)["value"])
            for trial in range(trials)
        ]
        errors, rankings, near = (np.array(part) for part in zip(*drawn, strict=True))
    against = legacy.errors[setting.workload]
    ratios = [ratio(e, float(a)) for e, a in zip(errors.mean(axis=0), (against.sum(), *against), strict=True)]
    figures = [("l1_ratio", dict(zip(names, ratios, strict=True)))]
    if len(workload.ranked):
        figures.append(("spearman", dict(zip(names, rankings.mean(axis=0), strict=True))))
    if setting.workload == 1:
        for name, share in zip(("share_within_10_points", "share_within_10_points_either_way"), near.T, strict=False):
            figures.append((name, {ALL: float(share.mean())}))
    return list(_rows(setting, figures, entry.reason, skipped=entry.method is None))


def _measure(
    tabulated: Tabulated, legacy: Legacy, number: int, trial: int, values: Integers
) -> tuple[list[float], list[float], list[float]]:
    """The errors, rank correlations and nearness to the legacy of one trial, overall and by stratum."""
    workload = tabulated.workloads[number]
    by_stratum = error_by_stratum(tabulated, number, values)
    near, correlations = [0.0], [0.0]
    if len(workload.ranked):
        ranked, strata = values[workload.ranked], workload.strata[workload.ranked]
        parts = [ranked, *(ranked[strata == stratum] for stratum in range(len(tabulated.strata)))]
        reference = legacy.rankings[number][trial]
        correlations = [_correlation(ranks(part), other) for part, other in zip(parts, reference, strict=True)]
    if number == 1:
        true, other = workload.cells["count"], legacy.values[number][trial]
        near = [
            share_near_reference(true=true, protected=values, reference=other, two_sided=two_sided)
            for two_sided in (False, True)
        ]
    return [float(by_stratum.sum()), *map(float, by_stratum)], correlations, near


def _correlation(first: Floats, second: Floats) -> float:
    """The correlation of two rankings, which is Spearman's of what they rank."""
    if len(first) < 2:
        return float("nan")
    first, second = first - first.mean(), second - second.mean()
    return ratio(float(first @ second), float(np.sqrt((first @ first) * (second @ second))))


def _rows(
    setting: Setting, figures: list[tuple[str, dict[str, float]]], reason: str, *, skipped: bool
) -> Iterator[Measured]:
    for quantity, by_stratum in figures:
        for stratum, value in by_stratum.items():
            yield Measured(
                quantity=quantity,
                workload=setting.workload,
                method=setting.entrant.name,
                alpha=setting.alpha,
                epsilon=setting.epsilon,
                stratum=stratum,
                ours=None if skipped or np.isnan(value) else float(value),
                reason=reason,
            )
