"""Errors in percent of the figures they belong to."""

from collections.abc import Sequence

import numpy as np

from sfumato.serve.model import Metric
from sfumato.serve.page.figures import Numbers


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
