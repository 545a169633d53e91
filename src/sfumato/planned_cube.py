"""A cube of a release, planned: what it asks, how it is protected and what it costs, before any record is read."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from sfumato.adjust.protected_cube import protected_cube
from sfumato.cells import Dimension
from sfumato.cube.cube import MILLION, Cube
from sfumato.cube.figures import Figures
from sfumato.cube.section import MEASURE_PARTS, WEIGHTED, ControlSection, CubeSection
from sfumato.engine.cube_records import CubeQuestion, RecordTotals
from sfumato.errors import DataError
from sfumato.frame import Codelist
from sfumato.methods.truncated_laplace import ControlNoise, TruncatedLaplace
from sfumato.microdata import Microdata
from sfumato.noise.randomness import Randomness
from sfumato.noise.truncated_geometric import TruncatedGeometric, smallest_cap
from sfumato.privacy.account import Charge
from sfumato.privacy.guarantee import EmployerEmployee

_MOST = 2.0**62
_ROOM = 2.0
"""How many times the expected magnitudes a cube must be able to hold."""


@dataclass(frozen=True, kw_only=True)
class PlannedCube:
    """One cube with what it asks and how it is protected."""

    section: CubeSection
    question: CubeQuestion
    method: TruncatedLaplace
    links: str = ""

    @property
    def name(self) -> str:
        """The name of the cube."""
        return self.section.name

    @property
    def title(self) -> str:
        """Its heading."""
        return self.section.title or self.section.name.replace("_", " ").capitalize()

    @property
    def cells(self) -> int:
        """The number of cells, empty ones included."""
        return self.question.cells

    @cached_property
    def guarantee(self) -> EmployerEmployee:
        """What the protected cube reveals at most, outside of what its statement excepts."""
        return self.method.guarantee()

    @property
    def margins(self) -> tuple[tuple[Dimension, ...], ...]:
        """The tables whose replicate variances tell how sampling errors depend on a total: one-way, and controls."""
        named = {dimension.name: dimension for dimension in self.question.by}
        tables = [(name,) for name in named] + [control.by for control in self.section.controls]
        return tuple(tuple(named[name] for name in by) for by in dict.fromkeys(tables) if by)

    def digest(self, data: str) -> str:
        """Name this question to these data: the same name means that the stored answer is given again."""
        asked = {
            "data": data,
            "links": self.links,
            "statistic": ["cube", self.question.measures, self.question.weight_unit, self.section.stratum],
            "by": [[dimension.name, dimension.codes] for dimension in self.question.by],
            "method": repr(self.method),
            "calibration": [self.section.calibration, self.section.nonnegative],
        }
        return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()

    def charge(self, data: str) -> Charge:
        """What the ledger is asked to charge for the cube and all its noisy controls."""
        return Charge(question=self.digest(data), table=self.name, guarantee=self.guarantee, data=data)

    def protect(self, true: Cube, randomness: Randomness) -> tuple[Cube, Figures]:
        """The perturbed and calibrated cube, with the figures for its errors."""
        return protected_cube(
            true,
            self.method,
            randomness,
            stratum=self.section.stratum,
            calibration=self.section.calibration,
            nonnegative=self.section.nonnegative,
        )

    def refuse_unsuitable(self, totals: RecordTotals) -> None:
        """Refuse records that the cube cannot hold or does not protect as stated, before anything is charged."""
        largest = self.section.largest_weight
        if largest is not None and totals.largest_weight > largest:
            raise DataError(
                f"cube '{self.name}', weights",
                expected=f"no weight above largest_weight = {largest:,}, which the noise is made for",
                found="a larger one",
                do="raise largest_weight, or trim the weights",
            )
        sums = {WEIGHTED: (totals.weights, totals.largest_weight)}
        sums |= {name: (totals.measures[name], totals.largest[name]) for name in self.question.measures}
        for column, (total, most) in sums.items():
            # An average within a stratum is at most the largest.
            scale = most if self.section.stratum is not None else total / max(totals.records, 1)
            noise = self.method.counts.expected_magnitude * scale
            if column == WEIGHTED and self.method.weights is not None:
                noise = self.method.weights.expected_magnitude * self.method.weight_unit
            parts = MILLION if column == WEIGHTED else MEASURE_PARTS
            if _ROOM * parts * (total + self.cells * noise) >= _MOST:
                raise DataError(
                    f"cube '{self.name}', {column}",
                    expected=f"numbers whose sum with their noise stays below 2^62 parts of 1/{parts:,}, to be exact",
                    found="more",
                    do="use fewer attributes, a larger unit, or weights divided by the same number",
                )


def plan_cube(
    section: CubeSection, data: Microdata, codelists: Mapping[str, Codelist], *, alpha: Fraction
) -> PlannedCube:
    """Plan a cube; what cannot be protected as asked is refused here, by name."""
    by = tuple(Dimension(name=name, codes=codelists[name].codes) for name in section.by)
    unit = section.weight_unit if section.sensitivity == "weight" else None
    return PlannedCube(
        section=section,
        question=CubeQuestion(by=by, measures=section.measures, weight_unit=unit),
        method=cube_method(section, alpha=alpha),
        links=data.links(),
    )


def cube_method(section: CubeSection, *, alpha: Fraction) -> TruncatedLaplace:
    """The noise of a cube and of its controls.

    A cap that is not given is the least one whose δ is not above that of the cube's counts.
    """
    counts = TruncatedGeometric(epsilon=section.epsilon, cap=section.cap)
    most = counts.delta()

    def noise(epsilon: Fraction, *, sensitivity: int = 1, cap: int | None = None) -> TruncatedGeometric:
        least = smallest_cap(epsilon=epsilon, delta=most, sensitivity=sensitivity) if cap is None else cap
        return TruncatedGeometric(epsilon=epsilon, cap=least, sensitivity=sensitivity)

    def control(described: ControlSection) -> ControlNoise:
        if described.epsilon is None:
            return ControlNoise(by=described.by, counts=None)
        return ControlNoise(
            by=described.by,
            counts=noise(described.epsilon, cap=described.cap),
            weights=None if largest is None else noise(described.epsilon, sensitivity=largest),
        )

    # As the engine rounds a weight, halves upwards.
    unit, most_weight = section.weight_unit, section.largest_weight
    largest = None if most_weight is None else (2 * most_weight + unit) // (2 * unit)
    return TruncatedLaplace(
        alpha=alpha,
        counts=counts,
        weights=None if largest is None else noise(section.epsilon, sensitivity=largest),
        controls=tuple(map(control, section.controls)),
        empty_cells=section.empty_cells,
        weight_unit=unit,
    )
