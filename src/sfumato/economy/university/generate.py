"""Synthetic employees who left a university, year by year since, and a release file for every institution."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from sfumato.economy import files
from sfumato.economy.made import SEEDS, Made, Progress, check_request
from sfumato.economy.streams import Purpose, stream
from sfumato.economy.university.careers import Careers, draw_careers
from sfumato.economy.university.institutions import FEWEST as FEWEST_OF_ONE
from sfumato.economy.university.institutions import Institution, draw_institutions
from sfumato.economy.university.release import release_text
from sfumato.economy.university.titles import SECTOR, TITLE, YEARS

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
