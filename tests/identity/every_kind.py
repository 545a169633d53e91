"""Release files with a question of every kind, whose codes are declared, so that they are planned without any data."""

from fractions import Fraction
from pathlib import Path

import pytest

from sfumato.checking import _declared_codes
from sfumato.keys import new_key
from sfumato.plan import Plan, make_plan
from sfumato.release import load
from tests.release.people import ALL, HEAD
from tests.statistics.cube.survey import CUBE, RELEASE

JOBS = """
[release]
title = "Jobs"
period = "2025"
key = "sfumato.key"
budget = { alpha = 0.1, epsilon = 4, delta = 0.01, definition = "weak" }

[data]
jobs = { path = "jobs.parquet", worker = "worker", workplace = "workplace" }
workplaces = { path = "workplaces.parquet", key = "workplace" }
workers = { path = "workers.parquet", key = "worker" }
public = ["place", "industry"]

[data.attributes]
place = { codes = ["A", "B"] }
industry = { codes = ["62", "11"] }
sex = { codes = ["F", "M"] }
age = { codes = ["1", "2", "3"] }

[[table]]
name = "count"
count = "jobs"
by = ["place", "industry", "sex"]
where = { age = ["3", "2"] }
protect = { method = "smooth-laplace", epsilon = 3, delta = 0.001 }

[[table]]
name = "keyed"
count = "jobs"
by = ["sex", "place"]
protect = { method = "noise-infusion" }

[[table]]
name = "sparse"
count = "jobs"
by = ["age", "place"]
protect = { method = "sparse-laplace", epsilon = 1 }

[[table]]
name = "graph"
graph = { attribute = ["place", "industry"] }
protect = { method = "noise-infusion" }
"""
PAY = """
[release]
title = "Jobs and pay"
period = "2025"
budget = { alpha = 0.1, epsilon = 9, totals = ["earnings", "hours"] }

[data]
jobs = { path = "jobs.parquet", worker = "worker", workplace = "workplace" }
workplaces = { path = "workplaces.parquet", key = "workplace" }
workers = { path = "workers.parquet", key = "worker" }
public = ["place", "industry"]

[data.attributes]
place = { codes = ["A", "B"] }
industry = { codes = ["62", "11"] }
sex = { codes = ["F", "M"] }

[data.measures]
earnings = { unit = "dollars", cap = 120000 }
hours = { cap = 3000 }

[[table]]
name = "paid_jobs"
count = "jobs"
by = ["place", "industry"]
protect = { epsilon = 2 }

[[table]]
name = "pay"
total = "earnings"
by = ["place", "industry"]
where = { industry = ["11"] }
protect = { epsilon = 2 }

[[table]]
name = "hours"
total = "hours"
by = ["place", "industry"]
where = { industry = ["11"] }
protect = { epsilon = 2 }

[[table]]
name = "pay_by_sex"
total = "earnings"
by = ["sex", "place"]
protect = { epsilon = 2 }

[[table]]
name = "mean_pay"
mean = "earnings"
by = ["industry", "place"]
protect = { epsilon = 1 }
"""
PANEL = """
[release]
title = "Histories"
period = "2024-2025"
key = "sfumato.key"

[data]
jobs = { path = "jobs.parquet", worker = "worker", workplace = "employer", period = "quarter", first = "2024-Q1", \
last = "2025-Q2", earnings = "earnings" }
workplaces = { path = "employers.parquet", key = "employer" }
workers = { path = "workers.parquet", key = "worker" }
public = ["state", "agency"]

[data.attributes]
state = { codes = ["A", "B"] }
agency = { codes = ["X", "Y"] }
sex = { codes = ["F", "M"] }

[[table]]
name = "indicators"
indicators = "all"
by = ["state", "quarter", "sex"]
protect = { method = "noise-infusion" }

[[table]]
name = "flow"
flow = { attribute = ["state", "agency"] }
by = ["quarter", "sex"]
protect = { method = "noise-infusion" }

[[table]]
name = "degrees"
degrees = { bounds = [1, 3, 10] }
by = ["state", "agency"]
where = { sex = "F" }
protect = { method = "noise-infusion" }

[[table]]
name = "exchange"
flow = { attribute = "state", directed = false, weight = "edges" }
by = ["quarter"]
protect = { method = "noise-infusion" }
"""
AT_PERIODS = """
[release]
title = "Jobs at the beginning of quarters"
period = "2024-2025"
budget = { alpha = 0.1, epsilon = 20, totals = ["earnings"] }

[data]
jobs = { path = "jobs.parquet", worker = "worker", workplace = "employer", period = "quarter", first = "2024-Q1", \
last = "2025-Q2", earnings = "earnings" }
workplaces = { path = "employers.parquet", key = "employer" }
workers = { path = "workers.parquet", key = "worker" }
public = ["state", "agency"]

[data.attributes]
state = { codes = ["A", "B"] }
agency = { codes = ["X", "Y"] }
sex = { codes = ["F", "M"] }

[data.measures]
earnings = { unit = "dollars", cap = 100 }

[[table]]
name = "jobs_at"
count = "jobs"
by = ["state", "quarter", "sex"]
where = { quarter = ["2025-Q1", "2024-Q4"] }
protect = { epsilon = 4 }

[[table]]
name = "jobs_at_each"
count = "jobs"
by = ["state", "quarter"]
where = { quarter = ["2025-Q1", "2024-Q4"] }
protect = { epsilon = { "2025-Q1" = 1, "2024-Q4" = 2 } }

[[table]]
name = "pay_at"
total = "earnings"
by = ["state", "agency"]
where = { quarter = "2024-Q4" }
protect = { epsilon = 2 }

[[table]]
name = "mean_at"
mean = "earnings"
by = ["quarter", "state"]
where = { quarter = ["2025-Q1", "2024-Q4"] }
protect = { epsilon = 4 }
"""
HISTORIES = """
[release]
title = "Histories with a guarantee"
period = "2024-2025"
budget = { alpha = 0.1, epsilon = 40, definition = "individuals" }

[data]
jobs = { path = "jobs.parquet", worker = "worker", workplace = "employer", period = "quarter", first = "2024-Q1", \
last = "2025-Q2", earnings = "earnings" }
workplaces = { path = "employers.parquet", key = "employer" }
workers = { path = "workers.parquet", key = "worker" }
public = ["state", "agency"]

[data.attributes]
state = { codes = ["A", "B"] }
agency = { codes = ["X", "Y"] }
sex = { codes = ["F", "M"] }

[data.measures]
earnings = { unit = "dollars", cap = 60000 }

[[table]]
name = "protected_indicators"
indicators = "all"
by = ["state", "quarter", "sex"]
where = { quarter = ["2024-Q3", "2024-Q4"] }
protect = { method = "smooth-pareto", epsilon = { "2024-Q3" = 4, "2024-Q4" = 6 } }

[[table]]
name = "ends"
indicators = ["end", "beginning"]
by = ["agency", "quarter"]
establishments = false
protect = { epsilon = 6, shares = { payroll = 1, changes = 1, counts = 2 } }

[[table]]
name = "main_moves"
flow = { attribute = ["state", "agency"] }
by = ["quarter", "sex"]
protect = { method = "laplace", epsilon = 4 }
"""
BUSINESSES = """
[release]
title = "Businesses"
population = "businesses"
period = "2025"
key = "sfumato.key"

[data]
records = { path = "records.parquet", unit = "business", levels = ["enterprise"], weight = "weight" }
public = ["state"]

[data.attributes]
state = { codes = ["A", "B"] }
industry = { codes = ["Y", "X"] }

[data.measures]
profit = { minimum = -1000000 }

[[table]]
name = "total"
total = "profit"
by = ["state", "industry"]
totals = true
protect = { method = "top-contributors" }

[[table]]
name = "mean"
mean = "profit"
by = ["industry"]
protect = { method = "top-contributors" }

[[table]]
name = "records"
count = "records"
by = ["industry", "state"]
where = { industry = ["X"] }
protect = { method = "top-contributors" }
"""
TOTALS = "".join(f"{region},{count}\n" for region, count in (("region", "count"), *((r, 100) for r in "NESW")))
LEVELS = """
[[cube]]
name = "levels"
by = ["job", "level"]
epsilon = 1
cap = 9
approach = "several-levels"
levels = [["job"], ["level"]]
"""
PUBLIC = """
[[cube]]
name = "public"
by = ["level", "region"]
epsilon = 1
cap = 7
controls = [{ by = ["region"], totals = "totals.csv" }, { by = ["level"], exact = true }]
"""
CUBES = RELEASE + CUBE + LEVELS + PUBLIC
MONTHS = """
[release]
title = "Months"
period = "2025"
key = "sfumato.key"

[data]
records = { path = "records.parquet", unit = "business", period = "month" }

[data.attributes]
month = { codes = ["2024-01", "2025-01", "2025-02"] }
state = { codes = ["A", "B"] }

[data.measures]
turnover = { unit = "dollars", minimum = 0 }

[[table]]
name = "growth"
growth = { of = "turnover", since = ["previous", "year"] }
by = ["month", "state"]
protect = { method = "top-contributors" }
"""
SUMS = (
    HEAD
    + """
[[table]]
name = "sum_of_people"
total = "earnings"
by = ["sector", "title", "year"]
protect = { method = "laplace", epsilon = 2 }

[[table]]
name = "mean_of_people"
mean = "score"
by = ["title", "year"]
protect = { method = "laplace", epsilon = { 2001 = 1, 2002 = 2 } }

[[table]]
name = "counted_people"
count = "records"
by = ["title", "year"]
protect = { method = "laplace", epsilon = 1 }
"""
)
VALUES = """
[release]
title = "Values of businesses"
population = "businesses"
period = "2025"
budget = { definition = "units", alpha = 0.1, epsilon = 12, totals = ["turnover", "profit"] }

[data]
records = { path = "records.parquet", unit = "business", levels = ["enterprise"], weight = "weight", public = true }
public = ["state", "industry"]

[data.attributes]
state = { codes = ["A", "B"] }
industry = { codes = ["X", "Y", "Z"] }

[data.measures]
turnover = { unit = "dollars", floor = 5000 }
profit = { minimum = -1000000, floor = 1000 }

[[table]]
name = "values"
total = "turnover"
by = ["state", "industry"]
where = { industry = ["Z", "X"] }
protect = { epsilon = 4, most_cells = 2 }

[[table]]
name = "profits"
total = "profit"
by = ["industry"]
protect = { epsilon = 4 }

[[table]]
name = "mean_of_values"
mean = "turnover"
by = ["industry", "state"]
protect = { epsilon = 4, most_cells = 3 }
"""
TRUE_JOBS = (
    JOBS[: JOBS.index("[[table]]")].replace("budget", "# budget")
    + """
[[table]]
name = "true"
count = "jobs"
by = ["place", "industry"]
totals = true
protect = { method = "suppression", minimum_units = 3, dominance = [[1, 75], [2, 90]], levels = ["industry"] }

[[table]]
name = "true_of_women"
count = "jobs"
by = ["place"]
where = { sex = ["F"] }
protect = { method = "suppression", minimum_count = 10 }
"""
)
TRUE_RECORDS = (
    BUSINESSES[: BUSINESSES.index("[[table]]")].replace("minimum = -1000000", "minimum = 0")
    + """
[[table]]
name = "rounded"
total = "profit"
by = ["state", "industry"]
totals = true
protect = { method = "rounding", base = 10 }

[[table]]
name = "rounded_number"
count = "records"
by = ["industry"]
protect = { method = "rounding", base = 3, form = "random" }
"""
)
FILES = {
    "jobs": JOBS,
    "pay": PAY,
    "panel": PANEL,
    "at_periods": AT_PERIODS,
    "histories": HISTORIES,
    "businesses": BUSINESSES,
    "people": ALL,
    "people_sums": SUMS,
    "cubes": CUBES,
    "months": MONTHS,
    "values": VALUES,
    "true_jobs": TRUE_JOBS,
    "true_records": TRUE_RECORDS,
}


def planned(folder: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> Plan:
    """The plan of a release file, whose key is always the same; no data file is there."""
    folder.mkdir(parents=True, exist_ok=True)
    monkeypatch.setattr("sfumato.keys.secrets.token_bytes", lambda length: bytes(range(length)))
    if not (folder / "sfumato.key").exists():
        new_key(folder / "sfumato.key", a=Fraction("1.1"), b=Fraction("1.2"))
    (folder / "totals.csv").write_text(TOTALS, encoding="utf-8")
    (folder / "release.toml").write_text(text, encoding="utf-8")
    release = load(folder / "release.toml")
    return make_plan(release, _declared_codes(release))
