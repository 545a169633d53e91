"""What other parameters would do to errors: computed from the methods alone, nothing is charged and nothing is read."""

from fractions import Fraction
from math import inf, nan

from pydantic import BaseModel, Field

from sfumato.errors import SfumatoError
from sfumato.methods.method import Method
from sfumato.methods.registry import KEYED, METHODS, build
from sfumato.serve.errors import RefusedError
from sfumato.serve.page.lines import draw_lines
from sfumato.serve.page.writing import figure

ALPHAS = (Fraction(1, 2), Fraction(1), Fraction(2))
EPSILONS = tuple(Fraction(step) for step in ("1/4", "1/2", "3/4", "1", "3/2", "2", "3", "4"))
"""Multiples of the parameters that are asked for."""
WIDEST = 10
"""How many times the middle error may be in a chart."""


class Expected(BaseModel):
    """The mean absolute error of a cell at some parameters; nothing where the method does not exist there."""

    alpha: float
    epsilon: float
    error: float | None


class WhatIf(BaseModel):
    """Expected errors around some parameters."""

    method: str
    alpha: float
    epsilon: float
    size: int = Field(description="workers in the largest establishment of the cell, who are all its jobs")
    points: list[Expected]

    @property
    def alphas(self) -> list[float]:
        """The alphas, ascending."""
        return sorted({point.alpha for point in self.points})

    @property
    def epsilons(self) -> list[float]:
        """The epsilons, ascending."""
        return sorted({point.epsilon for point in self.points})

    def error(self, alpha: float, epsilon: float) -> float | None:
        """The error at one point."""
        return next(one.error for one in self.points if (one.alpha, one.epsilon) == (alpha, epsilon))

    @property
    def cut(self) -> float | None:
        """The error above which points would press all others flat in a chart; None where there are no such."""
        known = sorted(point.error for point in self.points if point.error is not None)
        most = WIDEST * known[len(known) // 2] if known else 0.0
        return most if known and known[-1] > most else None


def what_if(method: str, alpha: Fraction, epsilon: Fraction, delta: Fraction, size: int) -> WhatIf:
    """The expected errors of a cell at multiples of the parameters."""
    if method in KEYED or method not in METHODS:
        formal = ", ".join(name for name in METHODS if name not in KEYED)
        raise RefusedError("method", expected=f"one of {formal}", found=method, do="choose one of them")
    return WhatIf(
        method=method,
        alpha=float(alpha),
        epsilon=float(epsilon),
        size=size,
        points=[
            Expected(
                alpha=float(a * alpha),
                epsilon=float(e * epsilon),
                error=_error(method, a * alpha, e * epsilon, delta, size),
            )
            for a in ALPHAS
            for e in EPSILONS
        ],
    )


def _error(name: str, alpha: Fraction, epsilon: Fraction, delta: Fraction, size: int) -> float | None:
    options = {"delta": delta} if name == "smooth-laplace" else {}
    try:
        method: Method = build(name, alpha=alpha, epsilon=epsilon, options=options)
    except SfumatoError:
        return None
    planned = method.planned_error()
    return planned.floor if size <= planned.floor_size else max(planned.floor, (planned.share or 0.0) * size)


def chart(found: WhatIf) -> str:
    """Errors by epsilon, a line for every alpha."""
    most = inf if found.cut is None else found.cut

    def shown(alpha: float, epsilon: float) -> float:
        error = found.error(alpha, epsilon)
        return nan if error is None or error > most else error

    series = [(f"α = {figure(alpha, 6)}", [shown(alpha, one) for one in found.epsilons]) for alpha in found.alphas]
    return draw_lines(
        series,
        [figure(epsilon, 6) for epsilon in found.epsilons],
        title="Expected error in jobs, by ε",
        name=f"Expected error of {found.method} by epsilon, for three alphas",
    )
