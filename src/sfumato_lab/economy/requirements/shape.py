"""The shape of a survey of requirements: how empty its cubes are, its weights, clustering and associations."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import duckdb
import numpy as np
from numpy.typing import NDArray

from sfumato_lab.economy.frame import need_files
from sfumato_lab.economy.requirements.design import CODELISTS
from sfumato_lab.economy.requirements.draws import NAMES, REPLICATES
from sfumato_lab.economy.requirements.generate import QUOTES
from sfumato_lab.economy.requirements.variables import EDUCATION, NOISE, VARIABLES

_ALL = tuple(variable.name for variable in VARIABLES)
CUBES: Final = {
    "occupation and strength": ("occupation", "strength"),
    "occupation, strength and education": ("occupation", "strength", "education"),
    "ten requirements, as in the paper": tuple(name for name in _ALL if name not in (EDUCATION.name, NOISE.name)),
    "all twelve requirements": _ALL,
    "occupation and seven requirements": (
        "occupation",
        "strength",
        "education",
        "noise",
        "supervision",
        "pace",
        "keyboarding",
        "credentials",
    ),
    "major group and all requirements": ("major_group", *_ALL),
}
"""Cubes to measure, by their words."""
PAIRS: Final = (
    ("occupation", "strength"),
    ("major_group", "education"),
    ("climbing", "heights"),
    ("education", "credentials"),
    ("strength", "keyboarding"),
    ("keyboarding", "telework"),
    ("strength", "supervision"),
    ("ownership", "driving"),
)
"""Pairs whose association is measured, strong ones and weak ones."""
ESTIMATES: Final = {
    "mean days of preparation": "prep_days",
    "share of sedentary jobs": "(strength = 'sedentary')::double",
    "share of jobs that can be done by telework": "(telework = 'yes')::double",
}
"""Estimates whose design effect is measured, by their words."""

_QUOTES = """
select count(*), count(distinct establishment), count(distinct occupation), avg(weight), median(weight), max(weight),
       quantile_cont(weight, 0.999), 1 + var_pop(weight) / avg(weight) ** 2,
       sum(weight), count(distinct establishment) filter (stratum like '%/sure')
from quotes
"""
_CUBE = "select count(*), count(*) filter (quotes = 1) from (select count(*) as quotes from quotes group by {by})"
_OCCUPATIONS = """
select count(*) filter (establishments = 1), count(*) filter (establishments = 1 and quotes > 2),
       count(*) filter (largest > 0.5 * total)
from (
    select count(*) as establishments, sum(quotes) as quotes, max(weight) as largest, sum(weight) as total
    from (select occupation, count(*) as quotes, sum(weight) as weight from quotes group by occupation, establishment)
    group by occupation
)
"""
_PAIR = "select {first}, {second}, count(*) from quotes group by all"
_MEAN = """
select sum(weight * x) / sum(weight), sum(weight * x * x) / sum(weight), {replicates}
from (select *, {x} as x from quotes)
"""

Ask = Callable[[str], tuple[Any, ...]]


@dataclass(frozen=True, kw_only=True)
class CubeShape:
    """How quotes fill the full product of some variables."""

    words: str
    cells: int
    filled: int
    """Cells with a quote."""
    uniques: int
    """Cells with exactly one."""

    @property
    def empty(self) -> float:
        """The share of cells without any."""
        return 1 - self.filled / self.cells


@dataclass(frozen=True, kw_only=True)
class DesignEffect:
    """An estimate, and its variance beside that of as many jobs drawn at random."""

    words: str
    estimate: float
    error: float
    """The standard error by the replicate weights."""
    effect: float


@dataclass(frozen=True, kw_only=True)
class RequirementsShape:
    """What a cube meets in a survey of requirements."""

    quotes: int
    establishments: int
    sure: int
    """Establishments taken for sure."""
    occupations: int
    """Occupations with a quote."""
    of_one: int
    """Those whose quotes are all of one establishment."""
    several_of_one: int
    """Those of one establishment with three quotes or more."""
    dominated: int
    """Those in which one establishment has more than half of the weight."""
    workers: float
    """The sum of all weights."""
    mean_weight: float
    median_weight: float
    high_weight: float
    """One weight in a thousand is higher."""
    most_weight: float
    weighting_effect: float
    """What unequal weights alone do to the variance of a mean: 1 plus their squared coefficient of variation."""
    effects: tuple[DesignEffect, ...]
    """None without replicate weights."""
    cubes: tuple[CubeShape, ...]
    associations: tuple[tuple[str, str, float], ...]
    """Pairs of variables with Cramér's V."""

    def rows(self) -> tuple[tuple[str, str], ...]:
        """What and how much: the lines of a table for reading."""
        return (
            ("quotes", f"{self.quotes:,}"),
            ("establishments", f"{self.establishments:,}"),
            ("taken for sure", f"{self.sure:,}"),
            ("occupations with a quote", f"{self.occupations:,}"),
            ("of these, of one establishment", f"{self.of_one:,}"),
            ("of these, with three quotes or more", f"{self.several_of_one:,}"),
            ("occupations with over half of the weight in one establishment", f"{self.dominated:,}"),
            ("workers they stand for", f"{self.workers:,.0f}"),
            ("mean and median weight", f"{self.mean_weight:,.1f}, {self.median_weight:,.1f}"),
            ("one weight in a thousand is above", f"{self.high_weight:,.1f}"),
            ("largest weight", f"{self.most_weight:,.1f}"),
            ("effect of unequal weights on a variance", f"{self.weighting_effect:.2f}"),
            *((f"{effect.words}, standard error, design effect", _estimate(effect)) for effect in self.effects),
            *(
                (f"cells by {cube.words}: empty, with one quote", f"{cube.cells:,}: {cube.empty:.2%}, {cube.uniques:,}")
                for cube in self.cubes
            ),
            *((f"Cramér's V of {first} and {second}", f"{v:.2f}") for first, second, v in self.associations),
        )


