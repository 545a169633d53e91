"""What a calibration hands back: the cube's numbers, and how well they meet the controls."""

from dataclasses import dataclass
from typing import Literal

from sfumato.arrays import Integers

Calibration = Literal["least-squares", "raking"]


@dataclass(frozen=True, kw_only=True)
class Calibrated:
    """Calibrated numbers in whole units, so that every table summed from them adds up exactly."""

    values: Integers
    calibration: Calibration
    converged: bool
    """Whether every control is met: exactly by least squares, within the tolerance by raking."""
    cycles: int
    """Passes over the controls, or rounds of the bounded problem."""
    largest_gap: int
    """The largest difference between a sum and its control, in units."""
    change: float
    """The sum of squared changes, each divided by the cell's variance, in squared units."""
    unbounded_change: float | None = None
    """The same where cells may be negative, for comparison with the bounded problem."""

    @property
    def cost_of_bound(self) -> float:
        """By how much keeping cells from being negative adds to the quadratic change; 0 where it was not asked for."""
        return 0.0 if self.unbounded_change is None else self.change - self.unbounded_change
