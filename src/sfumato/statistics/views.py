"""The views of a table: the parts of it that are looked at one by one, with their true cells."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sfumato.cells import Cells
from sfumato.measures.views import View, only
from sfumato.method import HIDDEN
from sfumato.statistics.panel.indicators import CODES, INDICATORS, NAME
from sfumato.statistics.published import PublishedTable
from sfumato.statistics.totals.question import TOTAL


def views(
    planned: PublishedTable,
    counted: Cells,
    answer: Cells,
    *,
    agreed: Cells | None = None,
    unit: str | None = None,
) -> tuple[View, ...]:
    """A table as it is assessed: a table of indicators one by one, and only what was published of it.

    `agreed` has the values after tables were made to agree, and `unit` says what the values are numbers of.
    """
    table = planned.table
    title = table.title or table.name
    counted = planned.with_true_values(counted)
    errors = planned.expected_errors(counted)
    if not np.array_equal(counted.positions, answer.positions):
        raise ValueError("the answer is about other cells than the data")
    shown = agreed if agreed is not None else answer
    if table.indicators is None:
        view = View(
            planned=planned,
            title=title,
            indicator=None,
            counted=counted,
            shown=planned.shown_values(shown),
            expected=errors,
            interval=planned.interval(answer, shown),
            unit=unit or table.unit,
            parts=10**table.decimals if table.statistic in ("mean", "growth") else 1,
            counts=table.statistic not in ("total", "mean", "growth") and not table.of_earnings,
            additive=table.statistic not in ("mean", "growth"),
            agreed=not np.array_equal(shown["value"], answer["value"]),
        )
        return (_margins_apart(_published(view, _seen(answer))),)
    found = []
    for indicator in INDICATORS:
        if indicator.code in table.indicators:
            part, true = _one_indicator(answer, indicator.code), _one_indicator(counted, indicator.code)
            view = View(
                planned=planned,
                title=f"{title}: {indicator.label[0].lower()}{indicator.label[1:]}",
                indicator=indicator.code,
                counted=true,
                shown=part["value"],
                expected=errors[CODES.index(indicator.code) :: len(CODES)],
                interval=None,
                unit=indicator.unit,
                counts=indicator.unit == "jobs",
                additive=indicator.additive,
            )
            found.append(_published(view, _seen(part)))
    return tuple(found)


def _margins_apart(view: View) -> View:
    """The cells, with the totals of rows and columns beside them: whoever adds up both counts everything twice."""
    if not view.planned.table.totals or view.withheld is None:
        return view
    total, more = _is_total(view.counted), _is_total(view.withheld)
    apart = replace(view, withheld=only(view.withheld, ~more))
    return replace(apart.only(~total), margins=view.only(total)) if total.any() else apart


def _is_total(cells: Cells) -> NDArray[np.bool_]:
    total = np.zeros(len(cells), dtype=np.bool_)
    for dimension in cells.dimensions:
        total |= np.array(dimension.codes)[cells.codes(dimension.name)] == TOTAL
    return total


def _published(view: View, seen: NDArray[np.bool_]) -> View:
    """The cells whose value can be seen, and the others beside them."""
    return replace(view.only(seen), withheld=only(view.counted, ~seen))


def _one_indicator(cells: Cells, code: str) -> Cells:
    """The cells of one indicator, without that dimension."""
    if cells.dimensions[-1].name != NAME:
        raise ValueError("a table of indicators has them as its last dimension")
    at = CODES.index(code)
    return Cells(
        dimensions=cells.dimensions[:-1],
        positions=cells.positions[at :: len(CODES)] // len(CODES),
        columns={name: column[at :: len(CODES)] for name, column in cells.columns.items()},
    )


def _seen(answer: Cells) -> NDArray[np.bool_]:
    """The cells whose value can be seen."""
    if "status" not in answer.columns:
        return np.ones(len(answer), dtype=np.bool_)
    return ~np.isin(answer["status"], HIDDEN)
