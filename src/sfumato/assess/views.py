"""Views: the parts of a published table that are looked at one by one, with their true cells."""

from dataclasses import dataclass

import numpy as np

from sfumato.cells import Cells
from sfumato.indicators import CODES, INDICATORS, NAME
from sfumato.methods.status import HIDDEN
from sfumato.methods.top_contributors import TopContributors
from sfumato.plan import PlannedTable


@dataclass(frozen=True, kw_only=True)
class View:
    """One statistic of one table: the cells that were published, true and protected."""

    planned: PlannedTable
    title: str
    indicator: str | None
    counted: Cells
    answer: Cells
    unit: str = "jobs"

    @property
    def name(self) -> str:
        """The name of the table, and of its indicator if it has several."""
        return self.planned.table.name + (f"/{self.indicator}" if self.indicator else "")


def views(planned: PlannedTable, counted: Cells, answer: Cells) -> tuple[View, ...]:
    """A table as it is assessed: a table of indicators one by one, and only what was published of it."""
    table = planned.table
    title = table.title or table.name
    counted = with_true_values(planned, counted)
    if table.indicators is None:
        return (
            View(
                planned=planned,
                title=title,
                indicator=None,
                counted=_published(counted, answer),
                answer=_published(answer, answer),
                unit=f"{table.unit}, times 10^{table.decimals}" if table.statistic == "mean" else table.unit,
            ),
        )
    found = []
    for indicator in INDICATORS:
        if indicator.code in table.indicators:
            part = _one_indicator(answer, indicator.code)
            true = _one_indicator(counted, indicator.code)
            found.append(
                View(
                    planned=planned,
                    title=f"{title}: {indicator.label[0].lower()}{indicator.label[1:]}",
                    indicator=indicator.code,
                    counted=_published(true, part),
                    answer=_published(part, part),
                    unit=indicator.unit,
                )
            )
    return tuple(found)


def with_true_values(planned: PlannedTable, counted: Cells) -> Cells:
    """The true cells with the column `count`: what would be published without protection."""
    if not isinstance(planned.method, TopContributors):
        return counted
    return counted.with_column("count", np.rint(planned.method.true_value(counted)).astype(np.int64))


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


def _published(cells: Cells, answer: Cells) -> Cells:
    """Only the cells whose value can be seen."""
    if "status" not in answer.columns:
        return cells
    seen = ~np.isin(answer["status"], HIDDEN)
    return Cells(
        dimensions=cells.dimensions,
        positions=cells.positions[seen],
        columns={name: column[seen] for name, column in cells.columns.items()},
    )
