"""Withheld numbers in a series: patterns stay alike over the periods, each is proved, and two are attacked together."""

from pathlib import Path

import pyarrow.parquet as pq

from sfumato.release import load
from sfumato.report.assess import assess
from sfumato.running import run
from tests.series.office import QUARTERS, RELEASE, make_office

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
