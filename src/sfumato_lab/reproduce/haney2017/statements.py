"""What the paper states beside its evaluation: its tables, Figures 1 and 2, and theorems, with their errata."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import log, log1p
from typing import Any

import numpy as np

from sfumato.measures.risk import sensitivity, size_odds
from sfumato.privacy.guarantee import (
    Definition,
    EmployerEmployee,
    NoFormalGuarantee,
    loss,
    plain,
    workforce_steps,
)
from sfumato.statistics.jobs.smooth import smallest_epsilon
from sfumato.statistics.registry import requirements
from sfumato_lab.reproduce.haney2017.evaluate import Tabulated
from sfumato_lab.reproduce.haney2017.losses import ALPHA, EPSILON, METHODS, PARALLEL, exact_loss
from sfumato_lab.reproduce.page import Finding


@dataclass(frozen=True, kw_only=True)
class Stated:
    """One figure or word of the paper, and ours."""

    source: str
    quantity: str
    what: str
    published: float | str
    ours: float | str
    relation: str = "about"
    about: Mapping[str, Any] = field(default_factory=dict)
    """What tells it from others of its quantity."""
    note: str = ""

    @property
    def holds(self) -> bool | None:
        """Whether both agree; None where the paper sets no limit."""
        if self.relation == "is":
            return self.published == self.ours
        one, other = float(self.ours), float(self.published)
        return {"at least": one >= other, "at most": one <= other}.get(self.relation)

    def row(self) -> dict[str, Any]:
        """The same for machines."""
        noted = {"reason": self.note} if self.note else {}
        stated = {"published": self.published, "ours": self.ours, "relation": self.relation}
        return {"quantity": self.quantity, "source": self.source, **self.about, **stated, **noted}

    def finding(self) -> Finding:
        """The same for people."""
        words = [figure if isinstance(figure, str) else f"{figure:.3g}" for figure in (self.published, self.ours)]
        stated = words[0] if self.relation == "is" else f"{self.relation} {words[0]}"
        return Finding(
            source=self.source, what=self.what, stated=stated, ours=words[1], holds=self.holds, note=self.note
        )


def stated(tabulated: Tabulated) -> list[Stated]:
    """Everything the paper states that is not an error or a ranking of a method."""
    return [
        *_requirements(),
        *_least_epsilons(),
        *_beliefs(),
        *_sensitivity(tabulated),
        *_shapes(),
        *_parallel(),
    ]


# Table 1: which definition satisfies which requirement.

_TABLE_1: Mapping[str, tuple[Definition | None, tuple[str, str, str]]] = {
    "input noise infusion": (None, ("no", "no", "no")),
    "individuals": ("individuals", ("yes", "no", "no")),
    "establishments": ("strong", ("yes", "yes", "yes")),
    "strong": ("strong", ("yes", "yes", "yes")),
    "weak": ("weak", ("yes", "weak attackers", "yes")),
}
"""By name: the definition that is judged, since privacy of whole establishments implies the strong one; the answers."""


def _requirements() -> Iterator[Stated]:
    for definition, (known, answers) in _TABLE_1.items():
        guarantee = (
            NoFormalGuarantee(statement="")
            if known is None
            else EmployerEmployee(definition=known, alpha=ALPHA, epsilon=EPSILON)
        )
        ours = requirements(guarantee)
        for name, published in zip(("individuals", "employer_size", "employer_shape"), answers, strict=True):
            found = str(getattr(ours, name))
            yield Stated(
                source="Table 1",
                quantity="requirement",
                what=f"{definition}: {name.replace('_', ' ')} protected",
                published=published,
                ours=found,
                relation="is",
                about={"definition": definition, "requirement": name},
                note="" if found == published else "Theorem 7.2 is false about shapes, see below",
            )


# Table 2: the smallest ε of Smooth Laplace.

_TABLE_2 = (
    ("0.05", "0.01", 0.105, "0.005"),
    ("0.05", "0.1", 1.01, "0.005"),
    ("0.05", "0.2", 1.932, "0.005"),
    ("0.0005", "0.01", 0.15, "0.0005"),
    ("0.0005", "0.1", 1.45, "0.0005"),
    ("0.0005", "0.2", 2.13, "0.0005"),
)
"""δ as printed, α, the printed ε, and the δ that the printed ε belongs to."""


def _least_epsilons() -> Iterator[Stated]:
    for printed, alpha, published, delta in _TABLE_2:
        ours = float(smallest_epsilon(alpha=Fraction(alpha), delta=Fraction(delta)))
        notes = [
            *([f"the paper heads it δ = {printed}"] if printed != delta else []),
            *(["the paper's last entry is a misprint"] if abs(ours - published) > 0.01 else []),
        ]
        yield Stated(
            source="Table 2",
            quantity="least_epsilon",
            what=f"smallest ε of smooth-laplace, α={alpha}, δ={delta}",
            published=published,
            ours=ours,
            about={"alpha": float(alpha), "delta": float(delta)},
            note="; ".join(notes),
        )


# Figure 1: how peaked a belief about a size may become.


def _beliefs() -> Iterator[Stated]:
    """The straight line of the figure, and the steps of whole workers."""
    guarantee = EmployerEmployee(definition="strong", alpha=ALPHA, epsilon=EPSILON)
    for other in (110, 121, 133, 200):
        odds = size_odds(guarantee, smaller=100, larger=other)
        slope = float(EPSILON) / log1p(float(ALPHA))
        yield Stated(
            source="Figure 1",
            quantity="log_odds",
            what=f"logarithm of the odds between 100 and {other} workers, α={plain(ALPHA)}, ε={plain(EPSILON)}",
            published=slope * log(other / 100),
            ours=float((odds.steps or 0) * EPSILON),
            about={"one": 100, "other": other, "alpha": float(ALPHA), "epsilon": float(EPSILON)},
            note="the paper's slope ε/ln(1+α); whole workers take whole steps",
        )


# Figure 2 and Section 6: the data, whose economy here is synthetic.

_LARGE = 1000


def _sensitivity(tabulated: Tabulated) -> Iterator[Stated]:
    cells = tabulated.workloads[1].cells
    found = sensitivity(cells, NoFormalGuarantee(statement=""))
    if found is None:
        return
    some = cells["count"][cells["count"] > 0]
    large = int((tabulated.contributions.sizes >= _LARGE).sum())
    about = {"workload": 1}
    yield Stated(
        source="Figure 2",
        quantity="share_of_largest",
        what="share of a cell in its largest establishment, in half of the cells or more",
        published=0.65,
        ours=found.share[len(found.share) // 2],
        relation="at least",
        about=about,
    )
    yield Stated(
        source="Section 6",
        quantity="cells_below_1000",
        what="share of cells with fewer than 1,000 jobs",
        published=0.93,
        ours=float(np.mean(some < _LARGE)),
        relation="at least",
        about=about,
    )
    for relation, published in (("at least", 740.0), ("at most", 815.0)):
        yield Stated(
            source="Section 6",
            quantity="establishments_of_1000",
            what="establishments with 1,000 workers or more",
            published=published,
            ours=float(large),
            relation=relation,
        )


# Theorems 7.1 and 7.2 on shapes, and 7.5 on workers: not as printed.

_SHAPES = ((90, 10), (98, 2))
"""Women and men of 100 workers: shares within a factor of 1.1."""


def _shapes() -> Iterator[Stated]:
    """Two workforces of one size are no neighbours: one is reached from the other by additions and removals."""
    moved = _SHAPES[1][0] - _SHAPES[0][0]
    for name, (_, promised) in METHODS.items():
        steps = workforce_steps(promised, size=100, added=moved, removed=moved)
        bound = loss(promised, steps).epsilon
        ours = exact_loss(name, *_SHAPES)
        yield Stated(
            source="Theorem 7.1" if promised.definition == "strong" else "Theorem 7.2",
            quantity="shape_loss",
            what=f"{name}: loss between 90 and 98 women of 100, α={plain(ALPHA)}, ε={plain(EPSILON)}",
            published=float(EPSILON),
            ours=ours,
            relation="at most",
            about={"method": name, "alpha": float(ALPHA), "epsilon": float(EPSILON), "steps": steps},
            note=f"erratum: up to {steps} steps, so {plain(bound)}, and not ε",
        )


def _parallel() -> Iterator[Stated]:
    """A strong neighbour may add ten men where there is one, among 100 workers."""
    yield Stated(
        source="Theorem 7.5",
        quantity="parallel_loss",
        what=f"each worker cell at the whole ε={plain(EPSILON)}: 1 or 11 men beside 99 women, one strong step",
        published=float(EPSILON),
        ours=exact_loss(PARALLEL, (99, 1), (99, 11)),
        relation="at most",
        about={"alpha": float(ALPHA), "epsilon": float(EPSILON)},
        note="erratum: no parallel composition over workers; vector-pareto takes all cells as one output",
    )
