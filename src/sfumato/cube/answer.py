"""What a question to a cube gets: figures with their expected errors, and marks where they should not be published."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.arrays import Floats, Integers
from sfumato.cells import Dimension

STATUSES = ("", "too few records", "too uncertain", "not defined")
_FEW, _UNCERTAIN, _UNDEFINED = range(1, len(STATUSES))


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
    """Figures; where `codes` is told, the places of codes in it."""
    counts: Floats
    """The noisy numbers of records behind the values."""
    perturbation_error: Floats
    """The expected standard error that noise adds, from parameters alone; where values are codes, that of the share."""
    sampling_error: Floats | None
    """The expected standard error of sampling; None where the data have no replicate weights."""
    status: Integers
    """Places in STATUSES."""
    exact: Integers | None = None
    """Totals in the whole parts of the cube's column, which add up exactly; None for other figures."""
    interval: tuple[Floats, Floats] | None = None
    """Where a quantile lies with 90% confidence, in numbers or places of codes; None for other figures."""
    codes: Dimension | None = None
    """The dimension whose codes the values are; None where they are numbers."""
    compared_with: Floats | None = None
    """What errors are divided by in a coefficient of variation, where that is not the value."""

    @cached_property
    def errors(self) -> Floats:
        """The expected standard errors of sampling and perturbation together, or of the latter alone."""
        return together(self.perturbation_error, self.sampling_error)

    @property
    def cv(self) -> Floats:
        """The coefficient of variation; infinite where the value is 0 and has an error."""
        return _variation(self.errors, self.values if self.compared_with is None else self.compared_with)

    @property
    def publishable(self) -> NDArray[np.bool_]:
        """Where no rule marks the figure."""
        found: NDArray[np.bool_] = self.status == 0
        return found

    def to_arrow(self) -> pa.Table:
        """A row for every cell: codes, value, number of records, errors and status; what is not finite is left empty.

        A dimension that is called like one of the other columns has `_code` after its name.
        """
        figures = {"value": self._told(self.values)}
        if self.interval is not None:
            figures |= {name: self._told(end) for name, end in zip(("low", "high"), self.interval, strict=True)}
        numbers = {"records": self.counts, "error" if self.codes is None else "share_error": self.errors}
        numbers["perturbation_error"] = self.perturbation_error
        if self.sampling_error is not None:
            numbers["sampling_error"] = self.sampling_error
        numbers["cv"] = self.cv
        figures |= {name: _finite(number) for name, number in numbers.items()}
        figures["status"] = _named(np.ravel(self.status), STATUSES)
        shape = tuple(map(len, self.dimensions))
        places = np.unravel_index(np.arange(self.values.size), shape) if shape else ()
        columns = {
            f"{d.name}_code" if d.name in figures else d.name: _named(place, d.codes)
            for d, place in zip(self.dimensions, places, strict=True)
        }
        return pa.table(columns | figures)

    def _told(self, figure: Floats) -> pa.Array:
        if self.codes is None:
            return _finite(figure)
        flat = np.ravel(figure)
        known = np.isfinite(flat)
        return _named(np.where(known, flat, 0).astype(np.int64), self.codes.codes, missing=~known)


def together(perturbation: Floats, sampling: Floats | None) -> Floats:
    """The standard errors of perturbation and, where there is any, sampling."""
    return perturbation if sampling is None else np.hypot(perturbation, sampling)


def marks(
    rules: Rules, values: Floats, errors: Floats, *, compared_with: Floats, base: Floats, total: Floats | None
) -> Integers:
    """The status of every figure: it needs enough records in its base, and a small coefficient of variation.

    A figure that is divided by a total needs one above 0, and a figure needs an error.
    """
    status = np.zeros(values.shape, dtype=np.int64)
    if rules.largest_cv is not None:
        status[~(_variation(errors, compared_with) <= rules.largest_cv)] = _UNCERTAIN
    if rules.least_count:
        status[~(base >= rules.least_count)] = _FEW
    undefined = np.isnan(values) | np.isnan(errors)
    status[undefined if total is None else undefined | ~(total > 0)] = _UNDEFINED
    return status


def where_defined(figures: Floats, status: Integers) -> Floats:
    """The figures, and no number where there is no such figure."""
    undefined = status == _UNDEFINED
    return np.where(undefined, np.nan, figures) if undefined.any() else figures


def _variation(errors: Floats, below: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Floats = np.abs(errors / below)
    return found


def _finite(figure: Floats) -> pa.Array:
    flat = np.ravel(figure).astype(np.float64)
    return pa.array(flat, mask=~np.isfinite(flat))


def _named(places: NDArray[np.int64], codes: tuple[str, ...], missing: NDArray[np.bool_] | None = None) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(places.astype(np.int32), mask=missing), pa.array(codes, pa.string()))
