"""Errors of figures, in their own unit or in percent of them."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.serve.core.model import Metric

Numbers = NDArray[np.float64]


def relative_error(metrics: Sequence[Metric], values: Numbers, at: int) -> Numbers | None:
    """The error of a value in percent of it, infinite where it is beyond all bounds; None without error figures."""
    kinds = {metric.kind: place for place, metric in enumerate(metrics) if metric.about == metrics[at].code}
    if "rse" in kinds:
        return np.where(np.isnan(values[..., kinds["rse"]]), np.inf, values[..., kinds["rse"]])
    if "error" in kinds:
        error, size = values[..., kinds["error"]], np.abs(values[..., at])
        with np.errstate(divide="ignore", invalid="ignore"):
            found = 100 * error / size
        found = np.where(size == 0, np.where(error == 0, 0.0, np.inf), found)
        return np.where(np.isnan(found), np.inf, found)
    return None


def absolute_error(metrics: Sequence[Metric], values: Numbers, at: int) -> Numbers | None:
    """The error of a value in its own unit, not a number where it cannot be told; None without error figures."""
    kinds = {metric.kind: place for place, metric in enumerate(metrics) if metric.about == metrics[at].code}
    if "error" in kinds:
        return values[..., kinds["error"]]
    if "rse" in kinds:
        found: Numbers = np.abs(values[..., at]) * values[..., kinds["rse"]] / 100
        return found
    return None
