"""Published error figures of methods whose noise depends on more than one published value."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from sfumato.arrays import Floats, Integers
from sfumato.cells import Cells
from sfumato.methods.method import Method

# Interval ends are moved outward by this share before they are rounded, more than floating point can err.
OUTWARD = 1e-12


@dataclass(frozen=True, kw_only=True)
class PublishedFigures:
    """The mean absolute error of every cell and the interval of its true value, from published numbers only."""

    error: Floats
    low: Floats
    high: Floats

    def beside(self, values: Integers) -> "PublishedFigures":
        """The same figures widened until they do not contradict these values of counts, which stand beside them.

        The error is at least the way from the value to the nearest count of the interval: all of a negative value. The
        interval then holds the value and one other count at least. Where the value is negative it reaches as far above
        zero as the value lies below: noise that took it there may have taken it from there. It only grows, so it holds
        the true count no less often than before.
        """
        y = values.astype(np.float64)
        away = np.maximum(self.low - y, np.where(np.isnan(self.high), 0.0, y - self.high))
        low, high = np.minimum(self.low, np.maximum(y, 0.0)), np.maximum(self.high, np.abs(y))
        lone = low == high
        return PublishedFigures(
            error=np.maximum(self.error, away),
            low=np.where(lone, np.maximum(low - 1, 0.0), low),
            high=np.where(lone, high + 1, high),
        )


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
    """The least and the greatest whole n ≥ 0 with |value − n| ≤ max(slope·n, width) + ½; NaN for no upper limit.

    A negative value has the upper end of 0. No count is below 0, so noise took it there: what it had been before it
    passed 0 is as open as if it were 0.
    """
    y = values.astype(np.float64)
    width, slope = width * (1 + OUTWARD), slope * (1 + OUTWARD)
    low = rounded_up(np.minimum(y - width - 0.5, (y - 0.5) / (1 + slope)), y)
    if slope >= 1:
        return low, np.full(len(y), np.nan)
    y = np.maximum(y, 0.0)
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
