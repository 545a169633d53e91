"""Findings: what was published or aimed at, beside what was measured here."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from sfumato.privacy.guarantee import plain
from sfumato.reproduce.evaluate import Measured
from sfumato.reproduce.finding import Finding
from sfumato.reproduce.published import AIMS, BASE_ALPHA, BASE_EPSILON, LEAST_GAIN, PUBLISHED, Figure

_PAPERS = ("log-laplace", "smooth-gamma", "smooth-laplace")
# Workloads are about error ratios and rankings about correlations; what is neither is named.
_WORDS = {
    "l1_ratio": "",
    "spearman": "",
    "share_within_10_points": ": cells within 10 points",
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
