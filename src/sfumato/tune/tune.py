"""The smallest epsilon that meets an accuracy; docs/tune.md says under which assumptions."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sfumato.errors import MethodError
from sfumato.methods.method import Method
from sfumato.methods.node_laplace import NodeLaplace
from sfumato.privacy.guarantee import Guarantee
from sfumato.reproduce.chance import Repeatable
from sfumato.tune.accuracy import Accuracy
from sfumato.tune.assumption import Assumption, cannot_tell

Build = Callable[[Fraction], Method]
"""The method at an epsilon; a MethodError where it does not exist."""

DRAWS = 100_000
"""A share of cells is found by drawing from the method itself: to within 0.3 points, 99 times in 100."""

LADDER = tuple(Fraction(digits) * Fraction(10) ** power for power in range(-5, 2) for digits in range(100, 1000))
"""Epsilons of three digits, from 0.001 to 9,990."""
_STRIDE = 45  # 140 rungs, each at most half as large again as the one before
_CURVE = (-6, 7)
_STEP = 1.3


@dataclass(frozen=True, kw_only=True)
class Point:
    """What one epsilon gives; `figure` is None where the method does not exist."""

    epsilon: Fraction
    figure: float | None
    """The mean error, as stated in jobs or as a share; or the share of cells within the limit."""
    meets: bool


@dataclass(frozen=True, kw_only=True)
class Tuned:
    """The smallest epsilon that meets the accuracy, and the curve around it."""

    accuracy: Accuracy
    assumption: Assumption
    method: Method
    epsilon: Fraction
    figure: float
    curve: tuple[Point, ...]

    @property
    def guarantee(self) -> Guarantee:
        """What a table protected with this epsilon reveals at most."""
        return self.method.guarantee()


def tune(build: Build, *, accuracy: Accuracy, largest_share: Fraction = Fraction(1), worker_cells: int = 0) -> Tuned:
    """Find the smallest epsilon of three digits that meets the accuracy under the assumption; no data are read."""
    assumption = Assumption(jobs=accuracy.jobs, largest_share=largest_share, worker_cells=worker_cells)

    def at(epsilon: Fraction) -> Point:
        try:
            method = build(epsilon)
        except MethodError:
            return Point(epsilon=epsilon, figure=None, meets=False)
        figure = measure(method, accuracy, assumption)
        return Point(epsilon=epsilon, figure=figure, meets=_meets(figure, accuracy))

    last = build(LADDER[-1])  # refuses parameters at which the method never exists
    if not at(LADDER[-1]).meets:
        raise cannot_tell(last, f"no epsilon up to {float(LADDER[-1]):g} meets: {accuracy}")
    # Some methods change their mechanism with epsilon, so that more of it may be worse: the first rung that will do is
    # looked for from below, and only between it and the one before is the interval halved.
    rungs = [*range(0, len(LADDER), _STRIDE), len(LADDER) - 1]
    high = next(rung for rung in rungs if at(LADDER[rung]).meets)
    low = max((rung for rung in rungs if rung < high), default=-1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if at(LADDER[middle]).meets else (middle, high)
    best = at(LADDER[high])
    assert best.figure is not None
    around = sorted({_digits(float(best.epsilon) * _STEP**step) for step in range(*_CURVE)} | {best.epsilon})
    return Tuned(
        accuracy=accuracy,
        assumption=assumption,
        method=build(best.epsilon),
        epsilon=best.epsilon,
        figure=best.figure,
        curve=tuple(at(epsilon) for epsilon in around),
    )


def measure(method: Method, accuracy: Accuracy, assumption: Assumption) -> float:
    """The mean error, or the share of cells within the limit, of the assumed cell."""
    if isinstance(method, NodeLaplace) and accuracy.relative:
        raise cannot_tell(method, "it leaves out large establishments, so a large cell may lose all its jobs")
    if accuracy.share is None:
        error = float(method.expected_error(assumption.cells(method, 1)).mean())
        return error / assumption.jobs if accuracy.relative else error
    copies = max(DRAWS // max(assumption.worker_cells, 1), DRAWS // 5)
    cells = assumption.cells(method, copies)
    # The same stream at every epsilon, so that the search is not led astray by chance.
    drawn = method.protect(cells, Repeatable(1, "tune"))["value"]
    return float(np.mean(np.abs(drawn - cells["count"]) <= accuracy.tolerance))


def _meets(figure: float, accuracy: Accuracy) -> bool:
    return figure <= float(accuracy.limit) if accuracy.share is None else figure >= float(accuracy.share)


def _digits(epsilon: float) -> Fraction:
    """An epsilon to two digits, for a chart."""
    return Fraction(f"{epsilon:.2g}")
