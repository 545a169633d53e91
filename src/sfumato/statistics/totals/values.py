"""Values of those who asked, perturbed once by key and then added plainly; docs/methods/perturbed-values.md."""

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import ceil, log, sqrt
from typing import ClassVar, Literal

import numpy as np
import scipy

from sfumato.arrays import Floats
from sfumato.cells import Cells
from sfumato.errors import MethodError
from sfumato.method import CONFIDENCE, NOT_AVAILABLE, of_table
from sfumato.noise.factors import ONE
from sfumato.noise.randomness import Randomness
from sfumato.privacy.guarantee import NoFormalGuarantee
from sfumato.statistics.totals.calibration import ATTACKS, risks
from sfumato.statistics.totals.perturbation import Moves, NoiseSum, Shape
from sfumato.statistics.totals.quality import KeyedFigures, as_changed, blur, published_cells, whole
from sfumato.statistics.totals.question import ValueNoise

CONTRIBUTORS = 3
"""How many of the largest that asked are looked at, for the confidential report alone."""
_STEP = 5  # percent: finer figures would tell the magnitude


@dataclass(frozen=True, kw_only=True)
class PerturbedValues(KeyedFigures):
    """Each value of a unit that asked is moved by a keyed share of it, once and for ever; all tables add up.

    This is approach III of Chipperfield and others (2019), whose totals are those of approach I, a file of perturbed
    records that is not published here. Magnitude and spread are secrets.
    """

    name: ClassVar[str] = "perturbed-values"
    guarded: ClassVar[bool] = False
    """Whether answers that differ by few units must be kept apart: here such a difference is a perturbed value."""
    suppress: ClassVar[int] = 0
    parity: ClassVar[bool] = False
    adding_up: ClassVar[str] = (
        " Values were changed one by one and then added, so that published cells add up to the published totals, up to "
        "the rounding of weighted figures."
    )
    for_others: ClassVar[str] = "the values of all others are added as they are, and so are numbers of records"

    statistic: Literal["total", "mean", "count"] = of_table("total")
    levels: int = of_table(1)
    magnitude: Fraction = field(default=Fraction("0.21"), repr=False)
    """The share by which a value is moved, up or down, times noise around one."""
    spread: Fraction = field(default=Fraction("0.3"), repr=False)
    decimals: int = of_table(0)
    """Of a mean: values are published in units of 10^−decimals."""

    def __post_init__(self) -> None:
        rules = (
            (0 < self.spread < 1 and (self.spread * ONE).denominator == 1, "spread", "above 0, below 1, in millionths"),
            (0 < self.magnitude * (1 + self.spread) < 1, "magnitude", "above 0, and below 1 / (1 + spread)"),
            (0 <= self.decimals <= 6, "decimals", "a whole number from 0 to 6"),
        )
        for holds, option, expected in rules:
            if not holds:
                # The value is a secret, and so is how it is wrong.
                raise MethodError(
                    f"{self.name}, {option}", expected=expected, found="another value", do="correct the release file"
                )

    @property
    def contributors(self) -> int:
        """How many of the largest of those who asked are told of every cell."""
        return CONTRIBUTORS

    @property
    def noise(self) -> ValueNoise:
        """What is done to each value."""
        return ValueNoise(magnitude=self.magnitude, spread=self.spread)

    @property
    def description(self) -> str:
        """What is done to the figures, as a clause of the privacy statement."""
        return (
            "the values of units that asked to be protected were moved up or down by a share that follows from a "
            "secret key, once and for ever, and then added; numbers of records are published as they are, and no cell "
            "is withheld"
        )

    def guarantee(self) -> NoFormalGuarantee:
        """None that could be proved; said plainly."""
        return NoFormalGuarantee(
            statement="every value of a unit that asked was changed by a share of it that follows from a secret key, "
            "the same in every table and period. Nothing about it can be proved; what can be computed is how often "
            f"stated attacks succeed: {self._risks}"
        )

    @cached_property
    def _risks(self) -> str:
        """For a unit that is alone: beside it, what others are moved by may offset its own move.

        Of values with one sign, larger units and differences of cells are nearer to the magnitude on average.
        """
        words = []
        for attack in (ATTACKS[0], ATTACKS[2]):
            risk = risks(Shape(sizes=(1.0,)), [float(self.magnitude)], attack, spread=float(self.spread))[0]
            nobody = self.magnitude * (1 - self.spread) > Fraction(str(attack.within))  # the least move of all
            most = "no case" if nobody else f"at most {max(_STEP * ceil(100 * risk / _STEP), _STEP)} % of cases"
            words.append(f"within {attack.within:.0%} in {most}")
        return (
            "someone who sees the value of such a unit alone, in a cell of its own or as the difference of two cells, "
            f"comes {' and '.join(words)}. Where other units that asked are seen with it, what they are moved by may "
            "offset its own move"
        )

    @property
    def noise_options(self) -> tuple[object, ...]:
        """Everything that decides by how much a value is moved: one set of data must never be perturbed by two."""
        return ("values", self.magnitude, self.spread)

    def expected_error(self, cells: Cells) -> Floats:
        """The mean size of the perturbation over all keys, from those who asked: confidential."""
        if self.statistic == "count":
            return np.zeros(len(cells))
        moves = self.moves(cells)
        noise = NoiseSum(
            own=moves.scales, other=np.zeros_like(moves.scales), spread=float(self.spread), normal=moves.normal
        )
        return self._as_published(noise.mean_magnitude(), cells)

    def true_value(self, cells: Cells) -> Floats:
        """The figure without perturbation, in the unit of what is published: confidential."""
        return self._as_published(whole(cells, "weights" if self.statistic == "count" else "total"), cells)

    def protect(self, cells: Cells, randomness: Randomness) -> Cells:  # noqa: ARG002 (all chance is in the keys)
        """`value`, its `status`, and `rse`, `low` and `high`, rounded so that they tell little of those who asked."""
        sampling = as_changed(self._sampling(cells), self.true_value(cells), self._value(cells))
        deviation, width = self._moved(cells, sampling)
        none = (cells["records"] == 0) & (self.statistic == "mean")
        return published_cells(
            cells,
            value=np.rint(self._value(cells)),
            by_shares=self.statistic != "count",
            sampling=sampling,
            deviation=deviation,
            width=width,
            blurred=blur(cells),
            hidden=np.where(none, NOT_AVAILABLE, 0),
        )

    def moves(self, cells: Cells) -> Moves:
        """What moves each total: the largest that asked, one by one, and all others together; confidential."""
        top = self.levels - 1
        ranks = range(1, CONTRIBUTORS + 1)
        largest = np.stack([whole(cells, f"weighted_{top}", rank) for rank in ranks], axis=1)
        rest = np.maximum(cells["asked_root"].astype(np.float64) ** 2 - (largest**2).sum(axis=1), 0.0)
        # The root is rounded up: what is left of it alone is nobody.
        rest = np.where(cells["asked"] > np.abs(largest).sum(axis=1) + CONTRIBUTORS, rest, 0.0)
        return Moves(
            scales=float(self.magnitude) * largest,
            words=np.stack([cells[f"unit_word_{top}_{rank}"] for rank in ranks], axis=1),
            keys=np.zeros(len(cells), dtype=np.int64),
            normal=float(self.magnitude) * np.sqrt(rest),
        )

    def _value(self, cells: Cells) -> Floats:
        return self._as_published(whole(cells, "weights" if self.statistic == "count" else "perturbed"), cells)

    def _as_published(self, amount: Floats, cells: Cells) -> Floats:
        """An amount of the total as an amount of what is published."""
        if self.statistic != "mean":
            return amount
        count = whole(cells, "weights")
        scaled: Floats = np.divide(amount * 10**self.decimals, count, out=np.zeros(len(cells)), where=count > 0)
        return scaled

    def _sampling(self, cells: Cells) -> Floats:
        """The standard error by sampling of what is published."""
        kinds = {"total": "sampling_error", "mean": "mean_sampling_error", "count": "count_sampling_error"}
        unit = 10**self.decimals if self.statistic == "mean" else 1
        error: Floats = cells[kinds[self.statistic]] / ONE * unit
        return error

    def _moved(self, cells: Cells, sampling: Floats) -> tuple[Floats, Floats]:
        """The standard deviation of the perturbation, and how far a figure is off at most, in nine of ten cases.

        With all directions drawn anew, the sum over those who asked is sub-Gaussian: P(|P| > t·s) ≤ 2·exp(−t²/2), where
        s is (1 + b)·m times the root of their squared sizes. And it is never above (1 + b)·m times all their sizes.
        What changes are rounded up by is added to both: where values are small, that is most of it. Sizes are those
        after perturbation: published errors then tell nothing that the published values of all cells do not tell.
        """
        nothing = np.zeros(len(cells))
        if self.statistic == "count":
            return nothing, scipy.special.ndtri((1 + CONFIDENCE) / 2) * sampling
        magnitude, spread = float(self.magnitude), float(self.spread)
        root, asked, raised_root, raised = (
            self._as_published(by * cells[name].astype(np.float64), cells)
            for by, name in ((magnitude, "changed_root"), (magnitude, "changed"), (1, "raised_root"), (1, "raised"))
        )
        reach, most = (1 + spread) * root + raised_root, (1 + spread) * asked + raised
        tail = sqrt(2 * log(2 / (1 - CONFIDENCE))) * np.sqrt(reach**2 + sampling**2)
        bounded = most + scipy.special.ndtri((1 + CONFIDENCE) / 2) * sampling
        return np.sqrt(1 + spread**2 / 6) * root + raised_root, np.minimum(tail, bounded)
