"""Open the data of a release, whatever kind they are of: check them, read their codes, answer questions."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol

from sfumato.cells import Cells, Dimension
from sfumato.engine.chunks import Parted
from sfumato.engine.connect import Tables, connect
from sfumato.engine.factors import factors_of
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
from sfumato.keys import Secret
from sfumato.microdata import Microdata
from sfumato.statistics.cube.cube import Cube
from sfumato.statistics.cube.figures import Sampling, fitted
from sfumato.statistics.cube.tabulate import (
    CubeQuestion,
    RecordTotals,
    record_totals,
    replicate_estimates,
    tabulated_cube,
)
from sfumato.statistics.jobs.question import Question
from sfumato.statistics.jobs.tabulate import parted, tabulate
from sfumato.statistics.panel.question import IndicatorQuestion, PairQuestion
from sfumato.statistics.panel.tabulate_indicators import indicators
from sfumato.statistics.panel.tabulate_pairs import pairs, refuse_other_lengths
from sfumato.statistics.panel.tabulate_workers import refuse_too_many
from sfumato.statistics.people.question import SampleQuestion
from sfumato.statistics.people.samples import Samples
from sfumato.statistics.people.tabulate import (
    LARGEST_GROUP,
    clipped_values,
    is_plain_count,
    people_parted,
    refuse_unsuitable,
    sampled,
    samples,
)
from sfumato.statistics.questions import Asked
from sfumato.statistics.totals.question import ContributorQuestion
from sfumato.statistics.totals.tabulate import contributors

# Answer the questions of a release: each kind by its own query, with one scan of the records for each kind.


def answer(frame: Frame, tables: Tables, asked: Mapping[str, Asked], secret: Secret | None) -> dict[str, Cells]:
    """The true cells of every question, with the columns that its method needs; `secret` holds the factors' key."""
    factors = None if secret is None else factors_of(secret)
    counts = {name: question for name, question in asked.items() if isinstance(question, Question)}
    found = tabulate(frame, tables, counts, factors) if counts else {}
    histories = {name: question for name, question in asked.items() if isinstance(question, IndicatorQuestion)}
    graphs = {name: question for name, question in asked.items() if isinstance(question, PairQuestion)}
    if factors is None and (histories or graphs):
        raise ValueError("indicators, flows and graphs need the key of their factors")
    if factors is not None and histories:
        found |= indicators(frame, tables, histories, factors)
    if factors is not None and graphs:
        found |= pairs(frame, tables, graphs, factors)
    return {name: found[name] for name in asked}


