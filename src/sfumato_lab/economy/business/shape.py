"""The shape of a survey of businesses: how far a few contributors make up a cell, and what else protection meets."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import duckdb
import numpy as np
from numpy.typing import NDArray

from sfumato_lab.economy.business.design import SHAPES
from sfumato_lab.economy.business.generate import BUSINESSES, EMPLOYEES
from sfumato_lab.economy.frame import need_files

SHARES: Final = (0.9, 0.6, 0.3)
"""How much of a cell its first contributor may have, from the most dominated class down."""
FEW: Final = 4
"""The contributors that make up a shape."""
MADE_UP: Final = 0.9
"""A cell is made up of its first four contributors if they have more of it than this."""

_BUSINESSES = """
select count(*), avg((turnover = 0)::int), avg((profit < 0)::int), avg(consent::int), max(turnover)::bigint,
       avg(weight), max(weight), avg((weight = 1)::int)
from read_parquet($businesses)
"""
_ENTERPRISES = """
select count(*), count(*) filter (establishments > 1), max(establishments),
       coalesce(sum(establishments) filter (establishments > 1), 0)::bigint
from (select count(*) as establishments from read_parquet($businesses) group by enterprise)
"""
_OF_ESTABLISHMENTS = "select state, industry, turnover, weight * turnover as part from read_parquet($businesses)"
_OF_ENTERPRISES = """
select state, industry, sum(turnover) as turnover, sum(weight * turnover) as part
from read_parquet($businesses) group by state, industry, enterprise
"""
# The largest are by what they turn over, before weighting.
_CELLS = """
select sum(part) as total, max_by(part, turnover, {few}) as largest
from ({contributors}) group by state, industry having sum(part) > 0
"""
_STAFF = "select count(*), sum(weight * wage) / sum(weight) from read_parquet($employees)"
_STAFF_CELLS = """
select count(*), count(*) filter (establishments = 1), count(*) filter (establishments = 1 and employees > 2)
from (
    select count(distinct business) as establishments, count(*) as employees
    from read_parquet($employees) group by state, industry, occupation
)
"""


@dataclass(frozen=True, kw_only=True)
class Dominance:
    """How the turnover of cells by state and industry divides over their contributors."""

    cells: int
    by_first: tuple[float, ...]
    """Shares of cells by what the first contributor has: one for each class of SHARES, and one for less."""
    made_up: float
    """Share of cells that are made up of their first four contributors."""
    shapes: Mapping[tuple[int, ...], int]
    """Among those, cells by the shape of the paper's Table 2 to which they are nearest."""


@dataclass(frozen=True, kw_only=True)
class BusinessShape:
    """What protection meets in a survey of businesses."""

    businesses: int
    enterprises: int
    several: int
    """Enterprises with several establishments."""
    in_several: int
    """Establishments of those."""
    most_establishments: int
    """Establishments of the largest enterprise."""
    zero: float
    """Share of establishments without turnover."""
    negative: float
    """Share of establishments with a loss."""
    consent: float
    """Share that asked to be protected."""
    largest: int
    """Dollars turned over by the largest establishment."""
    mean_weight: float
    most_weight: float
    sure: float
    """Share of establishments taken for sure, with weight 1."""
    by_establishment: Dominance
    by_enterprise: Dominance
    employees: int
    """Sampled employees."""
    mean_wage: float
    """Weighted mean dollars a week."""
    staff_cells: int
    """Combinations of state, industry and occupation with a sampled employee."""
    of_one: int
    """Those made of the employees of one establishment."""
    several_of_one: int
    """Those made of three or more employees of one establishment."""

    def rows(self) -> tuple[tuple[str, str], ...]:
        """What and how much: the lines of a table for reading."""
        establishment, enterprise = self.by_establishment, self.by_enterprise
        between = (f"{low:.0%} to {high:.0%}" for high, low in pairwise(SHARES))
        classes = (f"over {SHARES[0]:.0%}", *between, f"at most {SHARES[-1]:.0%}")
        return (
            ("establishments", f"{self.businesses:,}"),
            ("without turnover", f"{self.zero:.1%}"),
            ("with a loss", f"{self.negative:.1%}"),
            ("asked to be protected", f"{self.consent:.1%}"),
            ("largest turnover, dollars", f"{self.largest:,}"),
            ("mean and largest weight", f"{self.mean_weight:.1f}, {self.most_weight:.1f}"),
            ("taken for sure", f"{self.sure:.1%}"),
            ("enterprises", f"{self.enterprises:,}"),
            ("with several establishments", f"{self.several:,} ({self.several / self.enterprises:.1%})"),
            ("establishments of those", f"{self.in_several:,} ({self.in_several / self.businesses:.1%})"),
            ("establishments of the largest", f"{self.most_establishments:,}"),
            ("cells by state and industry", f"{establishment.cells:,}"),
            *(
                (f"cells whose first establishment has {words}", f"{share:.1%}")
                for words, share in zip(classes, establishment.by_first, strict=True)
            ),
            *(
                (f"cells whose first enterprise has {words}", f"{share:.1%}")
                for words, share in zip(classes, enterprise.by_first, strict=True)
            ),
            (f"cells whose first four establishments have over {MADE_UP:.0%}", f"{establishment.made_up:.1%}"),
            *(
                (f"of these, like ({', '.join(map(str, shape))})", f"{cells:,}")
                for shape, cells in establishment.shapes.items()
            ),
            ("sampled employees", f"{self.employees:,}"),
            ("mean wage, dollars a week", f"{self.mean_wage:,.0f}"),
            ("cells by state, industry and occupation", f"{self.staff_cells:,}"),
            ("of these, of one establishment", f"{self.of_one:,}"),
            ("of these, with three employees or more", f"{self.several_of_one:,}"),
        )


