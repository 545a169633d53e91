"""True numbers of jobs: establishments are the units, and combinations without any are known zeros."""

import re
from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.checking import check, checked
from sfumato.errors import SfumatoError
from sfumato.exact.pattern import Pattern, withhold
from sfumato.exact.rules import Protection
from sfumato.exact.system import System
from sfumato.release import load
from sfumato.running import run
from sfumato.statistics.exact import decide
from tests.tiny import TINY

HEAD = """
[release]
title = "Jobs"
period = "2025"

[data]
engine = "{engine}"
jobs = {{ path = "jobs.parquet", worker = "worker", workplace = "workplace" }}
workplaces = {{ path = "workplaces.parquet", key = "workplace" }}
workers = {{ path = "workers.parquet", key = "worker" }}
public = ["place", "industry"]

[data.attributes]
sex = {{ codes = ["F", "M"] }}

[data.measures]
earnings = {{ unit = "dollars" }}

[[table]]
name = "jobs"
count = "jobs"
by = ["place", "sex"]
totals = true
protect = {{ method = "suppression", {rules} }}

[[table]]
name = "pay"
total = "earnings"
by = ["place", "industry"]
protect = {{ method = "suppression", {rules} }}
"""


def written(folder: Path, rules: str, engine: str = "duckdb") -> Path:
    for name, columns in TINY.items():
        pq.write_table(pa.table(columns), folder / f"{name}.parquet")
    path = folder / "release.toml"
    path.write_text(HEAD.format(engine=engine, rules=rules), encoding="utf-8")
    return path


def test_contributions_are_those_of_establishments_counted_by_hand(tmp_path: Path, engine: str) -> None:
    release = load(written(tmp_path, "minimum_units = 2", engine))
    with checked(release, remember=False) as ready:
        counted = ready.count({table.name: table for table in ready.plan.tables})
    jobs, pay = counted["jobs"], counted["pay"]
    # A: 100 has F, M, F and 101 has M, F; B: 102 has F, M, F. Establishment 103 has no jobs.
    assert jobs["count"].tolist() == [3, 2, 5, 2, 1, 3, 5, 3, 8]
    assert jobs["units_0"].tolist() == [2, 2, 2, 1, 1, 1, 3, 3, 3]
    assert jobs["largest_0"].tolist() == [2, 1, 3, 2, 1, 3, 2, 1, 3]
    assert jobs["establishments"].tolist() == [3, 3, 3, 1, 1, 1, 4, 4, 4]
    codes = [
        (pay.dimensions[0].codes[a], pay.dimensions[1].codes[b])
        for a, b in zip(pay.codes("place"), pay.codes("industry"), strict=True)
    ]
    found = dict(zip(codes, zip(pay["count"].tolist(), pay["records"].tolist(), strict=True), strict=True))
    assert found == {("A", "11"): (60, 3), ("A", "62"): (90, 2), ("B", "62"): (210, 3)}  # nobody farms in B


def test_larger_units_are_named_by_a_public_attribute(tmp_path: Path) -> None:
    release = load(written(tmp_path, 'minimum_units = 2, levels = ["industry"]'))  # as if it were the enterprise
    with checked(release, remember=False) as ready:
        jobs = ready.count({table.name: table for table in ready.plan.tables})["jobs"]
    assert jobs["units_0"].tolist() == [2, 2, 2, 1, 1, 1, 3, 3, 3]
    assert jobs["units_1"].tolist() == [2, 2, 2, 1, 1, 1, 2, 2, 2]  # 101 and 102 are one
    assert jobs["largest_1"].tolist() == [2, 1, 3, 2, 1, 3, 3, 2, 5]


def test_cells_of_one_establishment_are_withheld_and_zeros_are_told(tmp_path: Path) -> None:
    published = run(load(written(tmp_path, "minimum_units = 2")))
    rows = pq.read_table(published.bundle / "tables/jobs.parquet").to_pylist()
    values = {(row["place"], row["sex"]): row["value"] for row in rows}
    assert [values["B", sex] for sex in ("F", "M", "total")] == [None, None, None]
    assert values["total", "total"] == 8 or values["A", "total"] is None
    pay = pq.read_table(published.bundle / "tables/pay.parquet").to_pylist()
    farms = next(row for row in pay if (row["place"], row["industry"]) == ("B", "11"))
    assert (farms["value"], farms["status"], farms["establishments"]) == (0, "", 0)


@pytest.mark.parametrize("cost", ["cells", "value"])
def test_either_cost_withholds_what_is_sensitive(tmp_path: Path, cost: str) -> None:
    published = run(load(written(tmp_path, f'minimum_units = 2, cost = "{cost}"')))
    rows = pq.read_table(published.bundle / "tables/pay.parquet").to_pylist()
    assert [row["value"] for row in rows if row["establishments"]] == [None, None, None]


