"""A synthetic federal workforce: employers, workers, who worked where, and what they earned in every quarter."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from sfumato.errors import SfumatoError
from sfumato.frame.periods import Span, number_of
from sfumato_lab.economy import files
from sfumato_lab.economy.federal import agencies
from sfumato_lab.economy.federal.agencies import AGENCY, INDUSTRY
from sfumato_lab.economy.federal.codes import AGE, CODELISTS, STATE, TILES
from sfumato_lab.economy.federal.draws import Careers, Histories, People, draw_careers, draw_histories, draw_people
from sfumato_lab.economy.federal.mobility import Employers, Mobility, draw_employers, mobility_between
from sfumato_lab.economy.files import attributes_text
from sfumato_lab.economy.frame import SEEDS, KeyedMade, Progress, Purpose, check_request, stream
from sfumato_lab.economy.jobs.codelists import EDUCATION, SEX
from sfumato_lab.economy.jobs.draws import Layout
from sfumato_lab.economy.maps import write_tiles

# The release file that comes with a federal workforce, ready to run once there is a key.

_HEAD = """\
# A release of a federal workforce: which tables to publish, and how to protect them.
# Factors come from a key: make one with `sfumato keys new sfumato.key` before the first run.

[release]
title = "Federal workers who link employers and states"
population = "federal jobs"
period = "{period}"
key = "sfumato.key"                          # secret; permanent factors are computed from it

[data]
engine = "duckdb"
"""
_JOBS = 'jobs = { path = "jobs.parquet", worker = "worker", workplace = "employer" }\n'
_HISTORIES = """\
jobs = {{ path = "histories.parquet", worker = "worker", workplace = "employer", period = "quarter", \
first = "{first}", last = "{last}", earnings = "earnings" }}
"""
_UNITS = """\
workplaces = { path = "employers.parquet", key = "employer" }
workers = { path = "workers.parquet", key = "worker" }
# Known to everyone about an employer; all other attributes are confidential.
public = ["state", "agency", "industry"]

[data.attributes]
"""
_GRAPHS = """
# Two employers are linked when somebody has worked for both. A link takes the factor of one of the two, by a rule for
# their identifiers of twelve characters.
[[table]]
name = "links_between_states"
title = "Pairs of employers that share a worker, by state of both"
graph = { between = "employers", attribute = "state", weight = "edges" }
protect = { method = "noise-infusion", edges = "twelve-characters" }

[[table]]
name = "workers_between_states"
title = "Workers shared by pairs of employers, by state of both"
graph = { between = "employers", attribute = "state", weight = "workers" }
protect = { method = "noise-infusion", edges = "twelve-characters" }
"""
_PANEL = """
[[table]]
name = "indicators"
title = "Workforce indicators by state, agency and quarter"
indicators = "all"
by = ["state", "agency", "quarter"]
protect = { method = "noise-infusion" }

