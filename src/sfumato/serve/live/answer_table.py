"""The answer to an ad-hoc question as a served table, and every measure as one table."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.bundle.statement import JOBS_ADD_UP, meaning
from sfumato.bundle.structure import structure
from sfumato.engine.data_files import data_files
from sfumato.frame.codelists import Codelist
from sfumato.live import Session
from sfumato.live.session import in_order
from sfumato.plan import Plan
from sfumato.privacy.units import of_window
from sfumato.privacy.windows import Calendar
from sfumato.release import Release
from sfumato.serve.core.bundle import OpenBundle, table_metrics
from sfumato.serve.core.bundle_statement import Statement
from sfumato.serve.core.labels import told_apart
from sfumato.serve.core.model import Column, Figures, Selection, ServedDimension, ServedTable
from sfumato.serve.core.published_files import PublishedFile
from sfumato.serve.core.roles import role_of
from sfumato.serve.core.status import APART, NUMBERS
from sfumato.statistics.published import PublishedTable
from sfumato.statistics.totals.question import TOTAL

DIFFERENCING = "differencing"


@dataclass(frozen=True, kw_only=True, eq=False)
class OneTableBundle(OpenBundle):
    """What a bundle with one table would say of it."""

    codelists: Mapping[str, Codelist]

    def labels(self, codelist: str) -> dict[str, str]:
        """The label of every code, from the data."""
        found = self.codelists[codelist.removeprefix("codelists/").removesuffix(".csv")]
        return dict(zip(found.codes, found.labels, strict=True))

    def translations(self, codelist: str, codes: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Labels of some codes in other languages, from the data."""
        found = self.codelists[codelist.removeprefix("codelists/").removesuffix(".csv")]
        known = {name: dict(zip(found.codes, labels, strict=True)) for name, labels in found.translations}
        return {name: told_apart(codes, [labels.get(code, "") for code in codes]) for name, labels in known.items()}

    def files(self, _about: Mapping[str, Any]) -> tuple[PublishedFile, ...]:
        """None: an answer is in no bundle."""
        return ()

    @classmethod
    def of(cls, live: Session, statistic: PublishedTable) -> "OneTableBundle":
        """The description of one question."""
        release = live.release.model_copy(update={"tables": (statistic.table,), "cubes": ()})
        plan = Plan(release=release, statistics=(statistic,), codelists=live.codelists)
        described = structure(plan)
        return cls(
            folder=Path("live"),
            structure=described,
            statement=Statement.of(described),
            updated=_updated(release),
            digest=statistic.digest_as_laid_out(""),
            codelists=live.codelists,
        )

    @property
    def about(self) -> dict[str, Any]:
        """The description of the one table."""
        (found,) = self.structure["tables"]
        return dict(found)


def answer_table(live: Session, statistic: PublishedTable, rows: pa.Table) -> ServedTable:
    """The table that answers a question."""
    described = OneTableBundle.of(live, statistic)
    table = described.of_rows(described.about, _with_status(rows), prefix="")
    return replace(
        table,
        id=statistic.table.name,
        title=_title(table, statistic),
        kind="live",
        guarantee=_guarantee(live, statistic) or table.guarantee,
        notes=(*_notes(live, statistic, rows), *table.notes),
    )


def few_units_apart(cells: int) -> tuple[str, ...]:
    """What is to be said of an answer in which so many cells differ by few units, or by none, from another."""
    if not cells:
        return ()
    which = "1 cell differs" if cells == 1 else f"{cells:,} cells differ"
    return (
        f"{which} by few units, or by none, from a cell of this answer or one given before it; the status says which.",
    )


def _updated(release: Release) -> datetime:
    """When the data were written last: an answer says the same whenever it is given."""
    written = [file.written() for files in data_files(release.data).values() for file in files]
    return datetime.fromtimestamp(max(written), tz=UTC)


def _title(table: ServedTable, statistic: PublishedTable) -> str:
    labels = [dimension.label[0].lower() + dimension.label[1:] for dimension in table.dimensions]
    words = " and ".join(filter(None, [", ".join(labels[:-1]), labels[-1]]))
    total = ", some only" if statistic.table.where else ""
    return f"{table.metrics[0].label} by {words}{total}"


def _guarantee(live: Session, statistic: PublishedTable) -> tuple[str, ...]:
    """What a formal question promises, together with everything else that is charged to the same budget."""
    budget = live.release.budget
    if statistic.guarantee.bound is None or budget is None:
        return ()
    return (
        f"Everything about {live.release.about.population} in {live.release.about.period}, published and ad-hoc, is "
        f"charged to one budget ({budget}). This is what all of it together promises.",
        *(paragraph.replace("this release", "all of it") for paragraph in meaning(budget)),
        JOBS_ADD_UP,
        *_over_windows(live),
        f"This table by itself: {statistic.guarantee}.",
    )


def _over_windows(live: Session) -> list[str]:
    """What several periods may reveal together, where that is limited; not what was charged, which tells of others."""
    ledger, about = live.opened_ledger, live.release.about
    windows = () if ledger is None else ledger.windows(about.population)
    calendars = [Calendar(window=one, costs=()) for one in windows]
    return [text for one in calendars for text in of_window(one, jobs=live.release.data.of_jobs)]


