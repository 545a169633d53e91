"""Every measure of records as one table of any attributes, for programs that know nothing of ad-hoc questions."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.engine.question import TOTAL
from sfumato.live import Live
from sfumato.live.asked import in_order
from sfumato.plan import PlannedTable
from sfumato.serve.live.made import Described, few_units_apart, made_table
from sfumato.serve.metrics import table_metrics
from sfumato.serve.model import Column, Figures, Selection, ServedDimension, ServedTable
from sfumato.serve.roles import role_of
from sfumato.serve.status import APART, NUMBERS


def live_tables(live: Live) -> Iterator[ServedTable]:
    """A table of records, and of every measure one of totals and one of means."""
    statistics = [
        ("count", "records"),
        *((one, name) for name in live.release.data.measures for one in ("total", "mean")),
    ]
    for statistic, of in statistics:
        yield _table(live, statistic, of)


def _table(live: Live, statistic: str, of: str) -> ServedTable:
    names = tuple(live.codelists)
    asked = {statistic: of}
    described = Described.of(live, live.planned(by=names[:1], where={}, totals=False, **asked))
    dimensions = tuple(_dimension(live, name) for name in names)
    kind = pa.float64() if statistic == "mean" else pa.int64()
    schema = pa.schema({"value": kind, "low": kind, "high": kind, "rse": pa.float64(), "status": pa.string()})
    metrics = table_metrics(described.about, schema)
    statement = described.statement
    return ServedTable(
        id="live_records" if statistic == "count" else f"live_{statistic}_{of}",
        title=f"{metrics[0].label}, any attributes",
        release=live.release.about.title,
        population=live.release.about.population,
        period=live.release.about.period,
        updated=described.updated,
        dimensions=dimensions,
        metrics=metrics,
        method=described.about["method"],
        guarantee=statement.promises,
        notes=(*statement.changes(described.about["name"]), *statement.errors, *statement.not_protected),
        digest=described.digest,
        marks=True,
        heavy=True,
        kind="live",
        source=LiveFigures(live=live, asked=asked, dimensions=dimensions),
    )


def _dimension(live: Live, name: str) -> ServedDimension:
    codes, labels = live.codelists[name].codes, live.codelists[name].labels
    return ServedDimension(
        name=name,
        label=live.release.data.label(name),
        codes=(*codes, TOTAL),
        labels=(*labels, "Total"),
        eliminable=True,
        total=TOTAL,
        role=role_of(name, codes),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class LiveFigures:
    """Answers that are counted when they are asked for."""

    live: Live = field(repr=False)
    asked: dict[str, str]
    dimensions: tuple[ServedDimension, ...]

    def figures(self, selection: Selection) -> Figures:
        """The cells of a selection, each protected by itself; a dimension that is left out is a question without it."""
        chosen = self._chosen(selection)
        planned = self._planned(chosen)
        table = made_table(self.live, planned, self.live.answered(planned, shown=chosen))
        places = (tuple(axis.places[code] for code in chosen[axis.name]) for axis in table.dimensions)
        found = table.source.figures(Selection(places=tuple(places), metrics=selection.metrics))
        shape = tuple(len(places) for places in selection.places if places is not None)
        columns = tuple(_shaped(column, shape) for column in found.columns)
        status = columns[0].status  # the same of all figures of a cell
        apart = 0 if status is None else int(np.isin(status, [NUMBERS[text] for text in APART.values()]).sum())
        return Figures(columns=columns, notes=(*few_units_apart(apart), *found.notes))

    def _chosen(self, selection: Selection) -> dict[str, tuple[str, ...]]:
        """The codes that are shown, by attribute; one of which only the total is shown is not asked for."""
        chosen = {
            dimension.name: tuple(dimension.codes[place] for place in places)
            for dimension, places in zip(self.dimensions, selection.places, strict=True)
            if places is not None and places != (len(dimension) - 1,)
        }
        shortest = min(self.dimensions, key=len)
        return chosen or {shortest.name: (TOTAL,)}  # the total of everything is the margin of some attribute

    def _planned(self, chosen: dict[str, tuple[str, ...]]) -> PlannedTable:
        """The smallest question that has all cells of a selection; a total is of all codes, whichever were chosen."""
        totals = any(TOTAL in codes for codes in chosen.values())
        some = {name: codes for name, codes in chosen.items() if TOTAL not in codes}
        by, where = in_order(tuple(chosen), some, self.live.codelists)
        return self.live.planned(by=by, where=where, totals=totals, **self.asked)


def _shaped(column: Column, shape: tuple[int, ...]) -> Column:
    def as_asked(values: NDArray[Any] | None) -> Any:
        return None if values is None else np.reshape(values, shape)

    return Column(values=as_asked(column.values), missing=as_asked(column.missing), status=as_asked(column.status))
