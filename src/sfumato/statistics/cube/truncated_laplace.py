"""Capped two-sided geometric noise in every cell of a cube, and what it guarantees; docs/methods/hypercube.md."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np

from sfumato.arrays import Flags
from sfumato.errors import MethodError
from sfumato.noise.geometric import TruncatedGeometric, smallest_cap
from sfumato.noise.randomness import Randomness
from sfumato.noise.refinement import precise
from sfumato.privacy.guarantee import EmployerEmployee, Guarantee, NoFormalGuarantee, at_most
from sfumato.statistics.cube.section import ControlSection, CubeSection, table_name

_DIGITS = 60
_KEPT = Decimal(1).scaleb(-12)
_CHUNK = 1 << 20
SHARED_DRAWS = (
    "one draw of noise changed the number of records of a cell and, times an average, its weighted number, so that one "
    "less a multiple of the other has no noise"
)
"""Why a cube whose columns share their draws has no guarantee; docs/methods/hypercube.md has the attack."""


@dataclass(frozen=True, kw_only=True)
class ControlNoise:
    """How one control is perturbed."""

    by: tuple[str, ...]
    counts: TruncatedGeometric | None
    """None for an exact control."""
    weights: TruncatedGeometric | None = None
    """Of weighted counts, where they have noise of their own."""

    @property
    def name(self) -> str:
        """What messages and statements call the table."""
        return table_name(self.by)


@dataclass(frozen=True, kw_only=True)
class TruncatedLaplace:
    """The noise of a cube and of its controls, and what is charged for all of it.

    `counts` is the noise of unweighted counts. Weighted counts get as much in units of an average weight, drawn anew,
    which the guarantee does not cover; or, with `weights`, noise that hides a record of the largest weight. Records
    without weights have no weighted counts: a second draw of the count would cost ε once more.
    """

    name: ClassVar[str] = "truncated-laplace"
    alpha: Fraction
    """The budget's, which plays no part."""
    counts: TruncatedGeometric
    weights: TruncatedGeometric | None = None
    controls: tuple[ControlNoise, ...] = ()
    empty_cells: Fraction = field(default=Fraction(1))
    weight_unit: int = 1
    """What weights are multiples of, where they have noise of their own."""
    further: int = field(default=0, repr=False)  # ledgers name questions by the text, and older ones lack it
    """How many columns get as much noise as the counts, in averages: weighted counts without `weights`, measures."""
    shared: bool = field(default=False, repr=False)
    """Whether these columns get the very draws of the counts: then one less a multiple of another has no noise."""

    @property
    def strict(self) -> bool:
        """Whether the guarantee also covers weighted counts."""
        return self.weights is not None

    @property
    def exact_controls(self) -> tuple[ControlNoise, ...]:
        """The controls that are disclosed as they are."""
        return tuple(control for control in self.controls if control.counts is None)

    def in_order(self) -> "TruncatedLaplace":
        """The same noise with controls in one order, however they are written."""
        controls = [replace(control, by=tuple(sorted(control.by))) for control in self.controls]
        return replace(self, controls=tuple(sorted(controls, key=lambda control: control.by)))

    def guarantee(self) -> Guarantee:
        """What all columns reveal together: nothing is bounded where they share their draws."""
        return NoFormalGuarantee(statement=SHARED_DRAWS) if self.shared else self.spends()

    def spends(self) -> EmployerEmployee:
        """For one record, or one unit of several, more or less, from the parameters alone: all ε and δ add up.

        Exact controls are outside of it, and so are weighted counts whose noise is in average weights.
        """
        spent = [noise for noise in self._spent() if noise is not None]
        return EmployerEmployee(
            definition="individuals",
            alpha=self.alpha,
            epsilon=sum((noise.epsilon for noise in spent), self.cost_of_dropping),
            delta=sum((noise.delta_bound() for noise in spent), Fraction(0)),
        )

    @cached_property
    def cost_of_dropping(self) -> Fraction:
        """By how much ε rises because some empty cells get no noise: ln max(1/s, (1 − s)/ΠP(0) + s), rounded up.

        A cell that is 0 may be empty and dropped, which a cell with a record never is. It is then 0 in every column, so
        the product is over all of them. Which cells were dropped is not told: calibration treats all alike. A unit may
        be the only one in as many cells as are counted of its records, and then it is as many times as much.
        """
        if self.empty_cells == 1:
            return Fraction(0)
        with localcontext(precise(_DIGITS)):
            kept = Decimal(self.empty_cells.numerator) / Decimal(self.empty_cells.denominator)
            unchanged = _unchanged(self.counts) ** (1 + self.further)
            if self.weights is not None:
                unchanged *= _unchanged(self.weights)
            factor = max(1 / kept, (1 - kept) / unchanged + kept)
            return self.counts.sensitivity * Fraction(factor.ln().quantize(_KEPT, rounding=ROUND_CEILING))

    def perturbed_cells(self, empty: Flags, randomness: Randomness) -> Flags:
        """The cells that get noise: all that are not empty, and of the others a share drawn by chance."""
        if self.empty_cells == 1:
            return np.ones(empty.shape, dtype=np.bool_)
        # Rounded up: a little more is kept, and the stated ε holds.
        below = -(-self.empty_cells.numerator * 2**64 // self.empty_cells.denominator)
        chosen = ~empty.ravel()
        for start in range(0, len(chosen), _CHUNK):
            part = chosen[start : start + _CHUNK]
            part |= randomness.words(len(part)) <= np.uint64(below - 1)
        return chosen.reshape(empty.shape)

    def _spent(self) -> Iterator[TruncatedGeometric | None]:
        yield from (self.counts, self.weights)
        for control in self.controls:
            yield from (control.counts, control.weights)


def _unchanged(noise: TruncatedGeometric) -> Decimal:
    """P(J = 0), to the digits of the context."""
    ratio = (-Decimal(noise.epsilon.numerator) / (Decimal(noise.epsilon.denominator) * noise.sensitivity)).exp()
    return (1 - ratio) / (1 + ratio - 2 * ratio ** (noise.cap + 1))


def cube_method(section: CubeSection, *, alpha: Fraction, weighted: bool = True) -> TruncatedLaplace:
    """The noise of a cube and of its controls; `weighted` says whether records have weights.

    A cap that is not given is the least one whose δ is not above that of the cube's counts.
    """
    # A unit moves the counts of all cells together by as many as are kept of its records, each in one cell.
    kept = section.most_records or 1
    counts = TruncatedGeometric(epsilon=section.epsilon, cap=section.cap, sensitivity=kept)
    most = counts.delta()

    def noise(epsilon: Fraction, *, sensitivity: int = kept, cap: int | None = None) -> TruncatedGeometric:
        if cap is None and not 0 < most < 1:
            raise MethodError(
                "truncated-laplace",
                expected="a cap of the cube whose δ is above 0 and below 1, from which other caps can be worked out",
                found=f"cap = {section.cap:,} at epsilon = {at_most(section.epsilon)}, with δ = {most:g}",
                do=f"{'lower' if most == 0 else 'raise'} `cap`",
            )
        least = smallest_cap(epsilon=epsilon, delta=most, sensitivity=sensitivity) if cap is None else cap
        return TruncatedGeometric(epsilon=epsilon, cap=least, sensitivity=sensitivity)

    def control(described: ControlSection) -> ControlNoise:
        """Of a table that is taken from the records; public totals have no noise and disclose nothing."""
        if described.epsilon is None:
            return ControlNoise(by=described.by, counts=None)
        return ControlNoise(
            by=described.by,
            counts=noise(described.epsilon, cap=described.cap),
            weights=None if largest is None else noise(described.epsilon, sensitivity=largest),
        )

    # As the engine rounds a weight, halves upwards.
    unit, most_weight = section.weight_unit, section.largest_weight
    largest = None if most_weight is None else kept * ((2 * most_weight + unit) // (2 * unit))
    return TruncatedLaplace(
        alpha=alpha,
        counts=counts,
        weights=None if largest is None else noise(section.epsilon, sensitivity=largest),
        controls=tuple(control(described) for described in section.controls if described.totals is None),
        empty_cells=section.empty_cells,
        weight_unit=unit,
        further=len(section.measures) + (1 if weighted and largest is None else 0),
        shared=section.draws == "shared",
    )
