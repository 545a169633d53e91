"""Smooth Gamma: noise of density proportional to 1/(1 + z⁴), scaled to the largest establishment."""

from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction
from functools import cached_property
from math import sqrt
from typing import ClassVar

from sfumato.errors import MethodError
from sfumato.methods.parameters import (
    GRID,
    MARGIN,
    PRECISE,
    decimal,
    largest_alpha_to,
    log_growth,
    on_grid,
    smallest_from,
)
from sfumato.methods.smooth import Smooth
from sfumato.noise.quartic import Quartic


@dataclass(frozen=True, kw_only=True)
class SmoothGamma(Smooth):
    """Pure (α, ε) privacy as published: scale 16·S/ε, which needs 1 + α ≤ e^(ε/4).

    With `tight` the scale is the least one that keeps the loss within ε, which needs 1 + α < e^(ε/3) only.
    docs/methods/smooth-gamma.md has the proofs.

    >>> published = SmoothGamma(alpha=Fraction("0.1"), epsilon=Fraction(1))
    >>> tight = SmoothGamma(alpha=Fraction("0.1"), epsilon=Fraction(1), tight=True)
    >>> round(published.error_in_scales, 2), round(tight.error_in_scales, 2)
    (11.31, 1.91)
    """

    name: ClassVar[str] = "smooth-gamma"
    description: ClassVar[str] = (
        "random noise from a symmetric distribution with heavy tails (Smooth Gamma) was added to every count and "
        "rounded to whole jobs"
    )

    tight: bool = False

    @cached_property
    def scale(self) -> Fraction:
        """k, in units of S = max(αx, 1)."""
        share = self.epsilon / self.shares
        if not _admissible(self.alpha, share, self.tight):
            raise self._inadmissible()
        return least_scale(alpha=self.alpha, epsilon=share) if self.tight else 16 / share

    @cached_property
    def noise(self) -> Quartic:
        """The noise whose scale is a whole multiple of k/q, where α = p/q."""
        return Quartic(unit=self.scale / self.alpha.denominator)

    @property
    def error_in_scales(self) -> float:
        """E|Z|/S before rounding: k/√2."""
        return float(self.scale) / sqrt(2)

    def _inadmissible(self) -> MethodError:
        steps, sign = (3, ">") if self.tight else (4, "≥")
        times = f"{steps * self.shares} · "
        with localcontext(PRECISE):
            bound = steps * self.shares * log_growth(self.alpha)
            widest = (decimal(self.epsilon) / (steps * self.shares)).exp() - 1
            fewer = int(decimal(self.epsilon) / (steps * log_growth(self.alpha)))
        least = smallest_from(bound, lambda epsilon: _admissible(self.alpha, epsilon / self.shares, self.tight))
        remedies = [f"epsilon = {least} or more"]
        finest = largest_alpha_to(widest, lambda alpha: _admissible(alpha, self.epsilon / self.shares, self.tight))
        if finest is not None:
            remedies.append(f"alpha = {finest} or less")
        if self.shares > 1 and fewer >= 1 and _admissible(self.alpha, self.epsilon / fewer, self.tight):
            remedies.append(f"at most {fewer} worker cells")
        if not self.tight and _admissible(self.alpha, self.epsilon / self.shares, True):
            remedies.append("tight = true")
        return MethodError(
            self.name,
            expected=f"epsilon {sign} {times}ln(1 + alpha) = {times}ln({float(1 + self.alpha):g}) = {bound:.4g}",
            found=f"epsilon = {float(self.epsilon):g}",
            do="choose " + ", or ".join(remedies),
        )


def least_scale(*, alpha: Fraction, epsilon: Fraction) -> Fraction:
    """The least k, rounded up to whole billionths, at which one neighbour step loses at most ε.

    A scale ratio of r allows a shift of at most [(r − e^−ε)(e^(ε/3) − r)³]^¼ scales, and the ratios 1 and 1 + α are
    the worst. The rounded k is checked to keep both to sixty digits.
    """
    with localcontext(PRECISE):
        room = _room(alpha, epsilon)
        scale = on_grid(1 / room.sqrt().sqrt(), ROUND_CEILING)
        while decimal(scale) ** 4 * room < 1 + MARGIN:
            scale += Fraction(1, GRID)
    return scale


def _room(alpha: Fraction, epsilon: Fraction) -> Decimal:
    """The fourth power of the shift, in scales, that the worst ratio of scales leaves room for."""
    limit = decimal(epsilon)
    cube_root = (limit / 3).exp()
    return min((r - (-limit).exp()) * (cube_root - r) ** 3 for r in (Decimal(1), 1 + decimal(alpha)))


def _admissible(alpha: Fraction, epsilon: Fraction, tight: bool) -> bool:
    with localcontext(PRECISE):
        if tight:
            # Asked of the room itself, so that a scale exists that 64 bits can hold.
            return log_growth(alpha) * 3 + MARGIN < decimal(epsilon) and _room(alpha, epsilon) > Decimal("1e-40")
        # An ε equal to 4·ln(1+α) does not exist: the one is rational and the other is not.
        return 4 * log_growth(alpha) + MARGIN < decimal(epsilon)