@pytest.mark.parametrize(("jobs", "pay"), [("cells", "value"), ("value", "cells"), ("value", "value")])
def test_every_table_is_withheld_at_its_own_cost_and_beside_values_of_its_own_measure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jobs: str, pay: str
) -> None:
    places: list[Mapping[str, Any]] = []
    costs: list[Any] = []

    def noted_places(batch: Any, known: Any, **options: Any) -> Any:
        found = linked_before(batch, known, **options)
        places.append(found[0].places)
        return found

    def noted_cost(system: System, needs: Protection, **options: Any) -> Pattern:
        costs.append(options["cost"])
        return withhold(system, needs, **options)

    linked_before = decide.link
    monkeypatch.setattr(decide, "link", noted_places)
    monkeypatch.setattr(decide, "withhold", noted_cost)
    path = written(tmp_path, "minimum_units = 2")
    first, between, last = path.read_text(encoding="utf-8").split("minimum_units = 2")
    path.write_text(
        f'{first}minimum_units = 2, cost = "{jobs}"{between}minimum_units = 2, cost = "{pay}"{last}', encoding="utf-8"
    )
    check(load(path))
    for name, choice in (("jobs", jobs), ("pay", pay)):
        at = places[0][name]
        cost = costs[0][at[at >= 0]]
        assert (cost.max() / cost.min() > 1.5) == (choice == "value")  # dearer where there is more in it, or all alike
        assert 0.3 < float(np.median(cost)) < 3  # jobs do not cost nothing because dollars are many


@pytest.mark.slow
def test_linked_tables_without_totals_have_cells_that_nothing_bounds_and_are_protected(release_folder: Path) -> None:
    text = (release_folder / "release.toml").read_text(encoding="utf-8")
    text = re.sub(r'"smooth-pareto", epsilon = [\d.]+', '"suppression", minimum_units = 3, p = 15', text)
    text = re.sub(r"^budget = .*$", "", text, flags=re.MULTILINE)
    path = release_folder / "suppressed.toml"
    path.write_text(text, encoding="utf-8")
    found = check(load(path)).foreseen
    assert len(found) == 3
    assert all(one.withheld >= one.sensitive > 0 for one in found.values())


HOLDINGS = """
[release]
title = "Jobs"
period = "2025"
ledger = "ledger.sqlite"
bundle = "bundle"

[data]
jobs = {{ path = "jobs.parquet", worker = "worker", workplace = "workplace" }}
workplaces = {{ path = "workplaces.parquet", key = "workplace" }}
public = ["place", "enterprise", "group"]

"""


def of_holdings(folder: Path, *levels: str) -> Path:
    """One group has all of p and q, as two enterprises, another all of r, and many the rest."""
    register = [("a", "p", "A", "G", 20), ("b", "q", "B", "G", 20), ("c", "r", "C", "H", 20)]
    register += [(f"s{at}", "s", f"S{at}", f"T{at}", 7 + at) for at in range(6)]
    names = ("workplace", "place", "enterprise", "group")
    columns = {name: [one[at] for one in register] for at, name in enumerate(names)}
    pq.write_table(pa.table(columns), folder / "workplaces.parquet")
    jobs = [(one[0], f"{one[0]}{at}") for one in register for at in range(one[-1])]
    pq.write_table(
        pa.table({"workplace": [job[0] for job in jobs], "worker": [job[1] for job in jobs]}), folder / "jobs.parquet"
    )
    text = HOLDINGS.format()
    for at, one in enumerate(levels):
        rules = f'{{ method = "suppression", minimum_units = 2, levels = {one} }}'
        text += f'[[table]]\nname = "t{at}"\ncount = "jobs"\nby = ["place"]\ntotals = true\nprotect = {rules}\n'
    (folder / "release.toml").write_text(text, encoding="utf-8")
    return folder / "release.toml"


@pytest.mark.parametrize("levels", ['["group"]', '["enterprise", "group"]', '["group", "enterprise"]'])
def test_a_group_knows_the_cells_of_its_enterprises_in_whatever_order_levels_are_named(
    levels: str, tmp_path: Path
) -> None:
    published = run(load(of_holdings(tmp_path, levels)))
    found = pq.read_table(published.bundle / "tables/t0.parquet").to_pylist()
    withheld = {row["place"] for row in found if row["status"]}
    assert withheld > {"p", "q", "r"}  # else the total, less what the group has in p and q, is what the other has in r


def test_tables_of_other_levels_are_refused_for_who_owns_units_of_one_knows_cells_of_the_other(tmp_path: Path) -> None:
    with pytest.raises(SfumatoError, match="the same `levels`"):
        run(load(of_holdings(tmp_path, '["group"]', "[]")))
    assert not (tmp_path / "bundle").exists()
    assert run(load(of_holdings(tmp_path, '["group", "enterprise"]', '["enterprise", "group"]'))).charged == (
        "t0",
        "t1",
    )


