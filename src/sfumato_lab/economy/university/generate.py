"""Synthetic employees who left a university, year by year since, and a release file."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from sfumato_lab.economy import files
from sfumato_lab.economy.files import attributes_text
from sfumato_lab.economy.frame import SEEDS, Made, Progress, Purpose, check_request, stream
from sfumato_lab.economy.jobs.codelists import Codelist
from sfumato_lab.economy.university.draws import FEWEST as FEWEST_OF_ONE
from sfumato_lab.economy.university.draws import Careers, Institution, draw_careers, draw_institutions
from sfumato_lab.economy.university.titles import MOST_YEARS, SECTOR, TITLE, YEARS

# The release file of one institution: employment and mean earnings of people who left it, year by year.

MOST_EARNINGS: Final = 400_000
"""Dollars a year; higher earnings count as this."""

_TEXT = """\
# The employee report of one institution. Publish it with `sfumato run {code}.toml`; docs/methods/small-samples.md
# explains means of earnings. All institutions keep their budgets in one ledger, each on an account of its own.

[release]
title = "Employee report: {name}"
population = "employees of the {name}"
period = "2010-2019"
# A person is in one cell of each of {years} years, and in two tables: {years} x (0.25 + 1) = 12.5.
budget = {{ epsilon = 12.5, definition = "individuals", conditional = true }}
ledger = "ledger.sqlite"
bundle = "bundle-{code}"

[data]
engine = "duckdb"
records = {{ path = "{code}.parquet", unit = "person", period = "years" }}

[data.attributes]
{attributes}
[data.measures]
earnings = {{ label = "Earnings", unit = "dollars a year", minimum = 0, maximum = {most}, outside = "clip" }}

# 0.25 for each year.
[[table]]
name = "employment"
title = "People with earnings, by job title, sector and years since leaving"
count = "records"
by = ["title", "sector", "years"]
protect = {{ method = "laplace", epsilon = 2.5 }}

# 1 for each year: 0.8 for the means, 0.2 for the number of people they are of. One more person moves a mean of n by
# less than {most}/n, so that chi needs no look at the data.
[[table]]
name = "earnings"
title = "Mean earnings, by job title, sector and years since leaving"
mean = "earnings"
by = ["title", "sector", "years"]
decimals = 0
protect = {{ method = "mose", epsilon = 10, count_epsilon = 0.2, chi = {most} }}
"""


def release_text(institution: Institution, codelists: Sequence[Codelist]) -> str:
    """The text of the release file of an institution."""
    return _TEXT.format(
        code=institution.code,
        name=institution.name,
        years=MOST_YEARS,
        attributes=attributes_text(codelists),
        most=MOST_EARNINGS,
    )


FEWEST, MOST = 1_000, 5_000_000
MOST_INSTITUTIONS = 99
CODELISTS: Final = (TITLE, SECTOR, YEARS)
CHUNK = 1 << 15
"""People drawn together; each chunk has its stream, so changing this changes the careers."""


@dataclass(frozen=True, kw_only=True)
class UniversityEconomy(Made):
    """What was generated, and where."""

    institutions: int
    employees: int
    records: int
    """Years with earnings of all of them."""

    @property
    def names(self) -> tuple[str, ...]:
        """Every file, the release files last."""
        return file_names(self.institutions)

    @property
    def releases(self) -> tuple[Path, ...]:
        """The release file of every institution."""
        return self.paths[-self.institutions :]

    @property
    def release(self) -> Path:
        """The release file of the first institution."""
        return self.releases[0]

    @property
    def words(self) -> str:
        """What it holds, in a sentence without its end."""
        return (
            f"{self.records:,} years of earnings of {self.employees:,} people who left {self.institutions:,} "
            f"institution{'s' if self.institutions > 1 else ''}"
        )

    def data(self) -> dict[str, Any]:
        """The same for machines."""
        return {**super().data(), "releases": [str(path) for path in self.releases]}


def file_names(institutions: int) -> tuple[str, ...]:
    """The files of so many institutions, their release files last: a folder with the last one has all the others."""
    codes = [f"u{number + 1:02}" for number in range(institutions)]
    return (
        *(f"{code}.parquet" for code in codes),
        *files.codelist_names(CODELISTS),
        *(f"{code}.toml" for code in codes),
    )


def generate_university(
    folder: Path,
    *,
    employees: int = 80_000,
    institutions: int = 8,
    seed: int = 1,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> UniversityEconomy:
    """Write so many employees of so many institutions to a folder: data and a release file for each institution.

    The content depends on `employees`, `institutions` and `seed` alone. Memory grows with neither. `progress` is told
    how many employees are done, of how many.
    """
    check_request(
        "employees of universities",
        employees=(employees, FEWEST, MOST),
        institutions=(institutions, 1, min(MOST_INSTITUTIONS, employees // FEWEST_OF_ONE)),
        seed=(seed, *SEEDS),
    )
    folder, names = Path(folder), file_names(institutions)
    former = [name for name in file_names(MOST_INSTITUTIONS) if name not in names]
    done = records = 0
    with files.staging(folder, overwrite=overwrite, names=names, former=former) as aside:
        files.write_codelists(aside, CODELISTS)
        for number, institution in enumerate(draw_institutions(institutions, employees=employees, seed=seed)):
            text = release_text(institution, CODELISTS)
            (aside / f"{institution.code}.toml").write_text(text, encoding="utf-8")
            first = 1
            with files.writing(aside) as write:
                for careers in _draw(institution, number, seed=seed):
                    records += write(f"{institution.code}.parquet", _table(careers, first=first))
                    first += careers.people
                    done += careers.people
                    if progress is not None:
                        progress(done, employees)
    return UniversityEconomy(folder=folder, seed=seed, institutions=institutions, employees=employees, records=records)


def _draw(institution: Institution, number: int, *, seed: int) -> Iterator[Careers]:
    """The careers of everybody who left an institution, one chunk after the other."""
    for chunk, begin in enumerate(range(0, institution.employees, CHUNK)):
        # Every institution has streams of its own, more than it can have chunks.
        rng = stream(seed, Purpose.UNIVERSITY_CAREERS, MOST * number + chunk)
        yield draw_careers(min(CHUNK, institution.employees - begin), pay=institution.pay, rng=rng)


def _table(careers: Careers, *, first: int) -> pa.Table:
    return files.table(
        {
            "person": first + careers.person,
            "title": (careers.title, TITLE),
            "sector": (careers.sector, SECTOR),
            "years": (careers.year, YEARS),
            "earnings": careers.earnings,
        }
    )
