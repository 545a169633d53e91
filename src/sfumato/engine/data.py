"""Open the data of a release, whatever kind they are of: check them, read their codes, answer questions."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

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


class Opened(Protocol):
    """Data on an open engine; `OpenJobs` and `OpenRecords` satisfy it."""

    def check_columns(self) -> None:
        """Check that every column the description names exists and has a suitable type."""
        ...

    def codelists(self) -> dict[str, Codelist]:
        """The codelist of every attribute."""
        ...

    def validate(self, codelists: Mapping[str, Codelist]) -> DataTotals:
        """Check keys, links, codes, weights and measures, and count what was read; a fault is raised as a DataError."""
        ...


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

    def validate(self, codelists: Mapping[str, Codelist]) -> DataTotals:
        """Check keys, links, codes and measures, and count what was read."""
        return validate(self.frame, self.tables, codelists)


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

    def validate(self, codelists: Mapping[str, Codelist]) -> DataTotals:
        """Check units, weights, codes and measures, and count the records."""
        return validate_records(self.data, self.tables, codelists)


@contextmanager
def open_data(data: Frame | Microdata) -> Iterator[OpenJobs | OpenRecords]:
    """Open the engine that data ask for; everything temporary is dropped on leaving."""
    if data.of_jobs:
        with connect(data.as_jobs()) as tables:
            yield OpenJobs(frame=data.as_jobs(), tables=tables)
    else:
        with connect_records(data.as_records()) as records:
            yield OpenRecords(data=data.as_records(), tables=records)
