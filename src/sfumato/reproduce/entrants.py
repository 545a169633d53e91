"""The methods that are compared, and which of them exist where."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from sfumato.cells import Cells
from sfumato.errors import MethodError
from sfumato.methods.registry import build
from sfumato.noise.laplace import RoundedLaplace
from sfumato.noise.randomness import Randomness
from sfumato.reproduce.workloads import Workload


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
