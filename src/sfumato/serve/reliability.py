"""How far values can be relied on: marks where the error is large beside the figure, or cannot be told."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sfumato.serve.status import BOUNDING, CAUTION, RELIABILITY, UNRELIABLE

if TYPE_CHECKING:
    from sfumato.serve.model import Column, Metric

Marks = NDArray[np.int8]
_BEYOND = np.int8(len(RELIABILITY) - 1)


def rating(metrics: Sequence["Metric"], value: str) -> dict[str, int]:
    """The places of the metrics that tell how far a value can be relied on, by their kind.

    Of a relative error and one in the unit of the figure the former counts: it may be rounded.
    """
    kinds: dict[str, int] = {m.kind: at for at, m in enumerate(metrics) if m.about == value}
    if "rse" in kinds:
        kinds.pop("error", None)
    return kinds


def marks_of(value: "Column", errors: Mapping[str, "Column"]) -> Marks | None:
    """The places in `status.RELIABILITY` of values with these errors and ends of intervals; None if none has a mark."""
    marks: Marks | None = None
    if "rse" in errors:
        relative = errors["rse"].values
        marks = np.asarray((relative >= CAUTION).view(np.int8) + (relative >= UNRELIABLE))
    elif "error" in errors:
        error, size = 100.0 * errors["error"].values, np.abs(value.values)
        # Compared without dividing: a figure of 0 with an error is as uncertain as can be.
        marks = np.asarray((error >= CAUTION * size).view(np.int8) + (error >= UNRELIABLE * size))
        if not size.all():
            marks[error == 0] = 0
    for column in errors.values():
        if column.missing is not None:
            marks = np.zeros(value.values.shape, np.int8) if marks is None else marks
            marks[column.missing] = _BEYOND
    if marks is None or not marks.any():
        return None
    if value.missing is not None:
        marks[value.missing] = 0
    if value.status is not None:
        marks[BOUNDING[value.status]] = 0  # a bound has no error that could be large
    return marks
