"""The shape of graduates or veterans: how small cells are, and how earnings spread within them."""

from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from sfumato_lab.economy.frame import asking, need_files
from sfumato_lab.economy.graduates.draws import AFTER
from sfumato_lab.economy.graduates.generate import EARNINGS, NAMES

WITHHELD, LARGE = 30, 100
"""Cells with fewer people are withheld, and those from the second number on are called large."""

_PEOPLE = """
select count(distinct person), count(*), quantile_cont(earnings, [0.25, 0.5, 0.75]), max(earnings)
from read_parquet($files)
"""
_CELLS = """
with cells as (
    select count(*) as people, stddev_pop(ln(earnings)) as spread, quantile_cont(earnings, [0.25, 0.75]) as quartiles
    from read_parquet($files) group by years, {by}
)
select count(*), median(people), max(people), avg((people < $withheld)::int), avg((people >= $large)::int),
       sum(people) filter (people < $withheld) / sum(people),
       median(spread) filter (people >= $large), median(quartiles[2] / quartiles[1]) filter (people >= $large)
from cells
"""
_YEARS = "select years::int, quantile_cont(earnings, [0.25, 0.5, 0.75]) from read_parquet($files) group by 1"

Quartiles = tuple[float, float, float]


@dataclass(frozen=True, kw_only=True)
class GraduatesShape:
    """What protection meets in percentiles of earnings."""

    veterans: bool
    people: int
    """People with earnings in at least one of the years."""
    records: int
    quartiles: Quartiles
    """Of all years together, in dollars."""
    most: int
    """The highest earnings, in dollars."""
    cells: int
    """Cells, years included, with a person."""
    median: float
    """People of a cell; half of the cells have fewer."""
    largest: int
    withheld: float
    """Share of cells that are too small to be published."""
    large: float
    """Share of cells with at least LARGE people."""
    lost: float
    """Share of records in cells that are too small."""
    spread: float | None
    """Standard deviation of log earnings in the middling large cell; None where no cell is large."""
    ratio: float | None
    """The 75th percentile beside the 25th in the middling large cell."""
    by_year: tuple[tuple[int, Quartiles], ...]

    def rows(self) -> tuple[tuple[str, str, str], ...]:
        """What, ours, and the figure published about such tables: the lines of a table for reading."""
        unknown = "not published"
        return (
            ("veterans" if self.veterans else "graduates", f"{self.people:,}", unknown),
            ("years with earnings", f"{self.records:,}", unknown),
            ("years after", ", ".join(str(year) for year, _ in self.by_year), ", ".join(map(str, AFTER))),
            ("cells with a person", f"{self.cells:,}", unknown),
            ("people of a cell: median and most", f"{self.median:,.0f}, {self.largest:,}", unknown),
            (f"cells with fewer than {WITHHELD} people", f"{self.withheld:.1%}", unknown),
            ("records in those", f"{self.lost:.1%}", unknown),
            (f"cells with {LARGE} people or more", f"{self.large:.1%}", unknown),
            ("spread of log earnings in those", _number(self.spread), unknown),
            ("75th beside 25th percentile in those", _number(self.ratio), unknown),
            ("highest earnings, dollars", f"{self.most:,}", unknown),
            *(
                (f"percentiles 25, 50, 75 in year {year}", ", ".join(f"{value:,.0f}" for value in quartiles), unknown)
                for year, quartiles in self.by_year
            ),
        )


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.2f}"


def measure_graduates(folder: Path) -> GraduatesShape:
    """The shape of the graduates or veterans in a folder, from their file."""
    folder = Path(folder)
    need_files(folder, (EARNINGS,), what="graduates or veterans", command="sfumato economy graduates")
    veterans = NAMES[True][0] in pq.read_schema(folder / EARNINGS).names
    cells = _CELLS.format(by=", ".join(NAMES[veterans]))
    with asking(folder / EARNINGS) as ask:
        ((people, records, quartiles, most),) = ask(_PEOPLE)
        ((number, median, largest, withheld, large, lost, spread, ratio),) = ask(cells, withheld=WITHHELD, large=LARGE)
        by_year = sorted(ask(_YEARS))
    return GraduatesShape(
        veterans=veterans,
        people=people,
        records=records,
        quartiles=tuple(quartiles),
        most=most,
        cells=number,
        median=median,
        largest=largest,
        withheld=withheld,
        large=large,
        lost=lost or 0.0,
        spread=spread,
        ratio=ratio,
        by_year=tuple((year, tuple(of_year)) for year, of_year in by_year),
    )
