"""The shape of a federal workforce, in the figures published about the real one."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import duckdb
import numpy as np

from sfumato_lab.economy import files
from sfumato_lab.economy.federal.codes import STATES
from sfumato_lab.economy.federal.generate import EMPLOYERS, HISTORIES
from sfumato_lab.economy.frame import need_files

PERCENTILES: Final = (5, 10, 25, 50, 75, 90, 95)
PUBLISHED_PERCENTILES: Final = (6, 9, 19, 35, 75, 161, 272)
"""Edges in a cell of the table of states by states, at these percentiles of the cells."""
CELLS: Final = len(STATES) * (len(STATES) + 1) // 2

_EDGES = """
with several as (from read_parquet($jobs) select * qualify count(*) over (partition by worker) > 1)
select least(a.state, b.state) as one, greatest(a.state, b.state) as other,
       count(*)::bigint as edges, sum(workers)::bigint as workers
from (
    select x.employer as first, y.employer as second, count(*) as workers
    from several x join several y on x.worker = y.worker and x.employer < y.employer
    group by all
)
join read_parquet($employers) a on first = a.employer
join read_parquet($employers) b on second = b.employer
group by all
"""
_PERSONS = """
select count(*), sum(held), count(*) filter (held = 1)
from (select count(*) as held from read_parquet($jobs) group by worker)
"""


@dataclass(frozen=True, kw_only=True)
class FederalShape:
    """What was published about the real workforce, and a little more."""

    persons: int
    employers: int
    """Employers with at least one job."""
    states: int
    jobs: int
    """Distinct pairs of a worker and an employer."""
    job_quarters: int
    """Rows of the histories; 0 without quarters."""
    one_employer: float
    """Share of workers with one employer."""
    edges: int
    """Pairs of employers that share a worker."""
    shared: int
    """Workers that two employers share, summed over these pairs."""
    cells: int
    """Pairs of states, a state with itself included, that have an edge."""
    percentiles: tuple[float, ...]
    """Edges in a cell, at the percentiles in PERCENTILES; cells without an edge count as 0."""
    largest_cell: int
    largest_pair: tuple[str, str]
    """The two states of the largest cell."""

    @property
    def multiplicity(self) -> int:
        """Workers of all edges and of all loops, a loop being an employer with the workers it alone has."""
        return self.shared + round(self.one_employer * self.persons)

    def rows(self) -> tuple[tuple[str, str, str], ...]:
        """What, ours, and the figure published for 13 years: the lines of a table for reading."""
        return (
            ("persons", f"{self.persons:,}", "2,172,359"),
            ("employers", f"{self.employers:,}", "7,341"),
            ("states", f"{self.states:,}", "51"),
            ("jobs: pairs of worker and employer", f"{self.jobs:,}", "2,634,324"),
            ("job-quarters", f"{self.job_quarters:,}" if self.job_quarters else "none", "49,131,943"),
            ("workers with one employer", f"{self.one_employer:.1%}", "about 85%"),
            ("edges: pairs of employers that share a worker", f"{self.edges:,}", "123,930"),
            ("workers of all edges and loops", f"{self.multiplicity:,}", "2,465,461"),
            ("pairs of states with an edge", f"{self.cells:,}", f"{CELLS:,}"),
            *(
                (f"edges in a pair of states, percentile {percent}", f"{ours:,.0f}", f"{published:,}")
                for percent, ours, published in zip(PERCENTILES, self.percentiles, PUBLISHED_PERCENTILES, strict=True)
            ),
            ("edges in the largest pair of states", f"{self.largest_cell:,}", "15,035"),
        )


def measure_federal(folder: Path) -> FederalShape:
    """The shape of the federal workforce in a folder, from its files."""
    folder = Path(folder)
    need_files(folder, (EMPLOYERS, files.JOBS), what="a federal workforce", command="sfumato economy federal")
    jobs, employers = {"jobs": str(folder / files.JOBS)}, {"employers": str(folder / EMPLOYERS)}
    with duckdb.connect() as connection:

        def ask(sql: str, paths: dict[str, str]) -> tuple[int, ...]:
            row = connection.execute(sql, paths).fetchone()
            assert row is not None
            return row

        persons, held, with_one = ask(_PERSONS, jobs)
        (with_jobs,) = ask("select count(distinct employer) from read_parquet($jobs)", jobs)
        (states,) = ask("select count(distinct state) from read_parquet($employers)", employers)
        histories = {"histories": str(folder / HISTORIES)}
        panel = (folder / HISTORIES).is_file()
        (rows,) = ask("select count(*) from read_parquet($histories)", histories) if panel else (0,)
        table = connection.execute(_EDGES, jobs | employers).to_arrow_table()
    edges = table["edges"].to_numpy()
    largest = int(edges.argmax())
    with_empty = np.concatenate([np.zeros(CELLS - len(edges), dtype=np.int64), edges])
    return FederalShape(
        persons=persons,
        employers=with_jobs,
        states=states,
        jobs=int(held),
        job_quarters=rows,
        one_employer=with_one / persons,
        edges=int(edges.sum()),
        shared=int(table["workers"].to_numpy().sum()),
        cells=len(edges),
        percentiles=tuple(np.percentile(with_empty, PERCENTILES).tolist()),
        largest_cell=int(edges[largest]),
        largest_pair=(table["one"][largest].as_py(), table["other"][largest].as_py()),
    )