ANY_NUMBER: Mapping[str, int] = MappingProxyType({})


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

    def suits(self, asked: Mapping[str, Asked], most: Mapping[str, int] = ANY_NUMBER) -> None:
        """Refuse data that a question cannot be asked of, before anything is charged.

        `most` is how many people of a group the method of a table has room for, where it has a limit.
        """
        ...

    def answer(self, asked: Mapping[str, Asked], secret: Secret | None) -> dict[str, Cells]:
        """The true cells of every question, with the columns that its method needs."""
        ...

    def in_parts(
        self, asked: Mapping[str, Asked], parts: Mapping[str, int | None], secret: Secret | None
    ) -> AbstractContextManager[dict[str, Parted]]:
        """Counts that are cut into parts, in as many as `parts` says where it does; they are not counted yet."""
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

    def suits(
        self,
        asked: Mapping[str, Asked],
        most: Mapping[str, int] = ANY_NUMBER,  # noqa: ARG002 (counts of jobs have no such limit)
    ) -> None:
        """Refuse identifiers that the rule of an edge cannot read, and graphs of workers that take too long."""
        pairs = [question for question in asked.values() if isinstance(question, PairQuestion)]
        if any(question.rule == "twelve-characters" for question in pairs):
            refuse_other_lengths(self.frame, self.tables)
        for question in pairs:
            refuse_too_many(self.frame, self.tables, question)

    def answer(self, asked: Mapping[str, Asked], secret: Secret | None) -> dict[str, Cells]:
        """Counts, indicators, flows and graphs."""
        return answer(self.frame, self.tables, asked, secret)

    @contextmanager
    def in_parts(
        self, asked: Mapping[str, Asked], parts: Mapping[str, int | None], secret: Secret | None
    ) -> Iterator[dict[str, Parted]]:
        """Counts of jobs that are cut into parts."""
        counts = {name: question for name, question in asked.items() if isinstance(question, Question)}
        if len(counts) < len(asked):
            raise ValueError("tables of jobs in parts are counts")
        factors = None if secret is None else factors_of(secret)
        with parted(self.frame, self.tables, counts, parts, factors) as cut:
            yield cut


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

    def suits(self, asked: Mapping[str, Asked], most: Mapping[str, int] = ANY_NUMBER) -> None:
        """Refuse groups in several calibration classes, and values whose squares may not add up in 64 bits."""
        for name, question in self._of_people(asked).items():
            refuse_unsuitable(self.tables, name, question, most=most.get(name, LARGEST_GROUP))

    def answer(self, asked: Mapping[str, Asked], secret: Secret | None) -> dict[str, Cells]:
        """Totals with their largest contributors, and sums of groups of people."""
        questions = {name: question for name, question in asked.items() if isinstance(question, ContributorQuestion)}
        people = {name: question for name, question in self._of_people(asked).items() if not question.of_values}
        if (questions and secret is None) or len(questions) + len(people) < len(asked):
            raise ValueError("records answer questions about contributors, with a key, and about people")
        found = sampled(self.tables, people) if people else {}
        if secret is not None and questions:
            found |= contributors(self.data, self.tables, questions, secret)
        return {name: found[name] for name in asked}

    @contextmanager
    def in_parts(
        self,
        asked: Mapping[str, Asked],
        parts: Mapping[str, int | None],
        secret: Secret | None,  # noqa: ARG002 (counts of people have no key)
    ) -> Iterator[dict[str, Parted]]:
        """Counts of people that are cut into parts."""
        counts = {name: question for name, question in self._of_people(asked).items() if is_plain_count(question)}
        if len(counts) < len(asked):
            raise ValueError("tables of people in parts are counts")
        yield people_parted(self.tables, counts, parts)

    def samples(self, asked: Mapping[str, Asked]) -> dict[str, Samples]:
        """The values of people, for the questions that ask for these."""
        people = self._of_people(asked)
        return {name: samples(self.tables, question) for name, question in people.items() if question.of_values}

    def clipped(self, asked: Mapping[str, Asked]) -> dict[str, int]:
        """How many records count with a bound instead of their value, by measure: confidential."""
        return clipped_values(self.tables, self._of_people(asked))

    def _of_people(self, asked: Mapping[str, Asked]) -> dict[str, SampleQuestion]:
        return {name: question for name, question in asked.items() if isinstance(question, SampleQuestion)}

    def totals(self, question: CubeQuestion) -> RecordTotals:
        """What all records together add to a cube."""
        return record_totals(self.data, self.tables, question.measures)

    def table(self, question: CubeQuestion) -> Cube:
        """A true table of a cube."""
        return tabulated_cube(self.data, self.tables, question)

    def cube(self, question: CubeQuestion, margins: Sequence[tuple[Dimension, ...]]) -> tuple[Cube, Sampling | None]:
        """The true cube, and the variance function of replicate weights, fitted to these tables, if there are any."""
        cube = tabulated_cube(self.data, self.tables, question)
        if self.data.records.replicates is None:
            return cube, None
        return cube, fitted([replicate_estimates(self.data, self.tables, by, question.measures) for by in margins])


@contextmanager
def open_data(data: Frame | Microdata) -> Iterator[OpenJobs | OpenRecords]:
    """Open the engine that data ask for; everything temporary is dropped on leaving."""
    if isinstance(data, Microdata):
        with connect_records(data) as records:
            yield OpenRecords(data=data, tables=records)
    else:
        with connect(data) as tables:
            yield OpenJobs(frame=data, tables=tables)