def _notes(live: Session, statistic: PublishedTable, rows: pa.Table) -> tuple[str, ...]:
    notes = [
        f"Only {live.release.data.label(name)}: {', '.join(codes)}." for name, codes in statistic.table.where.items()
    ]
    telling = [table.name for table in live.release.tables if table.establishments]
    if telling and not statistic.tells_establishments:
        notes.append(
            "This answer does not tell where there are establishments, but published tables do, so it hides no more of "
            f"that than they do: {', '.join(telling)}."
        )
    apart = pc.sum(pc.not_equal(rows[DIFFERENCING], "")).as_py() if DIFFERENCING in rows.column_names else 0
    return (*notes, *few_units_apart(apart or 0))


def _with_status(rows: pa.Table) -> pa.Table:
    """The rows with a status where the guard marked them."""
    if DIFFERENCING not in rows.column_names:
        return rows
    both = zip(rows["status"].to_pylist(), rows[DIFFERENCING].to_pylist(), strict=True)
    status = pa.array([APART[status or ""] if apart else status for status, apart in both], pa.string())
    return rows.set_column(rows.column_names.index("status"), "status", status)


# Every measure of records as one table of any attributes, for programs that know nothing of ad-hoc questions.


def live_tables(live: Session) -> Iterator[ServedTable]:
    """A table of records, and of every measure one of totals and one of means."""
    statistics = [
        ("count", "records"),
        *((one, name) for name in live.release.data.measures for one in ("total", "mean")),
    ]
    for statistic, of in statistics:
        yield _table(live, statistic, of)


def _table(live: Session, statistic: str, of: str) -> ServedTable:
    names = tuple(live.codelists)
    asked = {statistic: of}
    described = OneTableBundle.of(live, live.plan(by=(live.release.time or names[0],), where={}, totals=False, **asked))
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
        kind="live",
        source=LiveFigures(live=live, asked=asked, dimensions=dimensions),
    )


def _dimension(live: Session, name: str) -> ServedDimension:
    codes, labels = live.codelists[name].codes, live.codelists[name].labels
    totalled = name != live.release.time  # nothing is added up over periods
    return ServedDimension(
        name=name,
        label=live.release.data.label(name),
        codes=(*codes, *([TOTAL] if totalled else [])),
        labels=(*labels, *(["Total"] if totalled else [])),
        eliminable=totalled,
        total=TOTAL if totalled else None,
        role=role_of(name, codes),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class LiveFigures:
    """Answers that are counted when they are asked for."""

    live: Session = field(repr=False)
    asked: dict[str, str]
    dimensions: tuple[ServedDimension, ...]

    def figures(self, selection: Selection) -> Figures:
        """The cells of a selection, each protected by itself; a dimension that is left out is a question without it."""
        chosen = self._shown_codes(selection)
        statistic = self._plan(chosen)
        table = answer_table(self.live, statistic, self.live.answer(statistic, shown=chosen))
        places = (tuple(axis.places[code] for code in chosen[axis.name]) for axis in table.dimensions)
        found = table.source.figures(Selection(places=tuple(places), metrics=selection.metrics))
        shape = tuple(len(places) for places in selection.places if places is not None)
        columns = tuple(_shaped(column, shape) for column in found.columns)
        status = columns[0].status  # the same of all figures of a cell
        apart = 0 if status is None else int(np.isin(status, [NUMBERS[text] for text in APART.values()]).sum())
        return Figures(columns=columns, notes=(*few_units_apart(apart), *found.notes))

    def is_quick(self, _selection: Selection) -> bool:
        """Records are counted: that takes a while."""
        return False

    def _shown_codes(self, selection: Selection) -> dict[str, tuple[str, ...]]:
        """The codes that are shown, by attribute; one of which only the total is shown is not asked for."""
        chosen = {
            dimension.name: tuple(dimension.codes[place] for place in places)
            for dimension, places in zip(self.dimensions, selection.places, strict=True)
            if places is not None and (dimension.total is None or places != (len(dimension) - 1,))
        }
        shortest = min((d for d in self.dimensions if d.total is not None), key=len)
        return chosen or {shortest.name: (TOTAL,)}  # the total of everything is the margin of some attribute

    def _plan(self, chosen: dict[str, tuple[str, ...]]) -> PublishedTable:
        """The smallest question that has all cells of a selection; a total is of all codes, whichever were chosen."""
        totals = any(TOTAL in codes for codes in chosen.values())
        some = {name: codes for name, codes in chosen.items() if TOTAL not in codes}
        by, where = in_order(tuple(chosen), some, self.live.codelists)
        return self.live.plan(by=by, where=where, totals=totals, **self.asked)


def _shaped(column: Column, shape: tuple[int, ...]) -> Column:
    def as_asked(values: NDArray[Any] | None) -> Any:
        return None if values is None else np.reshape(values, shape)

    return Column(values=as_asked(column.values), missing=as_asked(column.missing), status=as_asked(column.status))
