"""Run the trials of every method at every setting, and compare them with the legacy protection."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product

import numpy as np

from sfumato.arrays import Floats, Integers
from sfumato.assess.measures import ranks, ratio, share_near_reference
from sfumato.reproduce.chance import Repeatable
from sfumato.reproduce.entrants import ENTRANTS, Entrant, enter
from sfumato.reproduce.legacy import Legacy, error_by_stratum
from sfumato.reproduce.workloads import ALL, Tabulated

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
    near = np.full((1, 1), np.nan)
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
        figures.append(("share_within_10_points", {ALL: float(near.mean())}))
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
        near = [share_near_reference(true=true, protected=values, reference=other)]
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
