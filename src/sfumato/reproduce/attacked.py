"""The attacks on the legacy protection, run on it and on every formal method."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sfumato.arrays import Integers
from sfumato.assess.attacks import BY_CHANCE, AttackResult, growth_attack
from sfumato.assess.exposure import attack
from sfumato.cells import Cells
from sfumato.methods.node_laplace import NodeLaplace
from sfumato.methods.registry import build
from sfumato.noise.factors import Factors
from sfumato.noise.keyed import hashes
from sfumato.reproduce.chance import Repeatable
from sfumato.reproduce.entrants import ENTRANTS, Protector, enter
from sfumato.reproduce.legacy import LEAST, MOST
from sfumato.reproduce.workloads import Tabulated

LEGACY = "noise-infusion"
_SPREAD = 0.15
"""Standard deviation of the logarithm of an establishment's growth between two periods."""


@dataclass(frozen=True, kw_only=True)
class Attacked:
    """One attack on one method; `result` is None where the method does not exist, and `reason` says why."""

    attack: str
    method: str
    result: AttackResult | None
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class Period:
    """The cells of one period, and the jobs of every establishment in them."""

    cells: Cells
    jobs: Integers


def run_attacks(tabulated: Tabulated, *, alpha: Fraction, epsilon: Fraction, seed: int) -> list[Attacked]:
    """Publish workload 3 in two periods under every method, and attack what was published."""
    first = Period(cells=tabulated.workloads[3].cells, jobs=tabulated.contributions.jobs)
    second = _next_period(tabulated, seed)
    publish = _legacy(tabulated, seed)
    found = _attacked(LEGACY, first, second, publish)
    for entrant in ENTRANTS:
        entry = enter(entrant, tabulated.workloads[3], alpha=alpha, epsilon=epsilon)
        if entry.method is None:
            names = dict.fromkeys(row.attack for row in found)
            found += [Attacked(attack=name, method=entrant.name, result=None, reason=entry.reason) for name in names]
        else:
            publish = _formal(entry.method, Repeatable(seed, "attack", entrant.name))
            found += _attacked(entrant.name, first, second, publish, entry.reason)
    return found


Publish = Callable[[Period], Integers]


def _attacked(name: str, first: Period, second: Period, publish: Publish, reason: str = "") -> list[Attacked]:
    before, after = publish(first), publish(second)
    blocks = first.cells.blocks()
    growth = growth_attack(
        before=before[blocks],
        after=after[blocks],
        establishments=first.cells["establishments"][blocks[:, 0]],
        true_before=first.cells["count"][blocks],
        true_after=second.cells["count"][blocks],
        rounding=BY_CHANCE,
    )
    results = (*attack(first.cells, before), growth)
    return [Attacked(attack=result.attack, method=name, result=result, reason=reason) for result in results]


def _legacy(tabulated: Tabulated, seed: int) -> Publish:
    chance = Repeatable(seed, "attack", LEGACY)
    made = tabulated.contributions
    factors = Factors(key=chance.key, least=LEAST, most=MOST).of(hashes(made.units))
    method = build(LEGACY, alpha=Fraction(1), epsilon=Fraction(1))  # neither plays a part

    def publish(period: Period) -> Integers:
        weights = factors[made.unit] * period.jobs
        distorted = np.bincount(made.cell, weights=weights, minlength=made.cells).astype(np.int64)
        return method.protect(period.cells.with_sums(distorted), chance)["value"]

    return publish


def _formal(method: Protector, chance: Repeatable) -> Publish:
    return lambda period: method.protect(period.cells, chance)["value"]


def _next_period(tabulated: Tabulated, seed: int) -> Period:
    """The economy a period later: every establishment grew or shrank by its own rate, all its groups alike."""
    made, cells = tabulated.contributions, tabulated.workloads[3].cells
    generator = np.random.Generator(np.random.Philox(key=np.frombuffer(Repeatable(seed, "growth").key, np.uint64)))
    rate = np.exp(generator.normal(0, _SPREAD, len(made.units)))
    jobs = np.rint(made.jobs * rate[made.unit]).astype(np.int64)
    columns: dict[str, Integers] = {
        **_largest(tabulated, jobs),
        "count": np.bincount(made.cell, weights=jobs, minlength=made.cells).astype(np.int64),
        "establishments": cells["establishments"],
    }
    below = (np.bincount(made.unit, weights=jobs) < NodeLaplace.threshold).astype(np.int64)
    weights = below[made.unit] * jobs
    columns["count_below_threshold"] = np.bincount(made.cell, weights=weights, minlength=made.cells).astype(np.int64)
    return Period(cells=Cells(dimensions=cells.dimensions, positions=cells.positions, columns=columns), jobs=jobs)


def _largest(tabulated: Tabulated, jobs: Integers) -> Mapping[str, Integers]:
    """The largest contribution to every cell, and the largest establishment of its workplace cell."""
    made, inside = tabulated.contributions, tabulated.workloads[3].worker_cells
    largest = np.zeros(made.cells, dtype=np.int64)
    np.maximum.at(largest, made.cell, jobs)
    size = np.bincount(made.unit, weights=jobs).astype(np.int64)
    employer = np.zeros(made.cells // inside, dtype=np.int64)
    np.maximum.at(employer, made.cell // inside, size[made.unit])
    return {"largest": largest, "largest_employer": np.repeat(employer, inside)}
