"""Withheld numbers in a series: patterns stay alike over the periods, each is proved, and two are attacked together."""

from pathlib import Path

import pyarrow.parquet as pq

from sfumato.checking import check
from sfumato.release import load
from sfumato.report.assess import assess
from sfumato.running import run
from tests.series.office import QUARTERS, RELEASE, make_office, read_csv, write_csv

HEAD, TABLE = RELEASE.replace("budget = { alpha = 0.1, epsilon = 6 }\n", "").split("[[table]]")
WITHHELD = """[[table]]
name = "jobs"
count = "jobs"
by = ["place", "sex"]
totals = true
protect = { method = "suppression", minimum_units = 4 }
"""


def withheld(report: Path) -> set[tuple[str, str]]:
    rows = pq.read_table(report.with_name("jobs.parquet")).to_pylist()
    assert all("fewer units" in row["sensitive"] for row in rows if row["place"] == "C")
    return {(row["place"], row["sex"]) for row in rows if row["status"] == "suppressed"}


def write_jobs(folder: Path, quarter: str, size: dict[str, int]) -> None:
    """So many jobs of each sex at every workplace of a place."""
    workplaces = read_csv(folder / "workplaces.csv")
    rows = [(f"{name}{sex}{n}", name, sex) for name, place in workplaces for sex in "FM" for n in range(size[place])]
    write_csv(folder / f"jobs_{quarter}.csv", ("worker", "workplace", "sex"), rows)


def test_a_pattern_stays_where_another_would_be_cheaper_by_now(tmp_path: Path) -> None:
    # C is sensitive. Beside it the smaller of A and B is withheld, which is B first and would be A then.
    beside = {}
    for name, quarters in (("series", QUARTERS[:2]), ("anew", QUARTERS[1:2])):
        file = make_office(tmp_path / name, (HEAD + WITHHELD).replace("2026-Q1", quarters[0]))
        write_jobs(file.parent, QUARTERS[0], {"A": 10, "B": 5, "C": 4})
        write_jobs(file.parent, QUARTERS[1], {"A": 2, "B": 9, "C": 4})
        for quarter in quarters:
            release = load(file, quarter)
            foretold = check(release).foreseen["jobs"]
            run(release)
            found = assess(release, tmp_path / name / quarter / "report.html")
            rows = pq.read_table(found.report.with_name("jobs.parquet")).to_pylist()
            hidden = sum(row["true"] for row in rows if row["status"] == "suppressed")
            assert foretold.value == hidden, "check knows what was withheld in the last period"
            beside[name, quarter] = {place for place, sex in withheld(found.report) if sex != "total"} - {"C"}
    assert beside["series", QUARTERS[0]] == beside["series", QUARTERS[1]] == {"B"}
    assert beside["anew", QUARTERS[1]] == {"A"}


def test_patterns_of_four_quarters_are_alike_and_hold_each_by_itself(tmp_path: Path) -> None:
    file = make_office(tmp_path / "office", HEAD + WITHHELD)
    patterns = []
    for quarter in QUARTERS:
        release = load(file, quarter)
        run(release)
        earlier = load(file, QUARTERS[QUARTERS.index(quarter) - 1]) if patterns else None
        found = assess(release, tmp_path / quarter / "report.html", earlier=earlier, change=0.0)
        (together,) = found.together
        results = {one.attack: one for one in together.attacks}
        proved = [one for name, one in results.items() if "than the rules allow" in name and "periods" not in name]
        assert len(proved) == 2
        assert all(one.targets and not one.successes for one in proved)
        assert any("two periods" in name for name in results) == (earlier is not None)
        patterns.append(withheld(found.report))
    assert {("C", "F"), ("C", "M"), ("C", "total")} < patterns[0]
    assert all(pattern == patterns[0] for pattern in patterns)