def _estimate(effect: DesignEffect) -> str:
    return f"{effect.estimate:,.4g}, {effect.error:.2g}, {effect.effect:.1f}"


def measure_requirements(folder: Path) -> RequirementsShape:
    """The shape of the survey of requirements in a folder, from its quotes."""
    path = Path(folder) / QUOTES
    need_files(Path(folder), (QUOTES,), what="a survey of requirements", command="sfumato economy requirements")
    with duckdb.connect() as connection:
        quotes = connection.read_parquet(str(path))
        replicated = NAMES[0] in quotes.columns
        quotes.create_view("quotes")

        def ask(sql: str) -> tuple[Any, ...]:
            row = connection.execute(sql).fetchone()
            assert row is not None
            return row

        count, establishments, occupations, mean, median, most, high, weighting, workers, sure = ask(_QUOTES)
        of_one, several_of_one, dominated = ask(_OCCUPATIONS)
        return RequirementsShape(
            quotes=count,
            establishments=establishments,
            sure=sure,
            occupations=occupations,
            of_one=of_one,
            several_of_one=several_of_one,
            dominated=dominated,
            workers=workers,
            mean_weight=mean,
            median_weight=median,
            high_weight=high,
            most_weight=most,
            weighting_effect=weighting,
            effects=tuple(_effect(words, x, count, ask) for words, x in ESTIMATES.items()) if replicated else (),
            cubes=tuple(_cube(words, by, ask) for words, by in CUBES.items()),
            associations=tuple((first, second, _cramer(first, second, connection)) for first, second in PAIRS),
        )


def _cube(words: str, by: tuple[str, ...], ask: Ask) -> CubeShape:
    filled, uniques = ask(_CUBE.format(by=", ".join(by)))
    codes = {codelist.name: len(codelist) for codelist in CODELISTS}
    return CubeShape(words=words, cells=math.prod(codes[name] for name in by), filled=filled, uniques=uniques)


def _effect(words: str, x: str, quotes: int, ask: Ask) -> DesignEffect:
    replicates = ", ".join(f"sum({name} * x) / sum({name})" for name in NAMES)
    mean, square, *replicated = ask(_MEAN.format(x=x, replicates=replicates))
    variance = 4 / REPLICATES * float(np.sum((np.array(replicated) - mean) ** 2))
    return DesignEffect(
        words=words, estimate=mean, error=math.sqrt(variance), effect=variance / ((square - mean**2) / quotes)
    )


def _cramer(first: str, second: str, connection: duckdb.DuckDBPyConnection) -> float:
    """Cramér's V of two variables, from quotes without weights; categories without a quote do not count."""
    counts = connection.execute(_PAIR.format(first=first, second=second)).fetchall()
    a, b, count = zip(*counts, strict=True)
    rows, columns = (np.unique(codes, return_inverse=True)[1] for codes in (a, b))
    table: NDArray[np.float64] = np.zeros((rows.max() + 1, columns.max() + 1))
    table[rows, columns] = count
    total = table.sum()
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / total
    chi_square = float(np.sum((table - expected) ** 2 / expected))
    return math.sqrt(chi_square / (total * (min(table.shape) - 1)))
