"""The lecture's systems again, on synthetic children, employees and graduates."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.cells import Cells
from sfumato.checking import checked
from sfumato.errors import DataError
from sfumato.measures.attacks import AttackResult
from sfumato.method import HIDDEN
from sfumato.noise.randomness import Repeatable
from sfumato.release import load
from sfumato.statistics.published import PublishedTable, number
from sfumato_lab.economy.files import RELEASE
from sfumato_lab.economy.graduates.generate import generate_graduates
from sfumato_lab.economy.opportunity.generate import generate_opportunity
from sfumato_lab.economy.university.generate import file_names, generate_university
from sfumato_lab.reproduce.page import economy_folder
from sfumato_lab.reproduce.schmutte2020.atlas import (
    CHI_VALUES,
    EPSILON,
    MOST_YEARS,
    SECTORS,
    Atlas,
    AtlasEnvelope,
    AtlasTails,
    chance_beyond,
    classify_tails,
    envelope,
    read_atlas,
)
from sfumato_lab.reproduce.schmutte2020.by_size import (
    MethodsBySize,
    PercentilesBySize,
    compare_curves,
    compare_methods,
    read_earned,
)
from sfumato_lab.reproduce.schmutte2020.epsilon import ChosenEpsilon, choose_epsilon

# The budget of an employee report, term by term, and how far its cells are off.

REPORT_THRESHOLDS = (0.05, 0.1, 0.2)
"""Absolute percentage differences of which the share of cells within is told."""
_STATISTICS = {"count": "employment", "mean": "earnings"}


@dataclass(frozen=True, kw_only=True)
class YearlySpending:
    """What a person is charged for one statistic of one year."""

    statistic: str
    year: str
    epsilon: Fraction


@dataclass(frozen=True, kw_only=True)
class Difference:
    """The share of cells of one statistic whose absolute percentage difference is within a threshold."""

    statistic: str
    threshold: float
    cells: int
    within: float


@dataclass(frozen=True, kw_only=True)
class EmployeeReport:
    """One institution's report."""

    titles: int
    sectors: int
    years: int
    charged: Fraction
    """What the plan of the release charges to the ledger."""
    spending: tuple[YearlySpending, ...]
    differences: tuple[Difference, ...]

    @property
    def epsilon(self) -> Fraction:
        """Σ over years of ε for employment and ε for earnings."""
        return sum((line.epsilon for line in self.spending), Fraction(0))

    @property
    def without_parallel_composition(self) -> Fraction:
        """What it would be if a person counted as being in all titles and sectors of a year."""
        return self.epsilon * self.titles * self.sectors

    def rows(self) -> Iterator[dict[str, Any]]:
        """Every figure; those of the design have one published beside them."""
        for quantity, published, ours in (
            ("sectors", SECTORS, self.sectors),
            ("years", MOST_YEARS, self.years),
            ("titles_by_sectors", CHI_VALUES, self.titles * self.sectors),
        ):
            yield {"quantity": quantity, "published": published, "ours": ours}
        for line in self.spending:
            about: dict[str, Any] = {"statistic": line.statistic, "year": line.year, "published": None}
            yield {"quantity": "epsilon_of_year", **about, "ours": number(line.epsilon)}
        for quantity, value in (
            ("epsilon_of_report", self.epsilon),
            ("epsilon_charged", self.charged),
            ("epsilon_without_parallel_composition", self.without_parallel_composition),
        ):
            yield {"quantity": quantity, "published": None, "ours": number(value)}
        for found in self.differences:
            about = {"statistic": found.statistic, "threshold": found.threshold, "cells": found.cells}
            yield {"quantity": "share_within_threshold", **about, "published": None, "ours": found.within}


def evaluate_report(file: Path, *, draws: int, seed: int) -> EmployeeReport:
    """Take a release that `sfumato economy university` wrote term by term, and protect its cells several times."""
    with checked(load(file)) as ready:
        found = ready.plan.tables
        tables = {_STATISTICS[t.table.statistic]: t for t in found if t.table.statistic in _STATISTICS}
        if len(tables) != len(_STATISTICS):
            raise DataError(
                f"data {file}",
                expected="an employee report as `sfumato economy university` writes it, of counts and means",
                found="another kind of data",
                do="name another folder with --data, or leave --data out",
            )
        counted = dict(ready.tabulate({table.name: table for table in tables.values()}))
        guarantees = [charge.guarantee for charge in ready.identity.charges(ready.plan)]
    charged = sum((g.bound.epsilon for g in guarantees if g.bound is not None), Fraction(0))
    spending = [line for name, table in tables.items() for line in _spending(name, table)]
    differences: list[Difference] = []
    for name, table in tables.items():
        cells = counted[table.name]
        differences += _differences(name, table, cells, draws=draws, seed=seed)
    sizes = {dimension.name: len(dimension) for dimension in next(iter(tables.values())).question.by}
    return EmployeeReport(
        titles=sizes["title"],
        sectors=sizes["sector"],
        years=sizes["years"],
        charged=charged,
        spending=tuple(spending),
        differences=tuple(differences),
    )


def _spending(name: str, table: PublishedTable) -> Iterator[YearlySpending]:
    method: Any = table.method
    years = next(dimension.codes for dimension in table.question.by if dimension.name == "years")
    for year in years:
        yield YearlySpending(statistic=name, year=year, epsilon=method.epsilon / method.periods)


