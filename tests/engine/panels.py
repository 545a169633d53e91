"""A panel typed by hand with its indicators, and a plain count of the indicators of any small panel."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import floor, sqrt
from pathlib import Path
from typing import Any

from sfumato.cells import Cells, Dimension
from sfumato.engine.connect import connect
from sfumato.frame.data import Frame
from sfumato.noise.factors import ONE, Factors
from sfumato.noise.keyed import hashes
from sfumato.statistics.panel.indicators import CODES, INDICATORS, NAME
from sfumato.statistics.panel.question import IndicatorQuestion
from sfumato.statistics.panel.tabulate_indicators import indicators
from tests.conftest import write

FACTORS = Factors(key=bytes(range(16)), least=Fraction("0.1"), most=Fraction("0.25"))
QUARTERS = ("2024-Q1", "2024-Q2", "2024-Q3", "2024-Q4", "2025-Q1", "2025-Q2")

# Who had earnings where, quarter by quarter; a dash is no row, a zero a row without earnings.
#            worker  employer  Q1  Q2  Q3  Q4  Q1  Q2   grade
HISTORIES = """
                1        10    30  30  30  30  30  30   aabbbb
                2        10    60  60   -  60  60   -   bb-bb-
                3        10     -   -   -   -  50  50   ----aa
                3        20     -  90  90  90   -   -   -aaa--
                4        20    20   -   -   -   -  25   a----b
                5        30    40  40  40   0  40  40   bbbbbb
