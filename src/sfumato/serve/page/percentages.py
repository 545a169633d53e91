"""Figures as parts of a whole: of published totals where there are any, otherwise of what is shown."""

from collections.abc import Mapping, Sequence

import numpy as np

from sfumato.serve.model import Metric, Selection
from sfumato.serve.page.figures import Numbers, published_total
from sfumato.serve.page.question import Place, Question

_WHOLE: dict[str, tuple[Place, ...]] = {"row": ("columns",), "column": ("rows",), "total": ("rows", "columns")}
_NOT_PARTS = "Means and mixed indicators are not parts of a whole: they are shown as they are, not as percentages."
_OF_TOTALS = (
    "Percentages are of the published totals over all codes; these were protected too, so parts need not add up."
)
_OF_SUMS = "Percentages are of the sum of the figures in this table: no total over them is published."
_ERRORS = "Errors of percentages take the total for exact."


def percentages(
    question: Question,
    asked: Selection,
    *,
    totals: Sequence[int],
    placed: Mapping[Place, Sequence[int]],
    metrics: Sequence[Metric],
    values: Numbers,
) -> tuple[Numbers, list[str]]:
    """Values with their errors and bounds as percentages, and what is to be said of them.

    `values` have an axis for every dimension of `asked` that is not left out; those of `totals` end with a total.
    """
    if not any(metric.additive for metric in metrics if metric.kind == "value"):
        return values, [_NOT_PARTS]
    over = [axis for place in _WHOLE[question.display.percent] for axis in placed[place]]
    base = published_total(question.table, asked, over, totals)
    notes = [_OF_SUMS if base is None else _OF_TOTALS, _ERRORS]
    if base is None:
        base = _sums(question, asked, over, values)
    found = values.copy()
    places = {metric.code: at for at, metric in enumerate(metrics)}
    for at, metric in enumerate(metrics):
        of = places.get(metric.about or metric.code)
        if metric.kind in ("other", "rse") or of is None or not metrics[of].additive:
            continue
        with np.errstate(divide="ignore", invalid="ignore"):
            share = 100 * values[..., at] / base[..., of]
        found[..., at] = np.where(np.isfinite(share), share, np.nan)
    return found, notes


def _sums(question: Question, asked: Selection, over: Sequence[int], values: Numbers) -> Numbers:
    """Sums of the published figures over some dimensions, without what is a total already."""
    kept = [axis for axis, places in enumerate(asked.places) if places is not None]
    for axis in over:
        dimension, places = question.dimensions[axis], asked.places[axis] or ()
        total = None if dimension.total is None else dimension.places[dimension.total]
        single = [at for at, place in enumerate(places) if place != total]
        # An added total is beyond the places that were asked for, and so is left out as well.
        at = kept.index(axis)
        values = np.nansum(np.take(values, single or [0], axis=at), axis=at, keepdims=True)
    return values
