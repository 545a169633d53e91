"""Changes from one period to the one before, in figures or in percent, with their errors."""

from collections.abc import Sequence

import numpy as np

from sfumato.serve.core.model import Marks, Metric
from sfumato.serve.core.status import CAUTION, HAS_NONE, STATUSES, UNRELIABLE
from sfumato.serve.page.language import Language
from sfumato.serve.page.rating import Numbers, absolute_error

CHANGES = ("change", "growth")
NO_PERIODS = "There are no changes to show: put several periods into rows or columns."
_INDEPENDENT = "Errors of changes take the errors of both periods for independent of each other."
_FIRST = "The first period has no figure: nothing is shown before it."


def changes(
    metrics: Sequence[Metric], values: Numbers, remarks: Marks, *, time: int, percent: bool, say: Language
) -> tuple[Numbers, Marks, list[str]]:
    """Values less those of the period before, along an axis; marks are those of the changes."""
    before = np.full_like(values, np.nan)
    ahead, behind = (np.moveaxis(array, time, 0) for array in (before, values))
    ahead[1:] = behind[:-1]
    found, said = np.full_like(values, np.nan), remarks.copy()
    first = np.moveaxis(said, time, 0)
    first[0] = HAS_NONE
    rated = False
    for at, metric in enumerate(metrics):
        if metric.kind != "value":
            continue
        base = np.abs(before[..., at]) / 100 if percent else 1.0
        with np.errstate(divide="ignore", invalid="ignore"):
            change = (values[..., at] - before[..., at]) / base
        found[..., at] = np.where(np.isfinite(change), change, np.nan)
        errors = [absolute_error(metrics, some, at) for some in (values, before)]
        if errors[0] is None or errors[1] is None:
            said[..., at] %= len(STATUSES)
            continue
        rated = True
        with np.errstate(divide="ignore", invalid="ignore"):
            # In percent the change is that of a ratio, whose error has those of both.
            scale = np.abs(values[..., at] / before[..., at]) if percent else 1.0
            error = np.hypot(errors[0], errors[1] * scale) / base
            relative = 100 * error / np.abs(found[..., at])
        _put_errors(metrics, found, at, error, relative)
        marks = np.where(relative >= UNRELIABLE, 2, np.where(relative >= CAUTION, 1, 0))
        marks = np.where(np.isnan(relative), np.where(error == 0, 0, 2), marks)
        known = remarks[..., at] < HAS_NONE
        own = np.where(known, remarks[..., at] % len(STATUSES) + len(STATUSES) * marks, remarks[..., at])
        hidden = np.isnan(found[..., at])
        gone = np.where(np.isnan(values[..., at]), remarks[..., at], HAS_NONE)
        said[..., at] = np.where(hidden, gone, own)
    return found, said.astype(np.int8), [say(_INDEPENDENT)] * rated + [say(_FIRST)]


def _put_errors(metrics: Sequence[Metric], found: Numbers, at: int, error: Numbers, relative: Numbers) -> None:
    """The error of a change in place of that of its figure; there is no interval."""
    for place, metric in enumerate(metrics):
        if metric.about == metrics[at].code and metric.kind in ("error", "rse"):
            own = error if metric.kind == "error" else relative
            found[..., place] = np.where(np.isfinite(own), own, np.nan)