[[table]]
name = "flows_between_states"
title = "Workers who left an employer and joined another in the same quarter, by state of both"
flow = { attribute = "state", weight = "workers" }
by = ["quarter"]
protect = { method = "noise-infusion", edges = "twelve-characters" }
"""


def release_text(*, period: str, span: Span | None) -> str:
    """The text of the release file, on jobs of a period or on histories of the quarters of a span."""
    jobs = _JOBS if span is None else _HISTORIES.format(first=span.first, last=span.last)
    tables = _GRAPHS if span is None else _GRAPHS + _PANEL
    return _HEAD.format(period=period) + jobs + _UNITS + attributes_text(CODELISTS, on_maps=["state"]) + tables


PERSONS = 2_170_000
FEWEST_PERSONS, MOST_PERSONS = 5_000, 5_000_000
MOST_QUARTERS = 60
YEARS = 13
"""Years that a workforce without quarters is about, as published."""
EMPLOYERS: Final = "employers.parquet"
HISTORIES: Final = "histories.parquet"
# The release file comes last: a folder that has it has all the others.
FILES: Final = (
    EMPLOYERS,
    files.WORKERS,
    files.JOBS,
    *files.codelist_names(CODELISTS),
    files.map_name("state"),
    files.RELEASE,
)
CHUNK = 50_000
"""Persons drawn together; each chunk has its streams, so changing this changes the workforce."""


@dataclass(frozen=True, kw_only=True)
class FederalWorkforce(KeyedMade):
    """What was generated, and where."""

    persons: int
    employers: int
    jobs: int
    """Distinct pairs of a worker and an employer over the whole period."""
    quarters: int
    job_quarters: int
    """Rows of the histories; 0 without quarters."""

    @property
    def names(self) -> tuple[str, ...]:
        """Every file, the release file last."""
        return _names(self.quarters)

    @property
    def words(self) -> str:
        """What it holds, in a sentence without its end."""
        panel = f", {self.job_quarters:,} job-quarters in {self.quarters} quarters" if self.quarters else ""
        return f"{self.jobs:,} jobs of {self.persons:,} persons with {self.employers:,} employers{panel}"


@dataclass(frozen=True, kw_only=True)
class _Drawn:
    """A chunk of workers, with keys from `begin` on."""

    begin: int
    people: People
    careers: Careers
    histories: Histories | None


def generate_federal(
    folder: Path,
    *,
    persons: int = PERSONS,
    quarters: int = 0,
    first: str = "2010-Q1",
    seed: int = 1,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> FederalWorkforce:
    """Write a federal workforce of so many persons to a folder, with earnings if any quarters are asked for.

    The content depends on `persons`, `quarters`, `first` and `seed` alone, and who worked where not even on the
    quarters. Memory does not grow with the persons. `progress` is told how many persons are done, of how many.
    """
    check_request(
        "federal workforce",
        persons=(persons, FEWEST_PERSONS, MOST_PERSONS),
        quarters=(quarters, 0, MOST_QUARTERS),
        seed=(seed, *SEEDS),
    )
    span = _span(first, quarters)
    folder, names = Path(folder), _names(quarters)
    former = () if quarters else (HISTORIES,)
    with files.staging(folder, overwrite=overwrite, names=names, former=former) as aside:
        employers = draw_employers(persons=persons, seed=seed)
        _write_description(aside, employers, first=first, span=span)
        chunks = _draw(mobility_between(employers), quarters=quarters, seed=seed)
        jobs, job_quarters = _write_people(aside, chunks, employers, span=span, progress=progress)
    return FederalWorkforce(
        folder=folder,
        seed=seed,
        persons=persons,
        employers=len(employers),
        jobs=jobs,
        quarters=quarters,
        job_quarters=job_quarters,
    )


def _names(quarters: int) -> tuple[str, ...]:
    return (HISTORIES, *FILES) if quarters else FILES


def _span(first: str, quarters: int) -> Span | None:
    """The quarters of the histories, None when there are none."""
    start = Span(first=first, last=first)
    if not start.quarterly or "-" not in first:
        raise SfumatoError(
            "federal workforce: first", expected="a quarter such as 2010-Q1", found=first, do="name the first quarter"
        )
    last = start.low + quarters - 1
    return Span(first=first, last=f"{last // 4}-Q{last % 4 + 1}") if quarters else None


def _draw(mobility: Mobility, *, quarters: int, seed: int) -> Iterator[_Drawn]:
    """All workers, one chunk after the other."""
    employers = mobility.employers
    persons = int(employers.size.sum())
    layout = Layout(ends=np.cumsum(employers.size), start=int(stream(seed, Purpose.FEDERAL_CAREERS).integers(persons)))
    for chunk, begin in enumerate(range(0, persons, CHUNK)):
        start = layout.establishments(np.arange(begin, min(begin + CHUNK, persons)))
        careers = draw_careers(start, mobility, stream(seed, Purpose.FEDERAL_CAREERS, chunk + 1))
        people = draw_people(employers.agency[start], stream(seed, Purpose.FEDERAL_PEOPLE, chunk))
        histories = None
        if quarters:
            rng = stream(seed, Purpose.FEDERAL_HISTORIES, chunk)
            histories = draw_histories(careers, employers, people, quarters=quarters, rng=rng)
        yield _Drawn(begin=begin + 1, people=people, careers=careers, histories=histories)


def _write_description(folder: Path, employers: Employers, *, first: str, span: Span | None) -> None:
    files.write_codelists(folder, CODELISTS)
    write_tiles(folder / files.map_name("state"), TILES)
    year = number_of(first) // 4
    period = f"{year}-{(span.high // 4) if span else year + YEARS - 1}"
    (folder / files.RELEASE).write_text(release_text(period=period, span=span), encoding="utf-8")
    attributes = files.table(
        {
            "state": (employers.state.astype(np.int8), STATE),
            "agency": (employers.agency.astype(np.int8), AGENCY),
            "industry": (agencies.industries()[employers.agency], INDUSTRY),
        }
    )
    table = attributes.add_column(0, "employer", employers.identifiers)
    with files.open_parquet(folder / EMPLOYERS, schema=table.schema) as writer:
        writer.write_table(table)


def _write_people(
    folder: Path,
    chunks: Iterator[_Drawn],
    employers: Employers,
    *,
    span: Span | None,
    progress: Progress | None,
) -> tuple[int, int]:
    """Write workers, jobs and histories chunk by chunk; the number of jobs and of job-quarters."""
    identifiers = employers.identifiers
    quarters = pa.array(span.codes() if span else (), pa.string())
    jobs = job_quarters = done = 0
    with files.writing(folder) as write:
        for drawn in chunks:
            done += write(files.WORKERS, _workers_table(drawn))
            jobs += write(files.JOBS, _jobs_table(drawn, identifiers))
            if drawn.histories is not None:
                job_quarters += write(HISTORIES, _histories_table(drawn.begin, drawn.histories, identifiers, quarters))
            if progress is not None:
                progress(done, int(employers.size.sum()))
    return jobs, job_quarters


def _workers_table(drawn: _Drawn) -> pa.Table:
    people = drawn.people
    return files.table(
        {
            "worker": drawn.begin + np.arange(len(people.sex)),
            "sex": (people.sex, SEX),
            "age": (people.age, AGE),
            "education": (people.education, EDUCATION),
        }
    )


def _jobs_table(drawn: _Drawn, identifiers: pa.Array) -> pa.Table:
    careers = drawn.careers
    order = np.lexsort((careers.employer, careers.person))
    employer = pa.DictionaryArray.from_arrays(pa.array(careers.employer[order].astype(np.int32)), identifiers)
    return pa.table({"worker": drawn.begin + careers.person[order], "employer": employer})


def _histories_table(begin: int, histories: Histories, identifiers: pa.Array, quarters: pa.Array) -> pa.Table:
    return pa.table(
        {
            "worker": begin + histories.person,
            "employer": pa.DictionaryArray.from_arrays(pa.array(histories.employer), identifiers),
            "quarter": pa.DictionaryArray.from_arrays(pa.array(histories.quarter), quarters),
            "earnings": histories.earnings,
        }
    )
