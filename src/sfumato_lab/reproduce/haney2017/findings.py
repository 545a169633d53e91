"""What was published or aimed at, beside what was measured here; attacks among it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Literal

import numpy as np

from sfumato.arrays import Integers
from sfumato.cells import Cells
from sfumato.measures.attacks import AttackResult
from sfumato.measures.risk import attack, attack_growth
from sfumato.noise.factors import Factors
from sfumato.noise.keyed import hashes
from sfumato.noise.randomness import Repeatable
from sfumato.privacy.guarantee import plain
from sfumato.statistics.jobs.laplace import NodeLaplace
from sfumato.statistics.registry import build
from sfumato_lab.reproduce.haney2017.evaluate import ALL, ENTRANTS, LEAST, MOST, Measured, Protector, Tabulated, enter
from sfumato_lab.reproduce.page import Finding

# What was published, and what this package aims at: figures to print beside measured ones, never results.
#
# Source of the published figures: S. Haney, A. Machanavajjhala, J. M. Abowd, M. Graham, M. Kutzbach, L. Vilhuber,
# "Utility Cost of Formal Privacy for Releasing National Employer-Employee Statistics", SIGMOD 2017, section 10.1. The
# paper gives bounds in words and curves without numbers; only the words are here. Its workload 3 divides ε by 10, ours
# by the 8 worker cells that sex and education make in the synthetic economy.

Relation = Literal["at most", "below", "about"]
Setting = tuple[Fraction, Fraction]
"""α and ε."""


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure somebody stated about one setting."""

    source: str
    quantity: str
    workload: int
    method: str
    alpha: Fraction
    epsilon: Fraction
    relation: Relation
    value: float
    stratum: str = ALL

    @property
    def setting(self) -> tuple[str, int, str, Fraction, Fraction, str]:
        """What it is about."""
        return (self.quantity, self.workload, self.method, self.alpha, self.epsilon, self.stratum)

    def holds(self, measured: float) -> bool | None:
        """Whether a measured figure agrees; None for "about", to which the paper sets no limits."""
        if self.relation == "about":
            return None
        return measured < self.value if self.relation == "below" else measured <= self.value


_ALPHAS = tuple(map(Fraction, ("0.01", "0.05", "0.1", "0.15", "0.2")))
BASE_ALPHA, BASE_EPSILON = Fraction("0.1"), Fraction(2)
"""The paper's baseline."""


def _ratio(source: str, about: tuple[int, str], setting: Setting, relation: Relation, value: float) -> Figure:
    return Figure(
        source=source,
        quantity="l1_ratio",
        workload=about[0],
        method=about[1],
        alpha=setting[0],
        epsilon=setting[1],
        relation=relation,
        value=value,
    )


_BASE = (BASE_ALPHA, BASE_EPSILON)
_AT_FOUR = tuple((alpha, Fraction(4)) for alpha in _ALPHAS)

PUBLISHED = (
    _ratio("finding 1", (1, "log-laplace"), _BASE, "at most", 3),
    _ratio("finding 1", (1, "smooth-gamma"), _BASE, "at most", 3),
    _ratio("finding 1", (1, "smooth-laplace"), _BASE, "below", 1),
    *(
        Figure(
            source="finding 1",
            quantity="spearman",
            workload=1,
            method=method,
            alpha=BASE_ALPHA,
            epsilon=Fraction(epsilon),
            relation="about",
            value=1,
        )
        for method, epsilon in (("smooth-laplace", 2), ("log-laplace", 4), ("smooth-gamma", 4))
    ),
    *(
        Figure(
            source="finding 1",
            quantity=quantity,
            workload=1,
            method=method,
            alpha=BASE_ALPHA,
            epsilon=BASE_EPSILON,
            relation="about",
            value=value,
        )
        for quantity in ("share_within_10_points", "share_within_10_points_either_way")
        for method, value in (("log-laplace", 0.65), ("smooth-gamma", 0.29), ("smooth-laplace", 0.75))
    ),
    _ratio("finding 2", (2, "log-laplace"), _BASE, "at most", 3),
    _ratio("finding 2", (2, "smooth-laplace"), _BASE, "about", 1),
    *(_ratio("finding 2", (2, "smooth-laplace"), setting, "below", 1) for setting in _AT_FOUR),
    *(_ratio("finding 3", (3, "log-laplace"), setting, "at most", 10) for setting in _AT_FOUR[:2]),
    _ratio("finding 3", (3, "smooth-laplace"), _AT_FOUR[0], "at most", 3),
    *(_ratio("finding 3", (3, "smooth-laplace"), setting, "at most", 10) for setting in _AT_FOUR[1:]),
)

