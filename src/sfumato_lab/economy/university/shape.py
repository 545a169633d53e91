"""The shape of people who left universities: how small cells are, where people went, and what they earn."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sfumato_lab.economy.frame import asking, need_files
from sfumato_lab.economy.university.generate import MOST_EARNINGS, MOST_INSTITUTIONS, file_names
from sfumato_lab.economy.university.titles import MOST_YEARS, SECTOR, TITLE

SMALL: Final = 10

_PEOPLE = """
select count(distinct filename), count(*), count(*) filter (years = 1), max(years)
from (select filename, person, count(*) as years from read_parquet($files, filename = true) group by all)
"""
_EARNINGS = "select count(*), avg((earnings > $most)::int) from read_parquet($files)"
_CELLS = """
select count(*), median(people), min(people), max(people), avg((people < $small)::int)
from (select count(*) as people from read_parquet($files, filename = true) group by filename, title, sector, years)
"""
_INDUSTRY = """
select avg((sector = 'industry')::int) from read_parquet($files) where title = 'graduate' and years = '1'
"""
_MEANS = """
select title, years::int, avg(least(earnings, $most)) from read_parquet($files)
where years::int in (1, $last) group by all
"""


@dataclass(frozen=True, kw_only=True)
class UniversityShape:
    """What protection meets in employee reports."""

    institutions: int
    people: int
    """People with earnings in at least one year."""
    records: int
    """Years with earnings."""
    one_year: int
    """People with earnings in one year only."""
    longest: int
    """Years with earnings of one person, at most."""
    cells: int
    """Combinations of institution, title, sector and year with a person."""
    median: float
    """People of a cell; half of the cells have fewer."""
    smallest: int
    largest: int
    small: float
    """Share of cells with fewer than SMALL people."""
    above: float
    """Share of earnings above the bound, which count as the bound."""
    industry: float
    """Share of graduate students with earnings one year after who went to industry."""
    means: tuple[tuple[str, float, float], ...]
    """Titles with their mean earnings in the first and in the last year."""

    def rows(self) -> tuple[tuple[str, str, str], ...]:
        """What, ours, and the figure published about such reports: the lines of a table for reading."""
        unknown = "not published"
        return (
            ("institutions", f"{self.institutions:,}", unknown),
            ("people with earnings", f"{self.people:,}", unknown),
            ("years with earnings", f"{self.records:,}", unknown),
            ("people with one year only", f"{self.one_year / self.people:.1%}", unknown),
            ("most years of a person", f"{self.longest:,}", "up to 10"),
            ("sectors", f"{len(SECTOR)}", "3"),
            ("titles by sectors", f"{len(TITLE) * len(SECTOR)}", "9"),
            ("cells by institution, title, sector and year", f"{self.cells:,}", unknown),
            ("people of a cell: median", f"{self.median:,.0f}", unknown),
            ("people of a cell: least and most", f"{self.smallest:,}, {self.largest:,}", unknown),
            (f"cells with fewer than {SMALL} people", f"{self.small:.1%}", unknown),
            (f"earnings above {MOST_EARNINGS:,} dollars", f"{self.above:.2%}", unknown),
            ("graduate students who went to industry", f"{self.industry:.1%}", "almost 40%"),
            *(
                (f"mean earnings of {title}, years 1 and {MOST_YEARS}", f"{first:,.0f}, {last:,.0f}", unknown)
                for title, first, last in self.means
            ),
        )


def measure_university(folder: Path) -> UniversityShape:
    """The shape of the employee reports in a folder, from the files of all its institutions."""
    folder = Path(folder)
    need_files(folder, file_names(1)[:1], what="employees of universities", command="sfumato economy university")
    every = [folder / name for name in file_names(MOST_INSTITUTIONS) if name.endswith(".parquet")]
    with asking(*(path for path in every if path.is_file())) as ask:
        ((institutions, people, one_year, longest),) = ask(_PEOPLE)
        ((records, above),) = ask(_EARNINGS, most=MOST_EARNINGS)
        ((cells, median, smallest, largest, small),) = ask(_CELLS, small=SMALL)
        ((industry,),) = ask(_INDUSTRY)
        found = ask(_MEANS, most=MOST_EARNINGS, last=MOST_YEARS)
        means = {(title, year): mean for title, year, mean in found}
    return UniversityShape(
        institutions=institutions,
        people=people,
        records=records,
        one_year=one_year,
        longest=longest,
        cells=cells,
        median=median,
        smallest=smallest,
        largest=largest,
        small=small,
        above=above,
        industry=industry,
        means=tuple(
            (title, means[title, 1], means[title, MOST_YEARS])
            for title in TITLE.codes
            if {(title, 1), (title, MOST_YEARS)} <= means.keys()
        ),
    )
