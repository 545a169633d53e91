"""Smooth Pareto: heavy-tailed noise scaled to the largest establishment of each cell."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

from sfumato.methods.pareto_calibration import Calibration, calibrate, worst_loss
from sfumato.methods.smooth import Smooth
from sfumato.noise.double_pareto import DoublePareto

__all__ = ["SmoothPareto", "worst_loss"]


@dataclass(frozen=True, kw_only=True)
class SmoothPareto(Smooth):
    """Pure (α, ε) privacy by double Pareto noise; docs/methods/smooth-pareto.md has the proofs.

    >>> SmoothPareto(alpha=Fraction("0.1"), epsilon=Fraction(2)).planned_error().floor_size
    10
    """

    name: ClassVar[str] = "smooth-pareto"
    description: ClassVar[str] = (
        "random noise from a symmetric distribution with heavy tails (Smooth Pareto) was added to every count and "
        "rounded to whole jobs"
    )

    @cached_property
    def calibration(self) -> Calibration:
        """The tail and the scale of the noise, public and exact."""
        return calibrate(alpha=self.alpha, epsilon=self.epsilon, shares=self.shares)

    @property
    def scale(self) -> Fraction:
        """k, in units of S = max(αx, 1)."""
        return self.calibration.scale

    @cached_property
    def noise(self) -> DoublePareto:
        """The noise whose scale is a whole multiple of k/q, where α = p/q."""
        return DoublePareto(unit=self.scale / self.alpha.denominator, tail=self.calibration.tail)

    @property
    def error_in_scales(self) -> float:
        """E|Z|/S before rounding."""
        return float(self.scale / (self.calibration.tail - 1))
