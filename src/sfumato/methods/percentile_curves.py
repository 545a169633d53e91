"""The curves that percentiles can be read from, and which of them suits cells of a given size."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import scipy

from sfumato.arrays import Floats
from sfumato.errors import MethodError
from sfumato.methods.adaptive_curve import AdaptiveCurve
from sfumato.methods.chosen_bins import ChosenBins
from sfumato.methods.cumulative_curve import Curve
from sfumato.methods.log_normal_fit import BETWEEN, SPREAD_OF_SPREADS, WITHIN, LogNormalFit
from sfumato.methods.public_bins import PublicBins
from sfumato.methods.summed_curve import IsotonicCurve, PlainCurve
from sfumato.methods.tree_curve import TreeCurve

CurveName = Literal["adaptive", "isotonic", "hierarchical", "exponential", "plain"]
_CLASSES: Mapping[CurveName, Any] = MappingProxyType(
    {
        "adaptive": AdaptiveCurve,
        "isotonic": IsotonicCurve,
        "hierarchical": TreeCurve,
        "exponential": ChosenBins,
        "plain": PlainCurve,
    }
)
CURVES: tuple[CurveName, ...] = tuple(_CLASSES)
"""Every curve by its name in a release file."""

_MEANS, _SPREADS = 15, 5
"""How many means, and how many spreads, the planned cells have."""


@dataclass(frozen=True, kw_only=True)
class PlannedCurve:
    """What one curve promises for cells of one size."""

    curve: CurveName
    size: int
    errors: tuple[float, ...]
    """The expected mean absolute relative error of each percentile."""

    @property
    def error(self) -> float:
        """The mean over the percentiles."""
        return sum(self.errors) / len(self.errors)


def curve_named(name: CurveName, *, bins: PublicBins, at: Sequence[Fraction], epsilon: Fraction) -> Curve:
    """The named curve at these percentiles, with so much ε for each cell."""
    if name not in _CLASSES:
        raise MethodError(
            "curve of percentiles", expected=f"one of {', '.join(CURVES)}", found=repr(name), do="name one of these"
        )
    curve: Curve = _CLASSES[name](bins=bins, at=tuple(at), epsilon=epsilon)
    return curve


def bins_of_guess(
    name: CurveName,
    *,
    median: Fraction | int,
    sigma: Fraction,
    number: int,
    minimum: int | None = None,
    maximum: int | None = None,
) -> PublicBins:
    """The public bins of a guess that suit a curve.

    The adaptive curve reaches far beyond the guess: a tail without people costs it little. All others would spread
    their noise over bins that are mostly empty.
    """
    made = PublicBins.of_guess if name == "adaptive" else PublicBins.equal_mass
    return made(median=median, sigma=sigma, number=number, minimum=minimum, maximum=maximum)


def planned(name: CurveName, *, bins: PublicBins, at: Sequence[Fraction], epsilon: Fraction, size: int) -> PlannedCurve:
    """The error in log-normal cells of a size, as the bins lead one to expect them: no data are read.

    >>> bins = PublicBins.equal_mass(median=45_000, sigma=Fraction("0.8"), number=20, minimum=0, maximum=10**6)
    >>> plan = planned("adaptive", bins=bins, at=[Fraction(50)], epsilon=Fraction(3, 2), size=100)
    >>> 0.02 < plan.error < 0.03
    True
    """
    usual, spread = bins.guess
    means, spreads = (places.ravel() for places in np.meshgrid(_middles(_MEANS), _middles(_SPREADS)))
    cells = LogNormalFit(
        bins=bins,
        people=np.full(len(means), float(size)),
        mean=usual + BETWEEN * spread * means,
        spread=WITHIN * spread * np.exp(SPREAD_OF_SPREADS * spreads),
    )
    curve = curve_named(name, bins=bins, at=at, epsilon=epsilon)
    found = curve.percentiles(curve.expected(size * cells.shares))
    told = found.ends.side == 0
    told |= ~told.any(axis=0)
    errors = np.sqrt(2 / np.pi) * np.mean(found.likely, axis=0, where=told)
    return PlannedCurve(curve=name, size=size, errors=tuple(errors.tolist()))


def recommended(*, bins: PublicBins, at: Sequence[Fraction], epsilon: Fraction, size: int) -> list[PlannedCurve]:
    """Every curve at cells of this size, from the least expected error to the largest; nothing is spent by asking."""
    plans = [
        planned(name, bins=bins if name == "adaptive" else bins.even, at=at, epsilon=epsilon, size=size)
        for name in CURVES
    ]
    return sorted(plans, key=lambda plan: plan.error)


def _middles(number: int) -> Floats:
    """The middles of equal parts of a normal distribution."""
    middles: Floats = scipy.special.ndtri((np.arange(number) + 0.5) / number)
    return middles