def measure_business(folder: Path) -> BusinessShape:
    """The shape of the survey of businesses in a folder, from its files."""
    folder = Path(folder)
    need_files(folder, (BUSINESSES, EMPLOYEES), what="a survey of businesses", command="sfumato economy business")
    businesses, employees = {"businesses": str(folder / BUSINESSES)}, {"employees": str(folder / EMPLOYEES)}
    with duckdb.connect() as connection:

        def ask(sql: str, paths: dict[str, str]) -> tuple[Any, ...]:
            row = connection.execute(sql, paths).fetchone()
            assert row is not None
            return row

        def dominance(contributors: str) -> Dominance:
            return _dominance(
                connection.execute(_CELLS.format(contributors=contributors, few=FEW), businesses).fetchall()
            )

        count, zero, negative, consent, largest, mean_weight, most_weight, sure = ask(_BUSINESSES, businesses)
        enterprises, several, most_establishments, in_several = ask(_ENTERPRISES, businesses)
        staff, mean_wage = ask(_STAFF, employees)
        staff_cells, of_one, several_of_one = ask(_STAFF_CELLS, employees)
        return BusinessShape(
            businesses=count,
            enterprises=enterprises,
            several=several,
            in_several=in_several,
            most_establishments=most_establishments,
            zero=zero,
            negative=negative,
            consent=consent,
            largest=largest,
            mean_weight=mean_weight,
            most_weight=most_weight,
            sure=sure,
            by_establishment=dominance(_OF_ESTABLISHMENTS),
            by_enterprise=dominance(_OF_ENTERPRISES),
            employees=staff,
            mean_wage=mean_wage,
            staff_cells=staff_cells,
            of_one=of_one,
            several_of_one=several_of_one,
        )


def _dominance(cells: list[tuple[float, list[float]]]) -> Dominance:
    """From the total and the first contributions of every cell."""
    total = np.array([whole for whole, _ in cells])
    first = np.zeros((len(cells), FEW))
    for row, (_, largest) in zip(first, cells, strict=True):
        row[: len(largest)] = largest
    # Places from the right: 0 is the most dominated class, the last is below them all.
    place = len(SHARES) - np.searchsorted(SHARES[::-1], first[:, 0] / total)
    made_up = first.sum(axis=1) > MADE_UP * total
    nearest = np.bincount(_nearest(first[made_up]), minlength=len(SHAPES))
    return Dominance(
        cells=len(cells),
        by_first=tuple((np.bincount(place, minlength=len(SHARES) + 1) / len(cells)).tolist()),
        made_up=float(made_up.mean()),
        shapes=MappingProxyType(dict(zip(SHAPES, nearest.tolist(), strict=True))),
    )


def _nearest(first: NDArray[np.float64]) -> NDArray[np.int64]:
    """The shape with the least sum of differences to what each of the first contributors has of what they all have."""
    shapes = np.array([(*shape, *[0] * (FEW - len(shape))) for shape in SHAPES]) / 100
    shares = first / first.sum(axis=1, keepdims=True)
    nearest: NDArray[np.int64] = np.abs(shares[:, None, :] - shapes).sum(axis=2).argmin(axis=1)
    return nearest
