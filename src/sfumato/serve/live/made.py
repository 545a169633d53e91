"""The answer to an ad-hoc question as a served table: described like a table of a bundle, though there is none."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sfumato.engine.data_files import data_files
from sfumato.frame import Codelist
from sfumato.live import FormalLive, Live
from sfumato.plan import Plan, PlannedTable
from sfumato.privacy.guarantee import EmployerEmployee
from sfumato.publish.other_releases import JOBS_ADD_UP
from sfumato.publish.statement import meaning, statement
from sfumato.publish.structure import structure
from sfumato.release import Release
from sfumato.serve.bundle import OpenBundle
from sfumato.serve.model import ServedTable
from sfumato.serve.statement import Statement
from sfumato.serve.status import APART

DIFFERENCING = "differencing"


@dataclass(frozen=True, kw_only=True, eq=False)
class Described(OpenBundle):
    """What a bundle with one table would say of it."""

    codelists: Mapping[str, Codelist]

    def labels(self, codelist: str) -> dict[str, str]:
        """The label of every code, from the data."""
        found = self.codelists[codelist.removeprefix("codelists/").removesuffix(".csv")]
        return dict(zip(found.codes, found.labels, strict=True))

    @classmethod
    def of(cls, live: Live | FormalLive, planned: PlannedTable) -> "Described":
        """The description of one question."""
        release = live.release.model_copy(update={"tables": (planned.table,), "cubes": ()})
        plan = Plan(release=release, tables=(planned,), codelists=live.codelists)
        return cls(
            folder=Path("live"),
            structure=structure(plan),
            statement=Statement.read(statement(plan)),
            updated=_updated(release),
            digest=planned.digest_as_laid_out(""),
            codelists=live.codelists,
        )

    @property
    def about(self) -> dict[str, Any]:
        """The description of the one table."""
        (found,) = self.structure["tables"]
        return dict(found)


def made_table(live: Live | FormalLive, planned: PlannedTable, rows: pa.Table) -> ServedTable:
    """The table that answers a question."""
    described = Described.of(live, planned)
    table = described.of_rows(described.about, _marked(rows), prefix="")
    return replace(
        table,
        id=planned.table.name,
        title=_title(table, planned),
        kind="live",
        guarantee=_guarantee(live, planned) or table.guarantee,
        notes=(*_notes(live, planned, rows), *table.notes),
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


def _title(table: ServedTable, planned: PlannedTable) -> str:
    labels = [dimension.label[0].lower() + dimension.label[1:] for dimension in table.dimensions]
    words = " and ".join(filter(None, [", ".join(labels[:-1]), labels[-1]]))
    total = ", some only" if planned.table.where else ""
    return f"{table.metrics[0].label} by {words}{total}"


def _guarantee(live: Live | FormalLive, planned: PlannedTable) -> tuple[str, ...]:
    """What a formal question promises, together with everything else that is charged to the same budget."""
    budget = live.release.budget
    if not isinstance(planned.guarantee, EmployerEmployee) or budget is None:
        return ()
    return (
        f"Everything about {live.release.about.population} in {live.release.about.period}, published and ad-hoc, is "
        f"charged to one budget ({budget}). This is what all of it together promises.",
        *(paragraph.replace("this release", "all of it") for paragraph in meaning(budget)),
        JOBS_ADD_UP,
        f"This table by itself: {planned.guarantee}.",
    )


def _notes(live: Live | FormalLive, planned: PlannedTable, rows: pa.Table) -> tuple[str, ...]:
    notes = [
        f"Only {live.release.data.label(name)}: {', '.join(codes)}." for name, codes in planned.table.where.items()
    ]
    apart = pc.sum(pc.not_equal(rows[DIFFERENCING], "")).as_py() if DIFFERENCING in rows.column_names else 0
    return (*notes, *few_units_apart(apart or 0))


def _marked(rows: pa.Table) -> pa.Table:
    """The rows with a status where the guard marked them."""
    if DIFFERENCING not in rows.column_names:
        return rows
    both = zip(rows["status"].to_pylist(), rows[DIFFERENCING].to_pylist(), strict=True)
    status = pa.array([APART[status or ""] if apart else status for status, apart in both], pa.string())
    return rows.set_column(rows.column_names.index("status"), "status", status)
