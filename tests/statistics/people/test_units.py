"""Counts of records that hide whole units: no more of their records than is said, and noise for as many."""

from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sfumato.bundle.statement import statement
from sfumato.checking import check, checked
from sfumato.engine.units import within_limit
from sfumato.errors import SfumatoError
from sfumato.release import load
from sfumato.report.assess import assess
from sfumato.running import run
from sfumato.statistics.people.small_samples import RecordLaplace
from tests.conftest import same_key, write

MOST = 3
RELEASE = f"""\
[release]
title = "Employees"
population = "employees"
period = "2025"
budget = {{ epsilon = 4, definition = "individuals" }}
key = "sfumato.key"

[data]
records = {{ path = "records.parquet", unit = "id", levels = ["firm"] }}

[data.attributes]
region = {{ codes = ["N", "E", "S", "W"] }}

[[table]]
name = "employees"
count = "records"
by = ["region"]
protect = {{ method = "laplace", epsilon = 1, protects = "unit", most_records = {MOST} }}
"""
CHANCE = np.random.default_rng(7)
FIRMS, REGIONS = CHANCE.integers(0, 120, 400), CHANCE.integers(0, 4, 400)
WEIGHTS = (1 + CHANCE.integers(0, 40, 400) / 10).tolist()


def released(folder: Path, *changes: tuple[str, str]) -> Path:
    """The release of the employees of firms, with changes."""
    folder.mkdir(parents=True, exist_ok=True)
    columns: dict[str, list[Any]] = {
        "id": list(range(400)),
        "firm": [f"F{firm}" for firm in FIRMS],
        "region": ["NESW"[place] for place in REGIONS],
        "weight": WEIGHTS,
    }
    write(folder / "records.parquet", columns)
    if not (folder / "sfumato.key").exists():
        same_key(folder / "sfumato.key")
    text = RELEASE
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (folder / "release.toml").write_text(text, encoding="utf-8")
    return folder / "release.toml"


@pytest.mark.parametrize("weighted", [False, True])
def test_counts_are_those_of_the_records_that_are_kept(tmp_path: Path, weighted: bool) -> None:
    of_weights = (
        ('unit = "id"', 'unit = "id", weight = "weight"'),
        ("epsilon = 1,", "epsilon = 1, largest_weight = 5,"),
    )
    with checked(load(released(tmp_path, *of_weights if weighted else ()))) as ready:
        (table,) = ready.plan.tables
        ((_, counted),) = ready.tabulate({table.name: table})
        with within_limit(ready.opened, table.question.limit, ready.plan.secret) as kept:
            ids = kept.tables.records.select("id").fetch()["id"].to_numpy()
    assert Counter(FIRMS[ids].tolist()) == {firm: min(n, MOST) for firm, n in Counter(FIRMS.tolist()).items()}
    weights = np.array(WEIGHTS)[ids] if weighted else np.ones(len(ids))
    expected = np.bincount(REGIONS[ids], weights=weights, minlength=4)
    assert np.abs(counted["count"] - expected).max() <= 0.5


def test_noise_hides_as_many_records_of_the_largest_weight() -> None:
    one = RecordLaplace(alpha=Fraction(1), epsilon=Fraction(2))
    unit = RecordLaplace(alpha=Fraction(1), epsilon=Fraction(2), largest_weight=5, protects="unit", most_records=MOST)
    assert one.noise.epsilon == 2
    assert unit.noise.epsilon == Fraction(2, 5 * MOST)
    assert unit.guarantee() == one.guarantee()
    # Two-sided geometric noise of ε' loses ε' for every step of one: a unit is 15 steps of one in all cells together.
    ratio = unit.noise.survival(np.array([2])) / unit.noise.survival(np.array([1]))
    assert np.isclose(-5 * MOST * np.log(ratio[0]), 2)
    assert -5 * MOST * np.log(ratio[0]) * 10 / 9 > 2.2


def test_a_limit_is_part_of_the_name_of_a_question_and_its_absence_is_not() -> None:
    assert "protects" not in repr(RecordLaplace(alpha=Fraction(1), epsilon=Fraction(2)))


def test_statement_structure_and_notes_say_what_is_protected(tmp_path: Path) -> None:
    plan = check(load(released(tmp_path))).plan
    (table,) = plan.tables
    text = statement(plan)
    assert "All records of one firm are hidden together in employees (at most 3 records of one)" in text
    assert "Of each firm at most 3 records were counted, chosen by a key" in text
    assert "for each of them, not for all together" not in text
    assert not any("`levels` changes nothing" in note for note in plan.operator_notes())
    assert any("counts at most 3 records of one firm" in note for note in plan.operator_notes())
    assert table.design()["most_records"] == MOST
    assert table.why_not_reconciled


def test_a_run_is_charged_once_and_assessed_with_what_the_limit_costs(tmp_path: Path) -> None:
    release = load(released(tmp_path))
    assert run(release).charged == ("employees",)
    assert run(release).charged == ()
    found = assess(release)
    ((title, limit),) = found.limits
    sizes = Counter(FIRMS.tolist()).values()
    assert (title, limit.unit, limit.records) == ("Employees", "firm", 400)
    assert limit.left_out == sum(max(size - MOST, 0) for size in sizes)
    assert np.isclose(limit.missing, limit.left_out / 4)
    noise = {one.most: one.noise for one in limit.tried}
    assert np.isclose(noise[MOST], 3, rtol=0.05)
    assert np.isclose(noise[1], 0.85, rtol=0.05)
    assert "Hiding whole units" in found.report.read_text(encoding="utf-8")


REFUSED = {
    "no limit": (f", most_records = {MOST}", "", "most_records from 2"),
    "a limit alone": ('protects = "unit", ', "", 'write protects = "unit"'),
    "a limit of one": (f"most_records = {MOST}", "most_records = 1", "most_records from 2"),
    "another word": ('protects = "unit"', 'protects = "firm"', 'write protects = "unit"'),
    "no larger units": (', levels = ["firm"]', "", "named by `levels`"),
    "no key": ('key = "sfumato.key"\n', "", "a key file"),
    "in parts": ('by = ["region"]', 'by = ["region"]\nparts = 2', "looked up for the whole table"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_hide_a_unit_is_refused_before_anything_is_charged(tmp_path: Path, case: str) -> None:
    old, new, words = REFUSED[case]
    with pytest.raises(SfumatoError, match=words):
        run(load(released(tmp_path, (old, new))))
    assert not (tmp_path / "ledger.sqlite").exists()