def test_when_the_time_is_over_the_pattern_is_finished_and_proved_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hurried(system: System, needs: Protection, **options: Any) -> Pattern:
        """A search that has no time for single readers."""
        if "stop" not in options:
            return withhold(system, needs, **options)
        return replace(withhold(system, needs, **options, readers=False), pairs=np.array([[0, -1]]))

    clock = count(step=1000)
    monkeypatch.setattr(decide, "monotonic", lambda: next(clock))
    monkeypatch.setattr(decide, "withhold", hurried)
    published = run(load(of_holdings(tmp_path, '["group"]')))
    found = pq.read_table(published.bundle / "tables/t0.parquet").to_pylist()
    assert {row["place"] for row in found if row["status"]} > {"p", "q", "r"}


OWNERSHIP = """
[release]
title = "Jobs"
period = "2025"

[data]
jobs = { path = "jobs.parquet", worker = "worker", workplace = "workplace" }
workplaces = { path = "workplaces.parquet", key = "workplace" }
public = ["place", "ownership"]
"""


def of_owners(folder: Path, register: list[tuple[str, str, int]], *tables: str) -> Path:
    """Establishments by place, ownership and number of jobs; no table shows more than 60 % of one of them."""
    names = [f"w{at}" for at in range(len(register))]
    columns = {"workplace": names, "place": [one[0] for one in register], "ownership": [one[1] for one in register]}
    pq.write_table(pa.table(columns), folder / "workplaces.parquet")
    jobs = [(name, f"{name}-{job}") for name, one in zip(names, register, strict=True) for job in range(one[2])]
    pq.write_table(
        pa.table({"workplace": [job[0] for job in jobs], "worker": [job[1] for job in jobs]}), folder / "jobs.parquet"
    )
    rules = 'protect = { method = "suppression", dominance = [[1, 60]] }'
    text = "".join(f'[[table]]\nname = "t{at}"\ncount = "jobs"\n{one}\n{rules}\n' for at, one in enumerate(tables))
    (folder / "release.toml").write_text(OWNERSHIP + text, encoding="utf-8")
    return folder / "release.toml"


def withheld(folder: Path, table: str) -> set[str]:
    found = pq.read_table(folder / "bundle/tables" / f"{table}.parquet").to_pylist()
    return {row["place"] for row in found if row["status"]}


LARGE = [("B", "private", 1), ("B", "private", 1), ("B", "private", 4)]


def test_establishments_of_a_filtered_table_tell_the_least_number_of_jobs_of_its_cells(tmp_path: Path) -> None:
    register = [*[("A", "private", 1)] * 10, *LARGE, *[("C", "private", 3)] * 5, *[("A", "public", 2)] * 4]
    table = 'by = ["place"]\ntotals = true\nwhere = { ownership = ["private"] }'
    run(load(of_owners(tmp_path, register, table)))
    # 16 jobs in A and B together, at 10 establishments in A: B would have no more than the 6 that it has.
    assert withheld(tmp_path, "t0") > {"B"}
    assert withheld(tmp_path, "t0") != {"A", "B"}


def test_establishments_of_a_difference_tell_the_least_number_of_its_jobs(tmp_path: Path) -> None:
    register = [*LARGE, *[("B", "public", 1)] * 10, *[(place, "public", 3) for place in "ACCA"] * 2]
    tables = ['by = ["place"]', 'by = ["place"]\nwhere = { ownership = ["private"] }']
    run(load(of_owners(tmp_path, register, *tables)))
    assert withheld(tmp_path, "t1") == {"B"}
    assert withheld(tmp_path, "t0") == {"B"}  # 16 jobs, of which 10 public establishments have 10 at least


def test_filters_that_leave_no_jobs_make_a_table_of_zeros(tmp_path: Path) -> None:
    register = [("A", "private", 5), ("B", "private", 4), ("A", "public", 0)]
    run(load(of_owners(tmp_path, register, 'by = ["place"]\nwhere = { ownership = ["public"] }')))
    found = pq.read_table(tmp_path / "bundle/tables/t0.parquet").to_pylist()
    assert {row["place"]: (row["value"], row["establishments"]) for row in found}["A"] == (0, 1)
    assert not withheld(tmp_path, "t0")


def test_the_statement_says_that_tables_with_noise_estimate_what_is_withheld(tmp_path: Path) -> None:
    register = [*[("A", "private", 4)] * 2, *[("B", "private", 4)] * 6, *[("C", "private", 4)] * 2]
    path = of_owners(tmp_path, register, 'by = ["place"]\ntotals = true', 'by = ["place"]')
    true, _ = path.read_text(encoding="utf-8").rsplit("protect", 1)
    budget = 'budget = { alpha = 0.1, epsilon = 8, definition = "weak" }\n\n[data]'
    noisy = 'protect = { method = "smooth-gamma", epsilon = 8 }\n'
    path.write_text(true.replace("[data]", budget, 1) + noisy, encoding="utf-8")
    published = run(load(path))
    statement = (published.bundle / "statement.md").read_text(encoding="utf-8")
    assert "Tables `t1` have noise and are no part of any proof." in statement