"""
# Employer 40 is in the register and has never had a job: it makes its state's cells ordinary zeros.
EMPLOYERS = {"employer": [10, 20, 30, 40], "state": ["A", "A", "B", "B"], "agency": ["X", "Y", "X", "Y"]}
WORKERS = {"worker": [1, 2, 3, 4, 5], "sex": ["F", "M", "F", "M", "F"]}

# By hand. State A is employers 10 and 20, state B employer 30 (and 40). Quarters that cannot be known are None.
_ = None
BY_STATE: dict[str, dict[str, list[int | None]]] = {
    # 10: 2 2 1 2 3 2; 20: 1 1 1 1 0 1.
    "employment": {"A": [3, 3, 2, 3, 3, 3], "B": [1, 1, 1, 0, 1, 1]},
    # In 10: worker 2 is not there at the beginning of 2024-Q4; in 20: worker 3 from 2024-Q3 on, worker 4 never.
    "beginning": {"A": [_, 2, 2, 2, 2, 2], "B": [_, 1, 1, 0, 0, 1]},
    # 10: 2 1 1 2 2 _; 20: 0 1 1 0 0 _.
    "end": {"A": [2, 2, 2, 2, 2, _], "B": [1, 1, 0, 0, 1, _]},
    # Worker 1 always, worker 3 at 20 in 2024-Q3 only, worker 2 never, worker 5 in 2024-Q2 only.
    "full_quarter": {"A": [_, 1, 2, 1, 1, _], "B": [_, 1, 0, 0, 0, _]},
    # Worker 3 at 20, worker 2 again, worker 3 at 10, worker 4 again; worker 5 again in 2025-Q1.
    "accessions": {"A": [_, 1, 0, 1, 1, 1], "B": [_, 0, 0, 0, 1, 0]},
    # Worker 4, worker 2, nobody, worker 3 at 20, worker 2; worker 5 in 2024-Q3.
    "separations": {"A": [1, 1, 0, 1, 1, _], "B": [0, 0, 1, 0, 0, _]},
    # Only the last two quarters have four before them. Worker 4 was away for four quarters: new again.
    "new_hires": {"A": [_, _, _, _, 1, 1], "B": [_, _, _, _, 0, 0]},
    "recalls": {"A": [_, _, _, _, 0, 0], "B": [_, _, _, _, 1, 0]},
    # End less beginning: 10 has -1 0 +1 0, 20 has +1 0 -1 0, 30 has 0 -1 0 +1.
    "job_creation": {"A": [_, 1, 0, 1, 0, _], "B": [_, 0, 0, 0, 1, _]},
    "job_destruction": {"A": [_, 1, 0, 1, 0, _], "B": [_, 0, 1, 0, 0, _]},
    # 10: 90 90 30 90 140 80; 20: 20 90 90 90 0 25.
    "payroll": {"A": [110, 180, 120, 180, 140, 105], "B": [40, 40, 40, 0, 40, 40]},
    "full_quarter_payroll": {"A": [_, 30, 120, 30, 30, _], "B": [_, 40, 0, 0, 0, _]},
    # 30/3, 120/(3·2), 30/3, 30/3; 40/3 = 13.33…
    "average_monthly_earnings": {"A": [_, 10, 20, 10, 10, _], "B": [_, 13, 0, 0, 0, _]},
}

ATTRIBUTES = {"state": ("A", "B"), "agency": ("X", "Y"), "sex": ("F", "M"), "grade": ("a", "b")}
PUBLIC = ("state", "agency")


@dataclass(frozen=True, kw_only=True)
class Panel:
    """A small panel in memory: `jobs` has rows of worker, employer, place of the period, earnings and grade."""

    periods: tuple[str, ...]
    employers: Mapping[str, list[Any]]
    workers: Mapping[str, list[Any]]
    jobs: list[tuple[Any, Any, int, int, str]]

    def columns(self) -> dict[str, list[Any]]:
        """The rows as the columns of a file."""
        worker, employer, place, earnings, grade = (list(c) for c in zip(*self.jobs, strict=True))
        quarter = [self.periods[p] for p in place]
        return {"worker": worker, "employer": employer, "quarter": quarter, "earnings": earnings, "grade": grade}

    def write(self, folder: Path, **changes: Any) -> Frame:
        """Write the panel to files and describe it."""
        write(folder / "jobs.parquet", self.columns())
        write(folder / "employers.parquet", dict(self.employers))
        write(folder / "workers.parquet", dict(self.workers))
        return panel_frame(folder, first=self.periods[0], last=self.periods[-1], **changes)

    def as_text(self) -> "Panel":
        """The same panel with text for keys."""
        return Panel(
            periods=self.periods,
            employers={**self.employers, "employer": list(map(str, self.employers["employer"]))},
            workers={**self.workers, "worker": list(map(str, self.workers["worker"]))},
            jobs=[(str(worker), str(employer), *rest) for worker, employer, *rest in self.jobs],
        )


def panel_frame(folder: Path, *, first: str, last: str, **changes: Any) -> Frame:
    """The frame of a panel."""
    jobs = {"path": "jobs.parquet", "worker": "worker", "workplace": "employer", "earnings": "earnings"}
    described: dict[str, Any] = {
        "jobs": {**jobs, "period": "quarter", "first": first, "last": last},
        "workplaces": {"path": "employers.parquet", "key": "employer"},
        "workers": {"path": "workers.parquet", "key": "worker"},
        "public": PUBLIC,
        "attributes": {name: {"codes": list(codes)} for name, codes in ATTRIBUTES.items()},
        "folder": folder,
    }
    return Frame(**(described | changes))


def by_hand() -> Panel:
    """The panel typed above."""
    jobs = []
    for line in HISTORIES.strip().splitlines():
        worker, employer, *earned, grades = line.split()
        for place, (amount, grade) in enumerate(zip(earned, grades, strict=True)):
            if amount != "-":
                jobs.append((int(worker), int(employer), place, int(amount), grade))
    return Panel(periods=QUARTERS, employers=EMPLOYERS, workers=WORKERS, jobs=jobs)


def question(periods: Iterable[str], *by: str, **where: tuple[str, ...]) -> IndicatorQuestion:
    """All indicators by some attributes and the quarter."""
    codes = ATTRIBUTES | {"quarter": tuple(periods)}
    dimensions = [
        Dimension(name=name, codes=tuple(c for c in codes[name] if c in where.get(name, codes[name]))) for name in by
    ]
    return IndicatorQuestion(by=(*dimensions, Dimension(name=NAME, codes=CODES)), where=where)


def answer(frame: Frame, questions: Mapping[str, IndicatorQuestion], factors: Factors = FACTORS) -> dict[str, Cells]:
    """Open the engine and answer."""
    with connect(frame) as tables:
        return indicators(frame, tables, questions, factors)


def as_dict(cells: Cells, *columns: str) -> dict[tuple[str, ...], Any]:
    """The cells by their codes; a single column is not wrapped."""
    codes = [[d.codes[i] for i in cells.codes(d.name)] for d in cells.dimensions]
    values = list(zip(*(cells[name].tolist() for name in columns), strict=True))
    return dict(zip(zip(*codes, strict=True), values if len(columns) > 1 else [v for (v,) in values], strict=True))


def millionths(cells: Cells) -> dict[tuple[str, ...], int]:
    """The distorted sums as whole millionths."""
    return {key: whole * ONE + rest for key, (whole, rest) in as_dict(cells, "distorted", "remainder").items()}


@dataclass(frozen=True, kw_only=True)
class Plain:
    """What a cell should hold, counted row by row."""

    available: bool
    establishments: int
    contributions: dict[Any, int]
    """What each employer with anything adds."""
    months: int
    jobs: dict[Any, int]
    """For the average, the full-quarter jobs of each employer; `contributions` are then their payrolls."""

    def count(self) -> int:
        """The true statistic."""
        total = sum(self.contributions.values())
        if not self.jobs:
            return total
        return floor(Fraction(total, self.months * sum(self.jobs.values())) + Fraction(1, 2))

    def distorted(self) -> int:
        """The distorted sum in millionths; the average has none."""
        if self.jobs:
            return 0
        return sum(factor_of(employer) * amount for employer, amount in self.contributions.items())

    def deviation(self) -> float:
        """The standard deviation that the factors give the statistic, in millionths."""
        if not self.jobs:
            return sqrt(sum(amount**2 for amount in self.contributions.values())) * (FACTORS.deviation * ONE)
        held = sum(self.jobs.values())
        mean = Fraction(sum(self.contributions.values()), held)
        squares = sum((amount - mean * self.jobs[employer]) ** 2 for employer, amount in self.contributions.items())
        return sqrt(squares) / (self.months * held) * FACTORS.deviation * ONE


def factor_of(employer: Any) -> int:
    """The factor of an employer, from its name alone."""
    return int(FACTORS.of(hashes([str(employer)]))[0])


def counted_plainly(panel: Panel, asked: IndicatorQuestion, *, months: int = 3) -> dict[tuple[str, ...], Plain]:
    """Every cell of a question, by sets of periods and loops over rows."""
    places = _rows(panel.employers, "employer")
    people = _rows(panel.workers, "worker")
    worked: dict[tuple[Any, Any], set[int]] = defaultdict(set)
    for worker, employer, place, earnings, _grade in panel.jobs:
        if earnings > 0:
            worked[worker, employer].add(place)
    sums: dict[tuple[Any, ...], int] = defaultdict(int)  # by employer, codes of the cell and indicator
    names = [dimension.name for dimension in asked.by[:-1]]
    for worker, employer, t, earnings, grade in panel.jobs:
        row = places[employer] | people[worker] | {"grade": grade, "quarter": panel.periods[t]}
        if earnings == 0 or any(row[name] not in codes for name, codes in asked.where.items()):
            continue
        cell = tuple(row[name] for name in names)
        held = worked[worker, employer]
        before, after = t - 1 in held, t + 1 in held
        year = any(t - back in held for back in range(1, 5))
        adds = {
            "employment": 1,
            "beginning": before,
            "end": after,
            "full_quarter": before and after,
            "accessions": not before,
            "separations": not after,
            "new_hires": not before and not year,
            "recalls": not before and year,
            "payroll": earnings,
            "full_quarter_payroll": earnings if before and after else 0,
        }
        for code, amount in adds.items():
            sums[employer, cell, code] += int(amount)
    for employer, cell in {(employer, cell) for employer, cell, _code in sums}:
        grown = sums[employer, cell, "end"] - sums[employer, cell, "beginning"]
        sums[employer, cell, "job_creation"] = max(grown, 0)
        sums[employer, cell, "job_destruction"] = max(-grown, 0)

    found = {}
    for cell in product(*(dimension.codes for dimension in asked.by[:-1])):
        code_of = dict(zip(names, cell, strict=True))
        here = [
            employer
            for employer, row in places.items()
            if all(row[n] == code_of[n] for n in names if n in PUBLIC)
            and all(row[n] in codes for n, codes in asked.where.items() if n in PUBLIC)
        ]
        if not here and any(name in PUBLIC for name in names):
            continue
        t = panel.periods.index(code_of["quarter"])
        for indicator in INDICATORS:
            available = t >= indicator.before and t + indicator.after < len(panel.periods)
            average = indicator.code == "average_monthly_earnings"
            code = "full_quarter_payroll" if average else indicator.code
            amounts = {e: sums[e, cell, code] for e in here if available and sums.get((e, cell, code))}
            found[*cell, indicator.code] = Plain(
                available=available,
                establishments=len(here),
                contributions=amounts,
                months=months,
                jobs={e: sums[e, cell, "full_quarter"] for e in amounts} if average else {},
            )
    return found


def _rows(table: Mapping[str, list[Any]], key: str) -> dict[Any, dict[str, Any]]:
    names = [name for name in table if name != key]
    return {k: {n: table[n][i] for n in names} for i, k in enumerate(table[key])}
