"""How far figures can be relied on: the error in percent of the figure, and marks where it is large."""

from collections.abc import Sequence

import numpy as np

from sfumato.serve.model import Metric
from sfumato.serve.page.figures import Marks, Numbers

CAUTION, UNRELIABLE = 25, 50
"""Percent of a figure from which on its error is marked, once and twice."""


def marks_of(metrics: Sequence[Metric], values: Numbers) -> tuple[Marks, bool]:
    """Marks of values whose relative error is large; an error that is beyond its scale is large too."""
    marks = np.zeros(values.shape, dtype=np.int8)
    rated = False
    for at, metric in enumerate(metrics):
        relative = relative_error(metrics, values, at) if metric.kind == "value" else None
        if relative is not None:
            rated = True
            there = ~np.isnan(values[..., at])
            marks[..., at] = np.where(there, (relative >= CAUTION).astype(np.int8) + (relative >= UNRELIABLE), 0)
    return marks, rated


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
