"""Synthetic graduates, or veterans, with earnings one, five and ten years after."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from sfumato_lab.economy import files
from sfumato_lab.economy.files import attributes_text
from sfumato_lab.economy.frame import SEEDS, Made, Progress, Purpose, check_request, stream
from sfumato_lab.economy.graduates import schooling, service
from sfumato_lab.economy.graduates.draws import AFTER, Earners, Population, draw_people
from sfumato_lab.economy.graduates.schooling import draw_graduates
from sfumato_lab.economy.graduates.service import draw_veterans
from sfumato_lab.economy.jobs.codelists import Codelist

# The release file that comes with graduates or veterans: percentiles of earnings, years after.

MEDIAN: Final = {False: 48_000, True: 40_000}
"""Dollars a year: the median that bins are made for, of graduates and of veterans; a round guess, not of the data."""
SIGMA: Final = "0.7"
"""The spread of log earnings that bins are made for."""
BINS: Final = 32

_TEXT = """\
# Publish it with `sfumato run release.toml`; docs/methods/earnings-percentiles.md explains the method.

[release]
title = "Earnings of {who}"
population = "{who}"
period = "{period}"
# A person is in one cell of each of {years} years: {years} x 1.5 = 4.5.
budget = {{ epsilon = 4.5, definition = "individuals" }}

[data]
engine = "duckdb"
records = {{ path = "earnings.parquet", unit = "person", period = "years" }}

[data.attributes]
{attributes}
[data.measures]
earnings = {{ label = "Earnings", unit = "dollars a year", minimum = 0 }}

# Bins hold equal shares of a log-normal distribution that everybody may know. Cells whose noisy count is below 30 are
# withheld.
[[table]]
name = "percentiles"
title = "Percentiles of earnings by {words}"
quantiles = {{ of = "earnings", at = [25, 50, 75], bins = {{ median = {median}, sigma = {sigma}, number = {bins} }} }}
by = {by}
decimals = 0
protect = {{ method = "noisy-quantiles", epsilon = 4.5, minimum = 30 }}
"""


def release_text(population: Population, *, veterans: bool) -> str:
    """The text of the release file on people of these cells."""
    codelists = (*population.codelists, population.years)
    *words, last = (codelist.label[0].lower() + codelist.label[1:] for codelist in codelists)
    return _TEXT.format(
        who="veterans" if veterans else "graduates",
        period="2000-2015" if veterans else "2001-2015",
        years=len(AFTER),
        attributes=attributes_text(codelists),
        words=f"{', '.join(words)} and {last}",
        median=MEDIAN[veterans],
        sigma=SIGMA,
        bins=BINS,
        by="[" + ", ".join(f'"{codelist.name}"' for codelist in codelists) + "]",
    )


FEWEST, MOST = 1_000, 20_000_000
EARNINGS: Final = "earnings.parquet"
CHUNK = 1 << 16
"""People drawn together; each chunk has its stream, so changing this changes the people."""
NAMES: Final = {
    False: ("institution", schooling.DEGREE.name, schooling.FIELD.name, schooling.COHORT.name),
    True: (service.BRANCH.name, service.OCCUPATION.name),
}
"""The attributes of graduates, and of veterans, beside the years after."""


@dataclass(frozen=True, kw_only=True)
class GraduatesEconomy(Made):
    """What was generated, and where."""

    veterans: bool
    """Whether they are veterans and not graduates."""
    people: int
    cells: int
    """Combinations of the attributes, without the years after."""
    records: int
    """Years with earnings of all people."""

    @property
    def names(self) -> tuple[str, ...]:
        """Every file, the release file last."""
        return file_names(veterans=self.veterans)

    @property
    def words(self) -> str:
        """What it holds, in a sentence without its end."""
        who = "veterans" if self.veterans else "graduates"
        return f"{self.records:,} years of earnings of {self.people:,} {who} in {self.cells:,} cells"


def file_names(*, veterans: bool) -> tuple[str, ...]:
    """The files of graduates or of veterans; a folder with the release file, the last one, has all the others."""
    codelists = (f"codelists/{name}.csv" for name in (*NAMES[veterans], "years"))
    return (EARNINGS, *codelists, files.RELEASE)


def generate_graduates(
    folder: Path,
    *,
    people: int = 200_000,
    veterans: bool = False,
    seed: int = 1,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> GraduatesEconomy:
    """Write so many graduates, or veterans, to a folder.

    The content depends on `people`, `veterans` and `seed` alone. Memory does not grow with the people. `progress` is
    told how many people are done, of how many.
    """
    check_request("veterans" if veterans else "graduates", people=(people, FEWEST, MOST), seed=(seed, *SEEDS))
    folder, names = Path(folder), file_names(veterans=veterans)
    former = [name for name in file_names(veterans=not veterans) if name not in names]
    population = draw_veterans(seed) if veterans else draw_graduates(people, seed)
    done = records = 0
    with files.staging(folder, overwrite=overwrite, names=names, former=former) as aside:
        files.write_codelists(aside, (*population.codelists, population.years))
        (aside / files.RELEASE).write_text(release_text(population, veterans=veterans), encoding="utf-8")
        with files.writing(aside) as write:
            for earners in _draw(people, population, seed=seed):
                records += write(EARNINGS, _table(earners, population, first=done + 1))
                done += earners.people
                if progress is not None:
                    progress(done, people)
    return GraduatesEconomy(
        folder=folder, seed=seed, veterans=veterans, people=people, cells=len(population.shares), records=records
    )


def _draw(people: int, population: Population, *, seed: int) -> Iterator[Earners]:
    """All people, one chunk after the other."""
    for chunk, begin in enumerate(range(0, people, CHUNK)):
        yield draw_people(min(CHUNK, people - begin), population, stream(seed, Purpose.GRADUATES_PEOPLE, chunk))


def _table(earners: Earners, population: Population, *, first: int) -> pa.Table:
    codes = np.unravel_index(earners.cell, [len(codelist) for codelist in population.codelists])
    attributes: dict[str, files.Column] = {
        codelist.name: _codes(code, codelist) for code, codelist in zip(codes, population.codelists, strict=True)
    }
    return files.table(
        {
            "person": first + earners.person,
            **attributes,
            "years": (earners.year, population.years),
            "earnings": earners.earnings,
        }
    )


def _codes(code: np.ndarray, codelist: Codelist) -> files.Column:
    return code.astype(np.int32), codelist