_FINE, _TWENTIETH = Fraction("0.01"), Fraction("0.05")
AIMS = (
    _ratio("aim", (1, "smooth-laplace"), _BASE, "below", 1),
    _ratio("aim", (1, "smooth-pareto"), _BASE, "at most", 0.40),
    _ratio("aim", (1, "smooth-gamma"), _BASE, "at most", 5),
    _ratio("aim", (1, "log-laplace"), _BASE, "at most", 5),
    _ratio("aim", (3, "vector-pareto"), (_TWENTIETH, Fraction(2)), "at most", 2.2),
    _ratio("aim", (3, "vector-pareto"), (_FINE, Fraction(2)), "at most", 0.6),
    _ratio("aim", (3, "vector-pareto"), (_TWENTIETH, Fraction(4)), "at most", 0.9),
    _ratio("aim", (3, "auto"), _BASE, "at most", 3.9),
    _ratio("aim", (3, "auto"), (BASE_ALPHA, Fraction(4)), "at most", 1.5),
    _ratio("aim", (3, "auto"), (_TWENTIETH, Fraction(2)), "at most", 1.9),
    _ratio("aim", (3, "vector-bell"), _BASE, "at most", 4),
    _ratio("aim", (3, "auto-bell"), _BASE, "at most", 2.0),
)
"""What the methods of this package are meant to reach on the same work."""
LEAST_GAIN = 1.8
"""Smooth Pareto is to be at least this many times better than Smooth Laplace at the paper's baseline."""


# The attacks on the legacy protection, run on it and on every formal method.

LEGACY = "noise-infusion"
TOTALS = "growth of totals"
"""The growth attack on workload 1."""
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
    """Publish workload 3 in two periods under every method, and attack what was published; then growth in workload 1.

    A count of all workers is large enough for its growth where those of single worker cells are blurred by rounding.
    """
    first = Period(cells=tabulated.workloads[3].cells, jobs=tabulated.contributions.jobs)
    second = _next_period(tabulated, seed)
    whole = tuple(_of_workplaces(tabulated, period) for period in (first, second))
    publish = _legacy(tabulated, seed)
    found = _attacked(LEGACY, first, second, publish)
    names = [row.attack for row in found]
    found.append(_growth(LEGACY, TOTALS, whole, publish))
    for entrant in ENTRANTS:
        entry = enter(entrant, tabulated.workloads[3], alpha=alpha, epsilon=epsilon)
        if entry.method is None:
            found += [Attacked(attack=name, method=entrant.name, result=None, reason=entry.reason) for name in names]
        else:
            publish = _formal(entry.method, Repeatable(seed, "attack", entrant.name))
            found += _attacked(entrant.name, first, second, publish, entry.reason)
        entry = enter(entrant, tabulated.workloads[1], alpha=alpha, epsilon=epsilon)
        if entry.method is None:
            found.append(Attacked(attack=TOTALS, method=entrant.name, result=None, reason=entry.reason))
        else:
            publish = _formal(entry.method, Repeatable(seed, "attack on totals", entrant.name))
            found.append(_growth(entrant.name, TOTALS, whole, publish, entry.reason))
    return found


Publish = Callable[[Period], Integers]


def _attacked(name: str, first: Period, second: Period, publish: Publish, reason: str = "") -> list[Attacked]:
    published = publish(first), publish(second)
    results = (*attack(first.cells, published[0]), _grown((first, second), published))
    return [Attacked(attack=result.attack, method=name, result=result, reason=reason) for result in results]


def _growth(name: str, title: str, periods: Sequence[Period], publish: Publish, reason: str = "") -> Attacked:
    result = _grown(periods, [publish(period) for period in periods])
    return Attacked(attack=title, method=name, result=result, reason=reason)


def _grown(periods: Sequence[Period], published: Sequence[Integers]) -> AttackResult:
    first, second = (period.cells for period in periods)
    return attack_growth(before=first, after=second, published_before=published[0], published_after=published[1])


def _of_workplaces(tabulated: Tabulated, period: Period) -> Period:
    """The same jobs by workplace attributes alone: the cells of workload 1."""
    inside, cells = tabulated.workloads[3].worker_cells, tabulated.workloads[1].cells
    columns = {name: period.cells[name].reshape(-1, inside).sum(axis=1) for name in ("count", "count_below_threshold")}
    same = {name: period.cells[name][::inside] for name in ("establishments", "largest_employer")}
    columns |= same | {"largest": same["largest_employer"]}
    return Period(
        cells=Cells(dimensions=cells.dimensions, positions=cells.positions, columns=columns), jobs=period.jobs
    )


def _legacy(tabulated: Tabulated, seed: int) -> Publish:
    chance = Repeatable(seed, "attack", LEGACY)
    made = tabulated.contributions
    factors = Factors(key=chance.key, least=LEAST, most=MOST).of(hashes(made.units))
    method = build(LEGACY, alpha=Fraction(1), epsilon=Fraction(1))  # neither plays a part

    def publish(period: Period) -> Integers:
        weights, number = factors[made.unit] * period.jobs, len(period.cells)
        # The worker cells of a workplace cell stand side by side.
        cell = made.cell // (made.cells // number)
        distorted = np.bincount(cell, weights=weights, minlength=number).astype(np.int64)
        return method.protect(period.cells.with_sums(distorted), chance)["value"]

    return publish


