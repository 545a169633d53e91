"""The legacy protection that formal methods are compared with: permanent factors, small counts drawn anew."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sfumato.arrays import Floats, Integers
from sfumato.assess.measures import absolute_error, ranks
from sfumato.methods.noise_infusion import NoiseInfusion
from sfumato.noise.factors import Factors
from sfumato.noise.keyed import hashes
from sfumato.reproduce.chance import Repeatable
from sfumato.reproduce.workloads import Tabulated

LEAST, MOST = Fraction("0.10"), Fraction("0.25")
"""Factors are between 10% and 25% away from one, nearer values being more likely."""


@dataclass(frozen=True, kw_only=True)
class Legacy:
    """The legacy values of every trial, with what each comparison needs of them worked out once."""

    values: Mapping[int, tuple[Integers, ...]]
    """By number of the workload, then trial by trial."""
    errors: Mapping[int, Floats]
    """By number of the workload: the mean over trials of the L1 error in each stratum."""
    rankings: Mapping[int, tuple[tuple[Floats, ...], ...]]
    """By number of the ranking and trial: the ranks of all cells, then within each stratum."""


def draw_legacy(tabulated: Tabulated, *, trials: int, seed: int) -> Legacy:
    """Protect all workloads as the legacy does, with new factors in every trial."""
    units = hashes(tabulated.contributions.units)
    single = tabulated.workloads[3].worker_cells
    values: dict[int, list[Integers]] = {number: [] for number in tabulated.workloads}
    for trial in range(trials):
        chance = Repeatable(seed, "legacy", trial)
        factors = Factors(key=chance.key, least=LEAST, most=MOST).of(units)
        distorted = tabulated.contributions.sums(factors)
        sums = {1: distorted.reshape(-1, single).sum(axis=1), 3: distorted}
        for number, column in sums.items():
            cells = tabulated.workloads[number].cells.with_sums(column)
            values[number].append(NoiseInfusion().protect(cells, chance)["value"])
        values[2].append(values[3][-1])  # the same published numbers, looked at one by one
    return Legacy(
        values={number: tuple(drawn) for number, drawn in values.items()},
        errors={number: _errors(tabulated, number, drawn) for number, drawn in values.items()},
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
