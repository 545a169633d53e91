"""What was published, and what this package aims at: figures to print beside measured ones, never results.

Source of the published figures: S. Haney, A. Machanavajjhala, J. M. Abowd, M. Graham, M. Kutzbach, L. Vilhuber,
"Utility Cost of Formal Privacy for Releasing National Employer-Employee Statistics", SIGMOD 2017, section 10.1. The
paper gives bounds in words and curves without numbers; only the words are here. Its workload 3 divides ε by 10, ours by
the 8 worker cells that sex and education make in the synthetic economy.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from sfumato.reproduce.workloads import ALL

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
            quantity="share_within_10_points",
            workload=1,
            method=method,
            alpha=BASE_ALPHA,
            epsilon=BASE_EPSILON,
            relation="about",
            value=value,
        )
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
)
"""What the methods of this package are meant to reach on the same work."""
LEAST_GAIN = 1.8
"""Smooth Pareto is to be at least this many times better than Smooth Laplace at the paper's baseline."""