def _formal(method: Protector, chance: Repeatable) -> Publish:
    return lambda period: method.protect(period.cells, chance)["value"]


def _next_period(tabulated: Tabulated, seed: int) -> Period:
    """The economy a period later: every establishment grew or shrank by its own rate, all its groups alike."""
    made, cells = tabulated.contributions, tabulated.workloads[3].cells
    generator = np.random.Generator(np.random.Philox(key=np.frombuffer(Repeatable(seed, "growth").key, np.uint64)))
    rate = np.empty(len(made.units))
    # An engine gives establishments in any order: the rate belongs to the name.
    rate[np.argsort(np.array(made.units))] = np.exp(generator.normal(0, _SPREAD, len(made.units)))
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


# Findings: what was published or aimed at, beside what was measured here.

_PAPERS = ("log-laplace", "smooth-gamma", "smooth-laplace")
# Workloads are about error ratios and rankings about correlations; what is neither is named.
_WORDS = {
    "l1_ratio": "",
    "spearman": "",
    "share_within_10_points": ": cells within 10 points",
    "share_within_10_points_either_way": ": cells within 10 points either way",
}


def findings(rows: Sequence[Measured]) -> list[Finding]:
    """Every published finding and every aim that the settings tried can answer."""
    measured = {(r.quantity, r.workload, r.method, r.alpha, r.epsilon, r.stratum): r for r in rows}
    stated = [
        _compared(figure, measured[figure.setting])
        for figure in (*PUBLISHED, *AIMS)
        if figure.setting in measured and measured[figure.setting].ours is not None
    ]
    published = [finding for finding in stated if finding.source != "aim"]
    aims = [finding for finding in stated if finding.source == "aim"]
    return [*published, *_orders(rows), *aims, *_gain(rows)]


def _compared(figure: Figure, row: Measured) -> Finding:
    assert row.ours is not None
    name = "ranking" if figure.quantity == "spearman" else "workload"
    return Finding(
        source=figure.source,
        what=f"{name} {figure.workload}, {figure.method}, α={plain(figure.alpha)}, ε={plain(figure.epsilon)}"
        f"{_WORDS[figure.quantity]}",
        stated=f"{figure.relation} {figure.value:g}",
        ours=f"{row.ours:.3g}",
        holds=figure.holds(row.ours),
        note=row.reason,
    )


def _orders(rows: Sequence[Measured]) -> Iterator[Finding]:
    """What the paper says about the order of methods and strata, at its baseline."""
    base = [r for r in rows if (r.quantity, r.alpha, r.epsilon) == ("l1_ratio", BASE_ALPHA, BASE_EPSILON)]
    for method in _PAPERS:
        strata = [r.ours for r in base if r.workload == 1 and r.method == method and r.stratum != "all"]
        some = [value for value in strata if value is not None]
        if len(some) > 1:
            yield Finding(
                source="finding 4",
                what=f"workload 1, {method}, α=0.1, ε=2: small places to large",
                stated="falls",
                ours=" → ".join(f"{value:.3g}" for value in some),
                holds=all(after < before for before, after in pairwise(some)),
                is_order=True,
            )
    for workload in (1, 2, 3):
        three = {
            r.method: r.ours
            for r in base
            if r.workload == workload and r.method in _PAPERS and r.stratum == "all" and r.ours is not None
        }
        if "smooth-laplace" in three and len(three) > 1:
            yield Finding(
                source="finding 5" if workload < 3 else "findings 3, 5",
                what=f"workload {workload}, α=0.1, ε=2: the best of the paper's three",
                stated="smooth-laplace" if workload < 3 else "smooth-laplace, above 1",
                ours=", ".join(f"{method} {value:.3g}" for method, value in sorted(three.items(), key=lambda m: m[1])),
                holds=min(three, key=lambda m: three[m]) == "smooth-laplace"
                and (workload < 3 or three["smooth-laplace"] > 1),
                is_order=True,
            )


def _gain(rows: Sequence[Measured]) -> Iterator[Finding]:
    ours = {
        r.method: r.ours
        for r in rows
        if (r.quantity, r.workload, r.alpha, r.epsilon, r.stratum) == ("l1_ratio", 1, BASE_ALPHA, BASE_EPSILON, "all")
    }
    laplace, pareto = ours.get("smooth-laplace"), ours.get("smooth-pareto")
    if laplace and pareto:
        yield Finding(
            source="aim",
            what="workload 1, α=0.1, ε=2: smooth-laplace / smooth-pareto",
            stated=f"at least {LEAST_GAIN:g}",
            ours=f"{laplace / pareto:.3g}",
            holds=laplace / pareto >= LEAST_GAIN,
        )
