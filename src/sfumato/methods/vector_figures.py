"""Published error figures of methods whose noise depends on more than one published value."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from sfumato.cells import Cells
from sfumato.methods.method import Method

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

# Interval ends are moved outward by this share before they are rounded, more than floating point can err.
OUTWARD = 1e-12


@dataclass(frozen=True, kw_only=True)
class PublishedFigures:
    """The mean absolute error of every cell and the interval of its true value, from published numbers only."""

    error: Floats
    low: Floats
    high: Floats


@runtime_checkable
class WholeTableFigures(Protocol):
    """A method whose figures need all published values of a workplace cell, or its number of establishments."""

    def published_figures(self, answer: Cells, confidence: float) -> PublishedFigures:
        """The figures of an answer with its column `value`, and `establishments` where they are public."""
        ...


def published_figures(method: Method, answer: Cells, confidence: float) -> PublishedFigures:
    """The published figures of any method: of the whole table where it asks for that, else value by value."""
    if isinstance(method, WholeTableFigures):
        return method.published_figures(answer, confidence)
    low, high = method.published_interval(answer["value"], confidence)
    return PublishedFigures(error=method.published_error(answer["value"]), low=low, high=high)


def counts_within(values: Integers, *, width: float, slope: float) -> tuple[Floats, Floats]:
    """The least and the greatest whole n ≥ 0 with |value − n| ≤ max(slope·n, width) + ½; NaN for no upper limit."""
    y = values.astype(np.float64)
    width, slope = width * (1 + OUTWARD), slope * (1 + OUTWARD)
    low = rounded_up(np.minimum(y - width - 0.5, (y - 0.5) / (1 + slope)), y)
    if slope >= 1:
        return low, np.full(len(y), np.nan)
    return low, rounded_down(np.maximum(y + width + 0.5, (y + 0.5) / (1 - slope)), y)


def rounded_up(low: Floats, values: Floats) -> Floats:
    """Lower ends as whole numbers of jobs, moved outward first."""
    whole: Floats = np.maximum(np.ceil(low - OUTWARD * (1 + np.abs(values) + np.abs(low))), 0.0)
    return whole


def rounded_down(high: Floats, values: Floats) -> Floats:
    """Upper ends as whole numbers of jobs, moved outward first."""
    whole: Floats = np.maximum(np.floor(high + OUTWARD * (1 + np.abs(values) + np.abs(high))), 0.0)
    return whole


def check_confidence(confidence: float) -> None:
    """Refuse a confidence that is no probability strictly between nothing and certainty."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be between 0 and 1, not {confidence}")
