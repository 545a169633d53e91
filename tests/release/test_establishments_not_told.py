"""With `establishments = false` a table with a guarantee tells nothing of where there are establishments."""

import json
from fractions import Fraction
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from sfumato.bundle.statement import statement
from sfumato.checking import check
from sfumato.errors import ReleaseError
from sfumato.plan import Plan
from sfumato.release import load
from sfumato.running import run
from tests.conftest import write
from tests.release.test_release_file import written
from tests.tiny import TINY

SILENT = """\
[release]
title = "Jobs"
period = "2025"
budget = { alpha = 0.1, epsilon = 8, definition = "weak" }

[data]
jobs = { path = "jobs.parquet", worker = "worker" }
workplaces = { path = "workplaces.parquet", key = "workplace" }
workers = { path = "workers.parquet", key = "worker" }
public = ["place", "industry"]

[data.attributes]
place = { codes = ["A", "B", "C"] }
industry = { codes = ["11", "62"] }
sex = { codes = ["F", "M"] }

[[table]]
name = "jobs"
count = "jobs"
by = ["place", "industry"]
establishments = false
protect = { epsilon = 2 }
"""
MORE = '\n[[table]]\nname = "told"\ncount = "jobs"\nby = ["place"]\nprotect = { epsilon = 1 }\n'


def planned(folder: Path, text: str = SILENT) -> Plan:
    return check(load(written(folder, text))).plan


def test_every_combination_of_codes_is_a_row_with_noise_and_no_number_of_establishments(tiny: Path) -> None:
    codes = ", ".join(f'"{code}"' for code in ["A", "B", *range(1000)])
    bundle = run(load(written(tiny, SILENT.replace('codes = ["A", "B", "C"]', f"codes = [{codes}]")))).bundle
    table = pq.read_table(bundle / "tables/jobs.parquet")
    assert table.column_names == ["place", "industry", "value", "error", "low", "high"]
    assert len(table) == 2 * 1002
    empty = [row["value"] for row in table.to_pylist() if row["place"] not in ("A", "B")]
    assert 0.1 < sum(value != 0 for value in empty) / len(empty) < 0.5  # E|noise| is a half: ordinary cells with S = 1
    facts = json.loads((bundle / "structure.json").read_text())["tables"][0]
    assert facts["structural_zeros"] == "none known: every combination of codes is protected and listed"
    assert "establishments" not in facts["columns"]


def test_establishments_without_jobs_change_no_number_that_enters_the_table(tiny: Path) -> None:
    from sfumato.checking import checked

    def cells() -> list[list[int]]:
        with checked(load(written(tiny, SILENT)), everything=True, remember=False) as ready:
            found = ready.count({table.name: table for table in ready.plan.tables})["jobs"]
        return [found.positions.tolist(), *(found[name].tolist() for name in sorted(found.columns))]

    before = cells()
    assert before[0] == list(range(6))
    more = {"workplace": [200, 201], "place": ["C", "B"], "industry": [11, 11]}
    write(tiny / "workplaces.parquet", {name: TINY["workplaces"][name] + more[name] for name in more})
    assert cells() == before


def test_it_is_another_question_than_the_same_table_with_the_number(tiny: Path) -> None:
    silent = planned(tiny).tables[0]
    told = planned(tiny, SILENT.replace("establishments = false\n", "")).tables[0]
    assert silent.digest("0") != told.digest("0")
    assert silent.guarantee == told.guarantee


def test_the_statement_bounds_the_existence_of_an_establishment_by_its_size(tiny: Path) -> None:
    bundle = run(load(written(tiny, SILENT))).bundle
    text = (bundle / "statement.md").read_text()
    assert "An establishment without workers changes no number of this release." in text
    assert "so is the number of establishments" not in text
    assert "Every count of this release was changed by random noise" in text
    found = json.loads((bundle / "structure.json").read_text())["comparisons"]
    existence = [(part["other"], part["steps"], part["epsilon"]) for part in found if part["about"] == "establishment"]
    assert existence == [(1, 1, 2), (10, 10, 20)]


