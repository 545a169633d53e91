"""What a question to a cube gets: figures with their expected errors, and marks where they should not be published."""

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.cells import Dimension

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

STATUSES = ("", "too few records", "too uncertain")


@dataclass(frozen=True, kw_only=True)
class Rules:
    """When a figure is marked as not fit for publication; both rules look at noisy numbers only."""

    least_count: int = 0
    largest_cv: float | None = None


@dataclass(frozen=True, kw_only=True)
class Answer:
    """Arrays with one axis for each dimension that was asked for."""

    dimensions: tuple[Dimension, ...]
    values: Floats
    counts: Floats
    """The noisy numbers of records behind the values."""
    perturbation_error: Floats
    """The expected standard error that noise adds, from parameters alone."""
    sampling_error: Floats | None
    """The expected standard error of sampling; None where the data have no replicate weights."""
    status: Integers
    """Places in STATUSES."""
    exact: Integers | None = None
    """Totals in the whole parts of the cube's column, which add up exactly; None for proportions and means."""

    @property
    def errors(self) -> Floats:
        """The expected standard errors of sampling and perturbation together, or of the latter alone."""
        return (
            self.perturbation_error
            if self.sampling_error is None
            else np.hypot(self.perturbation_error, self.sampling_error)
        )

    @property
    def cv(self) -> Floats:
        """The coefficient of variation; infinite where the value is 0 and has an error."""
        with np.errstate(divide="ignore", invalid="ignore"):
            found: Floats = np.abs(self.errors / self.values)
        return found

    @property
    def publishable(self) -> NDArray[np.bool_]:
        """Where no rule marks the figure."""
        found: NDArray[np.bool_] = self.status == 0
        return found

    def to_arrow(self) -> pa.Table:
        """A row for every cell: codes, value, number of records, errors and status."""
        shape = tuple(map(len, self.dimensions))
        places = np.unravel_index(np.arange(self.values.size), shape) if shape else ()
        columns: dict[str, pa.Array] = {
            d.name: pa.DictionaryArray.from_arrays(pa.array(place.astype(np.int32)), list(d.codes))
            for d, place in zip(self.dimensions, places, strict=True)
        }
        figures = {"value": self.values, "records": self.counts, "error": self.errors}
        figures["perturbation_error"] = self.perturbation_error
        if self.sampling_error is not None:
            figures["sampling_error"] = self.sampling_error
        columns |= {name: pa.array(np.ravel(figure), from_pandas=True) for name, figure in figures.items()}
        columns["status"] = pa.DictionaryArray.from_arrays(
            pa.array(np.ravel(self.status).astype(np.int32)), list(STATUSES)
        )
        return pa.table(columns)


def marked(answer: Answer, rules: Rules, base: Floats) -> Answer:
    """The answer with its status: a figure needs enough records in its base, and a small coefficient of variation."""
    status = np.zeros(answer.values.shape, dtype=np.int64)
    if rules.largest_cv is not None:
        status[~(answer.cv <= rules.largest_cv)] = 2
    if rules.least_count:
        status[~(base >= rules.least_count)] = 1
    return replace(answer, status=status)
