"""A release of several kinds promises of each only what its guarantee covers."""

import json
from pathlib import Path

import pytest

from sfumato.bundle.statement import compared, meaning_of, statement
from sfumato.checking import check
from sfumato.plan import Plan
from sfumato.release import load
from sfumato.running import run
from tests.golden.data import write_key
from tests.statistics.cube.survey import CUBE, RELEASE, release

TABLE = """
[[table]]
name = "levels"
count = "records"
by = ["level"]
protect = { method = "laplace", epsilon = 0.5, largest_weight = 1000 }
"""
TOTALS = """
[[table]]
name = "paid"
total = "pay"
by = ["region"]
protect = { method = "perturbed-values" }
"""
SHARED = CUBE.replace("cap = 7", 'cap = 7\ndraws = "shared"').replace('measures = ["pay"]\n', "")
STRICT = CUBE.replace("cap = 7", 'cap = 7\nsensitivity = "weight"\nlargest_weight = 1000').replace(
    'measures = ["pay"]\n', ""
)
KEY = ('period = "2025"', 'period = "2025"\nkey = "sfumato.key"')
BROAD = ("all tables together", "this release changes", "Every number of this release")


def planned(folder: Path, *sections: str) -> Plan:
    changes = [KEY] if TOTALS in sections else []
    file = release(folder, *changes, text=RELEASE.replace("epsilon = 8", "epsilon = 80") + "".join(sections))
    if changes:
        write_key(folder)
    return check(load(file)).plan


def promised(plan: Plan) -> str:
    """The first paragraphs, before the parameters; what `check` says is made of the same."""
    return statement(plan).split("## Other periods and releases")[0] + " ".join(meaning_of(plan))


@pytest.mark.parametrize(("other", "name"), [(SHARED, "people"), (TOTALS, "paid")], ids=["shared", "values"])
def test_a_table_beside_one_without_a_guarantee_promises_for_itself_only(tmp_path: Path, other: str, name: str) -> None:
    plan = planned(tmp_path, other, TABLE)
    words = promised(plan)
    assert not [broad for broad in BROAD if broad in words]
    assert "the table `levels` changes the odds by a factor of at most 1.65" in words
    assert f"Nothing bounds what `{name}` reveals" in words
    assert {found.tables for found in compared(plan)} == {("levels",)}


def test_a_table_beside_a_cube_whose_counts_alone_are_covered_promises_for_itself_only(tmp_path: Path) -> None:
    plan = planned(tmp_path, CUBE, TABLE)
    words = promised(plan)
    assert not [broad for broad in BROAD if broad in words]
    both = "the table `levels` and the counts of records of `people` together"
    assert f"what anyone can tell from {both}" in words
    assert f"{both} change the odds by a factor of at most 33.2" in words
    assert "Of `people` a guarantee covers the counts of records only" in words
    assert "from the **counts of records** and the table `levels` together" in words
    done = run(load(tmp_path / "release.toml"))
    told = json.loads((done.bundle / "structure.json").read_text())["statement"]["promises"]
    assert not [broad for broad in BROAD[1:] if broad in " ".join(told)]
    assert "their other numbers are outside of it" in " ".join(told)


def test_a_table_beside_a_cube_that_is_covered_wholly_promises_for_both(tmp_path: Path) -> None:
    words = promised(planned(tmp_path, STRICT, TABLE))
    assert "Every number of this release" in words
    assert "does not cover everything" not in words


def test_several_tables_beside_one_without_a_guarantee_promise_together(tmp_path: Path) -> None:
    other = TABLE.replace('"levels"', '"jobs"').replace('["level"]', '["job"]')
    words = promised(planned(tmp_path, SHARED, TABLE, other))
    assert "from the tables `levels` and `jobs` together" in words
    assert "the tables `levels` and `jobs` together change the odds" in words