def test_what_another_table_tells_is_not_said_to_be_hidden(tiny: Path) -> None:
    bundle = run(load(written(tiny, SILENT + MORE))).bundle
    text = (bundle / "statement.md").read_text()
    assert "is public in the other tables" in text
    assert "changes no number of this release" not in text
    found = json.loads((bundle / "structure.json").read_text())["comparisons"]
    assert all(part["about"] != "establishment" for part in found)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("{ epsilon = 2 }", '{ method = "auto", epsilon = 2 }', "chooses by it"),
        ('place = { codes = ["A", "B", "C"] }\n', "", "read off the workplaces"),
        ("establishments = false", 'establishments = false\nstructural_zeros = "implied"', "leave out"),
    ],
)
def test_what_would_tell_establishments_is_refused_before_anything_is_charged(
    tiny: Path, old: str, new: str, words: str
) -> None:
    assert old in SILENT
    with pytest.raises(ReleaseError, match=words):
        run(load(written(tiny, SILENT.replace(old, new))))
    assert not (tiny / "ledger.sqlite").exists()


def test_tables_that_agree_may_leave_it_out(tiny: Path) -> None:
    text = SILENT.replace('period = "2025"', 'period = "2025"\nreconcile = true') + MORE.replace(
        'by = ["place"]', 'by = ["place"]\nestablishments = false'
    )
    bundle = run(load(written(tiny, text))).bundle
    fine, coarse = (pq.read_table(bundle / f"tables/{name}.parquet").to_pylist() for name in ("jobs", "told"))
    sums = {row["place"]: row["value"] for row in coarse}
    assert sums == {place: sum(row["value"] for row in fine if row["place"] == place) for place in sums}
    assert planned(tiny, text).guarantee.epsilon == Fraction(3)


RECONCILED = SILENT.replace('period = "2025"', 'period = "2025"\nreconcile = true')


def test_agreeing_with_tables_that_tell_would_tell_so_it_is_left_as_it_is_and_that_is_said(tiny: Path) -> None:
    fine = MORE.replace('"told"', '"finer"').replace('["place"]', '["place", "industry", "sex"]')
    text = RECONCILED + MORE + fine
    found = check(load(written(tiny, text))).plan
    assert found.reconciled == ("told", "finer")
    assert any(note.startswith("reconcile = true leaves jobs as it is") for note in found.operator_notes())
    bundle = run(load(written(tiny, text))).bundle
    silent = pq.read_table(bundle / "tables/jobs.parquet").to_pylist()
    alone = run(load(written(tiny, text.replace("reconcile = true", "reconcile = false"))))
    assert silent == pq.read_table(alone.bundle / "tables/jobs.parquet").to_pylist()
    assert "`jobs` was left as it is, because" in (run(load(written(tiny, text))).bundle / "statement.md").read_text()
    facts = json.loads((bundle / "structure.json").read_text())["tables"]
    assert ["not_reconciled" in table for table in facts] == [True, False, False]


def test_tables_that_tell_and_tables_that_do_not_each_agree_among_themselves(tiny: Path) -> None:
    silent = MORE.replace('"told"', '"silent"').replace('by = ["place"]', 'by = ["place"]\nestablishments = false')
    fine = MORE.replace('"told"', '"finer"').replace('["place"]', '["place", "industry"]')
    bundle = run(load(written(tiny, RECONCILED + silent + MORE + fine))).bundle
    assert "`jobs`, `silent` agree with one another and not with the others" in (bundle / "statement.md").read_text()
    for inner, outer in (("jobs", "silent"), ("finer", "told")):
        rows = pq.read_table(bundle / f"tables/{inner}.parquet").to_pylist()
        sums = {row["place"]: row["value"] for row in pq.read_table(bundle / f"tables/{outer}.parquet").to_pylist()}
        assert sums == {place: sum(row["value"] for row in rows if row["place"] == place) for place in sums}


def test_a_table_that_lists_only_some_values_is_said_to_stay_as_it_is(tiny: Path) -> None:
    sparse = MORE.replace('"told"', '"sparse"').replace("{ epsilon = 1 }", '{ method = "sparse-laplace", epsilon = 1 }')
    found = planned(tiny, RECONCILED.replace("establishments = false\n", "") + MORE + sparse)
    assert found.reconciled == ("jobs", "told")
    (note,) = found.operator_notes()
    assert "leaves sparse as it is, because it lists only values from a threshold on" in note
    assert "`sparse` was left as it is" in statement(found)
