"""Open the data of a release, whatever kind they are of: check them, read their codes, answer questions."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from sfumato.engine.connect import Tables, connect, open_tables
from sfumato.engine.memory import DataTotals
from sfumato.engine.query import Rows
from sfumato.engine.records import (
    RecordTables,
    check_record_columns,
    connect_records,
    read_record_codes,
    validate_records,
)
from sfumato.engine.validate import check_columns, codes_within, read_public_codes, validate
from sfumato.frame.codelists import Codelist
from sfumato.frame.data import Frame
from sfumato.frame.records import Microdata


@dataclass(frozen=True, kw_only=True)
class OpenJobs:
    """Jobs with their workplaces and workers."""

    frame: Frame
    tables: Tables

    @property
    def described(self) -> Frame:
        """What the release file says of them."""
        return self.frame

    @property
    def holders(self) -> tuple[Rows, ...]:
        """The tables in which attributes are."""
        named = (self.tables.workplaces, self.tables.workers, self.tables.jobs)
        return tuple(rows for rows in named if rows is not None)

    def check_columns(self) -> None:
        """Check that every column the frame names exists where it belongs."""
        check_columns(self.frame, self.tables)

    def codelists(self) -> dict[str, Codelist]:
        """The codelist of every attribute; those not declared are read off the workplaces."""
        return read_public_codes(self.frame, self.tables)

    def validate(self, codelists: Mapping[str, Codelist], looked_at: Collection[str] | None = None) -> DataTotals:
        """Check keys, links, and the attributes and measures that are looked at, and count what was read."""
        return validate(self.frame, self.tables, codelists, looked_at)

    def within(self, pairs: Collection[tuple[str, str]]) -> dict[tuple[str, str], dict[str, str]]:
        """Of pairs of public attributes, the code of the second that all establishments with one of the first have.

        Pairs of which the first does not decide the second are left out; all, where no register lists establishments.
        An establishment is in every period of a panel, so that neither tells of the other.
        """
        return codes_within(self.tables, [pair for pair in pairs if self.frame.panel_period not in pair])


@dataclass(frozen=True, kw_only=True)
class OpenRecords:
    """One table of records."""

    data: Microdata
    tables: RecordTables

    @property
    def described(self) -> Microdata:
        """What the release file says of them."""
        return self.data

    @property
    def holders(self) -> tuple[Rows, ...]:
        """The table in which attributes are."""
        return (self.tables.records,)

    def check_columns(self) -> None:
        """Check that every column the data name exists."""
        check_record_columns(self.data, self.tables)

    def codelists(self) -> dict[str, Codelist]:
        """The codelist of every attribute; public ones that are not declared are read off the records."""
        return read_record_codes(self.data, self.tables)

    def validate(self, codelists: Mapping[str, Codelist], looked_at: Collection[str] | None = None) -> DataTotals:
        """Check units, weights, and the attributes and measures that are looked at, and count the records."""
        return validate_records(self.data, self.tables, codelists, looked_at)

    def within(self, pairs: Collection[tuple[str, str]]) -> dict[tuple[str, str], dict[str, str]]:  # noqa: ARG002
        """None: nothing is known of establishments."""
        return {}


@contextmanager
def open_register(frame: Frame) -> Iterator[OpenJobs | None]:
    """Open the register of establishments alone, which is public; None where the jobs have no table of workplaces."""
    if frame.workplaces is None:
        yield None
        return
    with open_tables(frame, ("workplaces",)) as (engine, opened, sources):
        rows = opened["workplaces"]  # in the place of the jobs too, of which no file is opened
        tables = Tables(engine=engine, jobs=rows, workplaces=rows, workers=None, register=None, sources=sources)
        yield OpenJobs(frame=frame, tables=tables)


@contextmanager
def open_data(data: Frame | Microdata) -> Iterator[OpenJobs | OpenRecords]:
    """Open the engine that data ask for; everything temporary is dropped on leaving."""
    if data.of_jobs:
        with connect(data.as_jobs()) as tables:
            yield OpenJobs(frame=data.as_jobs(), tables=tables)
    else:
        with connect_records(data.as_records()) as records:
            yield OpenRecords(data=data.as_records(), tables=records)
