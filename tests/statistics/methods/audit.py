"""The privacy loss of a noise found by search over neighbours and outcomes, without any formula that calibrates it."""

from fractions import Fraction
from typing import Protocol

import numpy as np

from sfumato.arrays import Floats, Integers

SIZES = [*range(25), 66, 67, 99, 100, 101, 200]


class Noise(Protocol):
    def log_density(self, z: Floats, multiples: Floats, /) -> Floats: ...
    def log_mass(self, j: Integers, multiples: Integers, /) -> Floats: ...


def density_loss(noise: Noise, alpha: Fraction) -> float:
    """The greatest |log density ratio| over shifts up to S, scale ratios up to 1+α, and outcomes, at S = 1."""
    one = np.array(1.0)
    magnitudes = np.concatenate([[0], np.geomspace(1e-3, 1e3, 120), np.geomspace(1e4, 1e200, 30)])
    shifts = np.linspace(0, 1, 17)
    outcomes = np.concatenate([-magnitudes, magnitudes, shifts, -shifts])[None, None, :]
    ratios = np.linspace(1, 1 + float(alpha), 17)[None, :, None]
    before = noise.log_density(outcomes, one)
    after = noise.log_density(outcomes - shifts[:, None, None], ratios)
    return float(np.abs(before - after).max())


def money_loss(noise: Noise, alpha: Fraction, cap: int) -> float:
    """The greatest |log probability ratio| over neighbouring totals and published whole numbers, in money.

    One establishment pays e and then e + t ≤ max((1+α)e, e + cap); the largest of the cell may be another. Payrolls are
    about those where the two branches meet, e = cap/α, at which t is both, and far from there; outcomes are every
    twentieth of a cap about both totals, these themselves and the tail.
    """
    p, q = alpha.numerator, alpha.denominator
    meet = cap * q // p
    tail = np.unique(np.geomspace(5 * cap, 2**60, 200).astype(np.int64))
    near = np.arange(-100, 101) * (cap // 20)
    worst = 0.0
    for pays in (0, 1, cap, meet // 2, meet - 1, meet, meet + 1, 3 * meet, 100 * meet):
        for other in (0, pays, pays + 1, 2 * pays):
            largest = max(pays, other)
            most = max(pays * p // q, cap)
            for shift in (1, cap // 2, cap, most):
                if pays + shift > max(pays + pays * p // q, pays + cap):
                    continue
                grown = max(largest, pays + shift)
                scaled = near * max(1, most // cap)
                published = np.concatenate([-tail, scaled, scaled + shift, [0, shift], tail])
                before = noise.log_mass(published, np.array(max(p * largest, q * cap)))
                after = noise.log_mass(published - shift, np.array(max(p * grown, q * cap)))
                worst = max(worst, float(np.abs(before - after).max()))
    return worst


def steps(alpha: Fraction, largest: int) -> set[tuple[int, int]]:
    """Every (shift of the count, new largest) that one establishment of a cell can cause by one step."""
    found = set()
    for before in range(largest + 1):
        for after in range(before + 1, max(int((1 + alpha) * before), before + 1) + 1):
            found.add((after - before, max(largest, after)))
    return found


def integer_loss(noise: Noise, alpha: Fraction, sizes: list[int]) -> float:
    """The greatest |log probability ratio| over neighbouring pairs of counts and published whole numbers."""
    p, q = alpha.numerator, alpha.denominator
    tail = np.unique(np.geomspace(200, 2**60, 60).astype(np.int64))
    # Only the distance from the count matters, so the count itself may be taken as zero.
    published = np.concatenate([-tail, np.arange(-200, 201), tail])
    worst = 0.0
    for largest in sizes:
        before = noise.log_mass(published, np.array(max(p * largest, q)))
        for shift, grown in steps(alpha, largest):
            after = noise.log_mass(published - shift, np.array(max(p * grown, q)))
            worst = max(worst, float(np.abs(before - after).max()))
    return worst


def hockey_stick(noise: Noise, alpha: Fraction, epsilon: float, sizes: list[int]) -> float:
    """The greatest Σ max(P(j) − e^ε·P′(j), 0) over neighbouring pairs of counts, in both directions."""
    p, q = alpha.numerator, alpha.denominator
    worst = 0.0
    for largest in sizes:
        reach = 60 * max(p * largest, q) // q + 60
        published = np.arange(-reach, reach + 1)
        before = np.exp(noise.log_mass(published, np.array(max(p * largest, q))))
        for shift, grown in steps(alpha, largest):
            after = np.exp(noise.log_mass(published - shift, np.array(max(p * grown, q))))
            for one, other in ((before, after), (after, before)):
                worst = max(worst, float(np.maximum(one - np.exp(epsilon) * other, 0).sum()))
    return worst
