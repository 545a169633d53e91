"""Smooth Laplace: Laplace noise scaled to the largest establishment; needs a δ."""

from bisect import bisect_left
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

from sfumato.errors import MethodError
from sfumato.methods.parameters import MARGIN, PRECISE, decimal, largest_alpha_to, log_growth, smallest_from
from sfumato.methods.smooth import Smooth
from sfumato.noise.laplace import RoundedLaplace
from sfumato.privacy.guarantee import EmployerEmployee

LARGEST_DELTA = Fraction(1, 10)
LEAST_DELTA = Fraction(1, 10**30)


@dataclass(frozen=True, kw_only=True)
class SmoothLaplace(Smooth):
    """(α, ε, δ) privacy by Laplace noise of scale 2·S/ε, which needs ε ≥ 2·ln(1/δ)·ln(1+α).

    `delta` is the probability with which the bound may fail, for the whole table; worker cells share it as they share
    ε. The error does not depend on it. docs/methods/smooth-laplace.md has the proofs.

    >>> SmoothLaplace(alpha=Fraction("0.1"), epsilon=Fraction(4)).error_in_scales
    0.5
    """

    name: ClassVar[str] = "smooth-laplace"
    description: ClassVar[str] = (
        "random noise from the Laplace distribution (Smooth Laplace) was added to every count and rounded to whole jobs"
    )

    delta: Fraction = Fraction(1, 10**6)

    def __post_init__(self) -> None:
        if not isinstance(self.delta, Fraction) or not LEAST_DELTA <= self.delta <= LARGEST_DELTA:
            raise MethodError(
                self.name,
                expected=f"a fraction delta with {float(LEAST_DELTA):g} ≤ delta ≤ {float(LARGEST_DELTA):g}",
                found=f"delta = {self.delta}",
                do="choose a delta far below one over the number of jobs, such as 0.0000001, or a method without delta",
            )
        super().__post_init__()

    @cached_property
    def scale(self) -> Fraction:
        """k, in units of S = max(αx, 1)."""
        if not self._admissible(self.alpha, self.epsilon, self.shares):
            raise self._inadmissible()
        return 2 * self.shares / self.epsilon

    @cached_property
    def noise(self) -> RoundedLaplace:
        """The noise whose scale is a whole multiple of k/q, where α = p/q."""
        return RoundedLaplace(unit=self.scale / self.alpha.denominator)

    @property
    def error_in_scales(self) -> float:
        """E|Z|/S before rounding: k."""
        return float(self.scale)

    def cell_guarantee(self) -> EmployerEmployee:
        """What one cell by itself reveals at most; it has its share of δ too."""
        return replace(super().cell_guarantee(), delta=self.delta / self.shares)

    def _admissible(self, alpha: Fraction, epsilon: Fraction, shares: int) -> bool:
        return _admissible(alpha=alpha, epsilon=epsilon / shares, delta=self.delta / shares)

    def _most_shares(self) -> int:
        """The most worker cells that could share this ε and δ; the more there are, the less each can have."""
        return bisect_left(range(1, self.shares), True, key=lambda d: not self._admissible(self.alpha, self.epsilon, d))

    def _inadmissible(self) -> MethodError:
        d = self.shares
        with localcontext(PRECISE):
            tail = (1 / decimal(self.delta / d)).ln()
            bound = d * smallest_epsilon(alpha=self.alpha, delta=self.delta / d)
            widest = (decimal(self.epsilon) / (2 * d * tail)).exp() - 1
        published = bound > decimal(self.epsilon)
        times, among = (f"{d} · ", f"{d}/delta") if d > 1 else ("", "1/delta")
        least = smallest_from(bound, lambda epsilon: self._admissible(self.alpha, epsilon, d))
        remedies = [f"epsilon = {least} or more"]
        finest = largest_alpha_to(widest, lambda alpha: self._admissible(alpha, self.epsilon, d))
        if finest is not None:
            remedies.append(f"alpha = {finest} or less")
        if (fewer := self._most_shares()) > 0 and d > 1:
            remedies.append(f"at most {fewer} worker cells")
        likelier = _smallest_delta(self)
        if likelier is not None:
            remedies.append(f"delta = {likelier:f} or more")
        inequality = f"epsilon ≥ 2 · {times}ln({among}) · ln(1 + alpha) = {bound:.4g}"
        loss = exact_delta(alpha=self.alpha, epsilon=self.epsilon / d)
        return MethodError(
            self.name,
            expected=inequality if published else f"a delta of the noise of at most {float(self.delta / d):.3g} a cell",
            found=f"epsilon = {float(self.epsilon):g}" + ("" if published else f", at which it is {float(loss):.3g}"),
            do="choose " + ", or ".join(remedies),
        )


def smallest_epsilon(*, alpha: Fraction, delta: Fraction) -> Decimal:
    """The least ε the paper allows for one cell, 2·ln(1/δ)·ln(1+α)."""
    with localcontext(PRECISE):
        return 2 * (1 / decimal(delta)).ln() * log_growth(alpha)


def _admissible(*, alpha: Fraction, epsilon: Fraction, delta: Fraction) -> bool:
    with localcontext(PRECISE):
        enough = smallest_epsilon(alpha=alpha, delta=delta) + MARGIN < decimal(epsilon)
    return enough and exact_delta(alpha=alpha, epsilon=epsilon) < delta


def _smallest_delta(method: SmoothLaplace) -> Decimal | None:
    """The least δ of two digits at which the method exists; None where it would be no protection."""
    d, epsilon = method.shares, method.epsilon / method.shares
    with localcontext(PRECISE):
        published = (-decimal(epsilon) / (2 * log_growth(method.alpha))).exp()
        bound = d * max(published, decimal(exact_delta(alpha=method.alpha, epsilon=epsilon)))
    if bound > decimal(LARGEST_DELTA) * Decimal("0.9") or bound < decimal(LEAST_DELTA):
        return None
    return smallest_from(bound, lambda delta: _admissible(alpha=method.alpha, epsilon=epsilon, delta=delta / d))


def exact_delta(*, alpha: Fraction, epsilon: Fraction) -> Fraction:
    """The least δ that noise of scale 2·S/ε has at this ε, before rounding, a hair above it.

    It is ½·(1 − 1/R)·R^(−1/α)·(e^(−ε/(2α)) + e^(−3ε/(2α))) with R = 1 + α; the paper's inequality implies that it is at
    most δ for small α, but not for all.
    """
    with localcontext(PRECISE):
        a, e = decimal(alpha), decimal(epsilon)
        tails = (-e / (2 * a)).exp() + (-3 * e / (2 * a)).exp()
        found = a / (2 * (1 + a)) * (-log_growth(alpha) / a).exp() * tails
        return Fraction(found * (1 + MARGIN))