def _differences(name: str, table: PublishedTable, cells: Cells, *, draws: int, seed: int) -> Iterator[Difference]:
    method: Any = table.method
    true = method.true_value(cells)
    shares = np.full((draws, len(true)), np.nan)
    for draw in range(draws):
        drawn = method.protect(cells, Repeatable(seed, "schmutte2020", name, draw))
        hidden = np.isin(drawn["status"], HIDDEN) if "status" in drawn.columns else np.zeros(len(true), dtype=bool)
        seen = ~hidden & (true > 0)
        shares[draw, seen] = np.abs(drawn["value"][seen] - true[seen]) / true[seen]
    told = shares[~np.isnan(shares)]
    for threshold in REPORT_THRESHOLDS:
        yield Difference(
            statistic=name,
            threshold=threshold,
            cells=len(told) // draws,
            within=float((told <= threshold).mean()),
        )


PAPER = "schmutte2020"
TRACTS = 2_000
DRAWS, QUICK_DRAWS = 10, 2
GRADUATES_PER_TRACT, EMPLOYEES_PER_TRACT, FEWEST_EMPLOYEES = 500, 5, 1_000
"""How many graduates, and employees of one institution, go with every tract."""
VETERANS_PER_TRACT = 100
BEYOND = ((10, 0.1), (20, 0.1), (50, 0.1))
"""People of a group, and by how much ε is exceeded."""
_FOLDERS = ("children", "employees", "graduates", "veterans")
_REPORT = file_names(1)[-1]
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, kw_only=True)
class Reproduction:
    """Everything that was computed again."""

    epsilon: Fraction
    """Of every estimate, as the release file on the children has it."""
    children: int
    graduates_in_cells: int
    draws: int
    envelope: AtlasEnvelope
    tails: AtlasTails
    methods: MethodsBySize
    percentiles: PercentilesBySize
    veterans: PercentilesBySize
    """The same of veterans by branch and occupation."""
    chosen: ChosenEpsilon
    report: EmployeeReport
    attacks: tuple[AttackResult, ...]
    """On what MOSE publishes here: the leak of its example code."""

    def rows(self) -> Iterator[dict[str, Any]]:
        """One object for every figure: what it is about, what was published about it, and ours."""
        yield {"quantity": "epsilon_of_estimate", "published": float(EPSILON), "ours": float(self.epsilon)}
        for part in (self.envelope, self.tails, self.methods, self.percentiles, self.report, self.chosen):
            yield from part.rows()
        for row in self.veterans.rows():
            yield row | {"quantity": f"veterans_{row['quantity']}"}
        for people, excess in BEYOND:
            chance = chance_beyond(people, epsilon=float(EPSILON), excess=excess)
            about = {"people": people, "excess": excess, "epsilon": float(EPSILON), "published": None}
            yield {"quantity": "chance_beyond_epsilon", **about, "ours": chance}
        for found in self.attacks:
            rates = found.data()
            yield {
                "quantity": "attack_success",
                "attack": found.attack,
                "groups": found.targets,
                "published": None,
                "ours": rates["success_rate"],
                "as_published": rates["baseline_rate"],
            }


def reproduce(
    *,
    data: Path | None = None,
    tracts: int = TRACTS,
    draws: int = DRAWS,
    seed: int = 1,
    progress: Progress = lambda *_: None,
) -> Reproduction:
    """Protect predictions, reports and percentiles, several times each, and compare.

    Children, employees and graduates are made in temporary folders, or taken from folders of these names in `data`,
    where they are made if there are none yet.
    """

    def children(folder: Path) -> None:
        generate_opportunity(folder, tracts=tracts, seed=seed, progress=partial(progress, "making children"))

    def employees(folder: Path) -> None:
        number = max(EMPLOYEES_PER_TRACT * tracts, FEWEST_EMPLOYEES)
        tell = partial(progress, "making employees")
        generate_university(folder, employees=number, institutions=1, seed=seed, progress=tell)

    def graduates(folder: Path) -> None:
        people = GRADUATES_PER_TRACT * tracts
        generate_graduates(folder, people=people, seed=seed, progress=partial(progress, "making graduates"))

    def veterans(folder: Path) -> None:
        people = VETERANS_PER_TRACT * tracts
        tell = partial(progress, "making veterans")
        generate_graduates(folder, people=people, veterans=True, seed=seed, progress=tell)

    makers = (children, employees, graduates, veterans)
    made = zip(_FOLDERS, makers, (RELEASE, _REPORT, RELEASE, RELEASE), strict=True)
    with ExitStack() as stack:
        folders = [
            stack.enter_context(economy_folder(None if data is None else data / name, make, release=release))
            for name, make, release in made
        ]
        steps = 6
        progress("tabulating", 0, steps)
        atlas, earned, of_veterans = read_atlas(folders[0]), read_earned(folders[2]), read_earned(folders[3])
        progress("employee report", 1, steps)
        report = evaluate_report(folders[1] / _REPORT, draws=draws, seed=seed)
        progress("choosing epsilon", 2, steps)
        chosen = choose_epsilon(atlas, folders[1] / _REPORT, draws=draws, seed=seed)
    progress("tails", 3, steps)
    tails = classify_tails(atlas, draws=draws, seed=seed)
    progress("methods by size", 4, steps)
    methods = compare_methods(atlas, draws=draws, seed=seed)
    progress("percentiles", 5, steps)
    return Reproduction(
        epsilon=atlas.method.epsilon_of_value,
        children=atlas.children,
        graduates_in_cells=len(earned.earnings),
        draws=draws,
        envelope=envelope(atlas),
        tails=tails,
        methods=methods,
        percentiles=compare_curves(earned, draws=draws, seed=seed),
        veterans=compare_curves(of_veterans, draws=draws, seed=seed),
        chosen=chosen,
        report=report,
        attacks=_attacks(atlas, seed),
    )


def _attacks(atlas: Atlas, seed: int) -> tuple[AttackResult, ...]:
    published = atlas.method.protect(atlas.cells, Repeatable(seed, PAPER, "attacked"))
    return atlas.method.attacks(atlas.cells, published)
