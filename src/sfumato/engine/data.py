"""Open the data of a release, whatever kind they are of: check them, read their codes, answer questions."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from sfumato.engine.connect import Tables, connect
from sfumato.engine.memory import DataTotals
from sfumato.engine.records import (
    RecordTables,
    check_record_columns,
    connect_records,
    read_record_codes,
    validate_records,
)
from sfumato.engine.validate import check_columns, read_public_codes, validate
from sfumato.frame import Codelist, Frame
from sfumato.microdata import Microdata


@dataclass(frozen=True, kw_only=True)
class OpenJobs:
    """Jobs with their workplaces and workers."""

    frame: Frame
    tables: Tables

    def check_columns(self) -> None:
        """Check that every column the frame names exists where it belongs."""
        check_columns(self.frame, self.tables)

    def codelists(self) -> dict[str, Codelist]:
        """The codelist of every attribute; those not declared are read off the workplaces."""
        return read_public_codes(self.frame, self.tables)

    def validate(self, codelists: Mapping[str, Codelist], looked_at: Collection[str] | None = None) -> DataTotals:
        """Check keys, links, and the attributes and measures that are looked at, and count what was read."""
        return validate(self.frame, self.tables, codelists, looked_at)


@dataclass(frozen=True, kw_only=True)
class OpenRecords:
    """One table of records."""

    data: Microdata
    tables: RecordTables

    def check_columns(self) -> None:
        """Check that every column the data name exists."""
        check_record_columns(self.data, self.tables)

    def codelists(self) -> dict[str, Codelist]:
        """The codelist of every attribute; public ones that are not declared are read off the records."""
        return read_record_codes(self.data, self.tables)

    def validate(self, codelists: Mapping[str, Codelist], looked_at: Collection[str] | None = None) -> DataTotals:
        """Check units, weights, and the attributes and measures that are looked at, and count the records."""
        return validate_records(self.data, self.tables, codelists, looked_at)


@contextmanager
def open_data(data: Frame | Microdata) -> Iterator[OpenJobs | OpenRecords]:
    """Open the engine that data ask for; everything temporary is dropped on leaving."""
    if data.of_jobs:
        with connect(data.as_jobs()) as tables:
            yield OpenJobs(frame=data.as_jobs(), tables=tables)
    else:
        with connect_records(data.as_records()) as records:
            yield OpenRecords(data=data.as_records(), tables=records)
