"""What is told beside the numbers of a cube, so that error figures can be worked out for every question."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sfumato.cube.margins import Axes
from sfumato.cube.sampling import Sampling
from sfumato.cube.scale import Scale


@dataclass(frozen=True, kw_only=True)
class ColumnNoise:
    """The noise of one column: its variance in units of noise, and what one unit is in parts of the column."""

    variance: float
    """Of a cell of the cube."""
    controls: Mapping[Axes, float]
    """Of a cell of each control, by its axes; 0 where it is exact."""
    scale: Scale
    rounding: float = 0.0
    """The variance of rounding to whole units in a cell with records."""


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """How the cube was made to add up to its controls."""

    method: str
    converged: bool
    largest_gap: int
    """The largest difference between a sum and its control, in parts of the column, over all columns."""
    cycles: int
    gaps: Mapping[str, int] = field(default_factory=dict)
    """The same for each column, where that is known."""

    def only(self, columns: Collection[str]) -> "Calibration":
        """How some of the columns were made to; where it is not known of each column, as it is told of all."""
        if not self.gaps:
            return self
        gaps = {name: gap for name, gap in self.gaps.items() if name in columns}
        largest = max(gaps.values(), default=0)
        return replace(self, converged=self.converged or not largest, largest_gap=largest, gaps=gaps)


@dataclass(frozen=True, kw_only=True)
class Figures:
    """Error figures of a cube, made from parameters and a few averages."""

    noise: Mapping[str, ColumnNoise]
    sampling: Sampling | None = None
    """None where the data have no replicate weights."""
    calibration: Calibration | None = None

    def only(self, columns: Collection[str]) -> "Figures":
        """The figures of some of the columns."""
        noise = {name: of for name, of in self.noise.items() if name in columns}
        calibration = None if self.calibration is None else self.calibration.only(columns)
        return replace(self, noise=noise, calibration=calibration)

    def described(self) -> dict[str, Any]:
        """The figures as plain numbers and words, for JSON."""
        return {
            "noise": {
                name: {
                    "variance": noise.variance,
                    "rounding": noise.rounding,
                    "controls": [[list(axes), variance] for axes, variance in noise.controls.items()],
                    "scale": {
                        "overall": noise.scale.overall,
                        "axis": noise.scale.axis,
                        "by_code": list(noise.scale.by_code),
                    },
                }
                for name, noise in self.noise.items()
            },
            "sampling": None
            if self.sampling is None
            else {
                "square": self.sampling.square,
                "linear": self.sampling.linear,
                "means": dict(self.sampling.means),
            },
            "calibration": None if self.calibration is None else vars(self.calibration),
        }

    @classmethod
    def read(cls, described: Mapping[str, Any]) -> "Figures":
        """The figures that were described."""
        noise = {
            name: ColumnNoise(
                variance=found["variance"],
                rounding=found["rounding"],
                controls={tuple(axes): variance for axes, variance in found["controls"]},
                scale=Scale(
                    overall=found["scale"]["overall"],
                    axis=found["scale"]["axis"],
                    by_code=tuple(found["scale"]["by_code"]),
                ),
            )
            for name, found in described["noise"].items()
        }
        sampling, calibration = described["sampling"], described["calibration"]
        return cls(
            noise=noise,
            sampling=None if sampling is None else Sampling(**sampling),
            calibration=None if calibration is None else Calibration(**calibration),
        )
