"""Controls whose totals are public already: read and checked before anything is charged, met exactly, at no cost."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.bundle.read import open_cube
from sfumato.checking import check, checked
from sfumato.errors import SfumatoError
from sfumato.release import load
from sfumato.running import run
from sfumato.statistics.cube.controls import LARGEST_TOTAL
from tests.cli.call import call
from tests.statistics.cube.survey import CODES, release

NOISY = 'controls = [{ by = ["region"], epsilon = 0.5 }, { by = ["level", "job"], epsilon = 0.5 }]\nmeasures = ["pay"]'
REGION = '{ by = ["region"], totals = "region.csv", source = "the register of people" }'
PUBLIC = (NOISY, f'controls = [{REGION}, {{ by = ["level", "job"], epsilon = 0.5 }}]')
ROWS = {"region": ["S", "N", "E", "W"], "count": [90, 110, 100, 100], "weighted": [2_300, 2_500, 2_600, 2_600]}


def publicly(folder: Path, *changes: tuple[str, str], rows: dict[str, list[Any]] | None = None) -> Path:
    """A release with a control from a file of totals."""
    file = release(folder, PUBLIC, *changes)
    columns = ROWS if rows is None else rows
    lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
    (folder / "region.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def without(column: str) -> dict[str, list[Any]]:
    return {name: values for name, values in ROWS.items() if name != column}


def test_the_cube_adds_up_to_public_totals_which_cost_nothing(tmp_path: Path) -> None:
    file = publicly(tmp_path)
    published = run(load(file))
    assert published.plan.guarantee.epsilon == Fraction(5, 2), "the cube's and that of the noisy control"
    cube = open_cube(published.bundle, "people")
    for column in ("count", "weighted"):
        found = dict(zip(CODES["region"], cube.totals(["region"], column=column).values, strict=True))
        assert found == dict(zip(ROWS["region"], ROWS[column], strict=True))
        assert cube.totals(["region"], column=column).perturbation_error == pytest.approx(0)


def test_a_column_that_a_file_does_not_have_is_not_changed_by_it(tmp_path: Path) -> None:
    change = (', { by = ["level", "job"], epsilon = 0.5 }]', "]")
    cube = open_cube(run(load(publicly(tmp_path, change, rows=without("count")))).bundle, "people")
    assert not (cube.cube["count"] % 1_000_000).any(), "counts have their noise and nothing else"
    assert cube.figures.noise["count"].controls == {}
    assert cube.figures.noise["weighted"].controls == {(0,): 0.0}
    assert cube.totals(["region"]).values.tolist() == [2_500, 2_600, 2_300, 2_600]


def test_totals_may_come_as_parquet_and_their_columns_in_any_order(tmp_path: Path) -> None:
    file = publicly(tmp_path, ("region.csv", "region.parquet"))
    table = pa.table({"weighted": pa.array(ROWS["weighted"], pa.float64()), "region": ROWS["region"]})
    pq.write_table(table, tmp_path / "region.parquet")
    first = open_cube(run(load(file)).bundle, "people")
    assert first.totals(["region"]).values.tolist() == [2_500, 2_600, 2_300, 2_600]


def test_the_grand_total_and_tables_of_several_attributes_can_be_public(tmp_path: Path) -> None:
    controls = '{ by = [], totals = "all.csv" }, { by = ["job", "level"], totals = "jobs.csv" }'
    file = release(tmp_path, (NOISY, f"controls = [{controls}]"))
    (tmp_path / "all.csv").write_text("count\n399\n", encoding="utf-8")
    rows = [(j, v, 60 + i) for i, (j, v) in enumerate((j, v) for v in CODES["level"] for j in CODES["job"])]
    rows[-1] = (*rows[-1][:2], rows[-1][2] + 24)
    text = "\n".join(["level,count,job", *(f"{level},{count},{job}" for job, level, count in rows)])
    (tmp_path / "jobs.csv").write_text("\ufeff" + text, encoding="utf-8")
    cube = open_cube(run(load(file)).bundle, "people")
    answer = cube.totals(["job", "level"], column="count").values
    for job, level, count in rows:
        assert answer[CODES["job"].index(job), CODES["level"].index(level)] == count


def test_statement_and_structure_say_where_totals_come_from(tmp_path: Path) -> None:
    bundle = run(load(publicly(tmp_path))).bundle
    text = (bundle / "statement.md").read_text()
    assert "Totals by region (counts and weighted counts) were public already" in text
    assert "the register of people" in text
    assert "Disclosed as they are" not in text
    controls = json.loads((bundle / "structure.json").read_text())["cubes"][0]["controls"]
    assert {
        "by": ["region"],
        "epsilon": None,
        "public_totals": ["count", "weighted"],
        "source": "the register of people",
    } in controls
    unnamed = publicly(tmp_path / "b", (', source = "the register of people"', ""))
    assert "come from elsewhere: region.csv." in (run(load(unnamed)).bundle / "statement.md").read_text()


def test_other_totals_are_another_question_and_the_same_in_another_file_are_not(tmp_path: Path) -> None:
    assert run(load(publicly(tmp_path))).charged == ("people",)
    assert run(load(publicly(tmp_path, rows={name: values[::-1] for name, values in ROWS.items()}))).charged == ()
    moved = ROWS | {"count": [91, 109, 100, 100]}
    assert run(load(publicly(tmp_path, rows=moved))).charged == ("people",)


FAULTS: dict[str, tuple[dict[str, list[Any]], str]] = {
    "code missing": ({name: values[:3] for name, values in ROWS.items()}, "no row for 1 of them, such as W"),
    "code twice": ({name: [*values, values[0]] for name, values in ROWS.items()}, "more than one row for 1 of them"),
    "unknown code": (ROWS | {"region": ["S", "N", "E", "X"]}, "1 unknown, such as 'X'"),
    "empty code": (ROWS | {"region": ["S", "N", "E", ""]}, "1 unknown, such as ''"),
    "negative": (ROWS | {"count": [90, -1, 100, 100]}, "1 negative, first in row 2"),
    "not whole": (ROWS | {"weighted": [2_300, 2_500, "26.5", 2_600]}, "1 not whole, first in row 3"),
    "no number": (ROWS | {"count": [90, "many", "", 100]}, "2 missing or no number, first in row 2"),
    "infinite": (ROWS | {"count": [90, "inf", 5, 100]}, "1 missing or no number"),
    "attribute missing": (without("region"), "add the column 'region'"),
    "no totals": ({"region": ROWS["region"]}, "add the column with the totals"),
    "another column": (ROWS | {"wieghted": [1, 2, 3, 4]}, "'wieghted'"),
    "too large": (ROWS | {"weighted": [LARGEST_TOTAL, 1, 1, 1]}, "add up to at most 10,000,000,000"),
    "no lines": ({name: [] for name in ROWS}, "no row for 4 of them"),
}


@pytest.mark.parametrize("case", FAULTS)
def test_a_file_with_a_fault_is_refused_before_anything_is_charged(tmp_path: Path, case: str) -> None:
    rows, words = FAULTS[case]
    file = publicly(tmp_path, rows=rows)
    for attempt in (lambda: check(load(file), data=False), lambda: run(load(file))):
        with pytest.raises(SfumatoError) as error:
            attempt()
        assert words in str(error.value)
        assert "cube 'people': control 'region', totals region.csv" in str(error.value)
    assert not (tmp_path / "ledger.sqlite").exists()


@pytest.mark.slow
def test_a_missing_or_broken_file_is_refused_before_anything_is_charged(tmp_path: Path) -> None:
    file = publicly(tmp_path)
    (tmp_path / "region.csv").unlink()
    assert "no such file" in call("check", file, refused=True).stderr
    assert "no such file" in call("run", file, refused=True).stderr
    (tmp_path / "region.csv").write_bytes(b"region,count\n\xff\xfe,1\n")
    assert "mend the file" in call("run", file, refused=True).stderr
    (tmp_path / "region.csv").write_text("", encoding="utf-8")
    call("run", file, refused=True)
    (tmp_path / "region.parquet").write_bytes(b"no Parquet")
    file.write_text(file.read_text().replace("region.csv", "region.parquet"), encoding="utf-8")
    assert "mend the file" in call("run", file, refused=True).stderr
    assert not (tmp_path / "ledger.sqlite").exists()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("totals =", "epsilon = 1, totals ="), "one of them"),
        (("totals =", "exact = true, totals ="), "one of them"),
        (("totals =", "cap = 3, totals ="), "none for a control without noise"),
        (("epsilon = 0.5 }", 'epsilon = 0.5, source = "x" }'), "`source` tells where"),
        (("cap = 7", 'cap = 7\nmeasures = ["pay"]'), "no weighted totals in a cube with measures"),
        (('period = "2025"', 'period = "2025"\nbundle = "sub"'), "a folder that holds region.csv"),
    ],
)
def test_totals_that_do_not_fit_the_release_are_refused(tmp_path: Path, change: tuple[str, str], words: str) -> None:
    file = publicly(tmp_path, change, *([("region.csv", "sub/region.csv")] if "bundle" in change[1] else []))
    with pytest.raises(SfumatoError, match=words):
        run(load(file))
    assert not (tmp_path / "ledger.sqlite").exists()


def test_measures_may_stay_where_only_counts_of_records_are_public(tmp_path: Path) -> None:
    file = publicly(tmp_path, ("cap = 7", 'cap = 7\nmeasures = ["pay"]'), rows=without("weighted"))
    cube = open_cube(run(load(file)).bundle, "people")
    assert cube.figures.noise["pay"].controls.keys() == cube.figures.noise["weighted"].controls.keys()


def contradicting(folder: Path, *changes: tuple[str, str]) -> Path:
    """A second file of totals, by region and level, that has other numbers in the west."""
    file = publicly(
        folder, ('{ by = ["level", "job"], epsilon = 0.5 }', '{ by = ["level", "region"], totals = "b.csv" }')
    )
    text = file.read_text()
    for old, new in changes:
        text = text.replace(old, new, 1)
    file.write_text(text, encoding="utf-8")
    halves = {"N": 55, "E": 50, "S": 45, "W": 51}
    rows = [f"{level},{region},{half}" for level in CODES["level"] for region, half in halves.items()]
    (folder / "b.csv").write_text("\n".join(["level,region,count", *rows]), encoding="utf-8")
    return file


@pytest.mark.slow
@pytest.mark.parametrize("calibration", ["least-squares", "raking"])
def test_public_totals_that_contradict_each_other_are_refused_by_name_on_the_command_line(
    tmp_path: Path, calibration: str
) -> None:
    file = contradicting(tmp_path, ("cap = 7", f'cap = 7\ncalibration = "{calibration}"'))
    for command in (["check", file], ["check", file, "--no-data"], ["run", file]):
        said = " ".join(call(*command, refused=True).stderr.split())
        assert "cube 'people'" in said
        assert "'region (the register of people)' and 'level × region (b.csv)'" in said
        assert "the same sums by region" in said
        assert "1 of 4 that differ" in said
    assert not (tmp_path / "ledger.sqlite").exists()
    mended = (tmp_path / "b.csv").read_text().replace(",W,51", ",W,50")
    (tmp_path / "b.csv").write_text(mended, encoding="utf-8")
    assert json.loads(call("run", file, "--json").stdout)["charged"] == ["people"]


@pytest.mark.slow
def test_exact_tables_that_contradict_public_totals_are_refused_before_the_charge(tmp_path: Path) -> None:
    exact = ('{ by = ["level", "job"], epsilon = 0.5 }', '{ by = ["level", "job"], exact = true }')
    with checked(load(release(tmp_path / "true"))) as ready:
        true = next(iter(ready.count({"": ready.plan.cubes[0]}).values()))[0]
    counts = dict(zip(CODES["region"], true.project("region")["count"].tolist(), strict=True))
    agreeing = {"region": list(counts), "count": list(counts.values())}
    assert run(load(publicly(tmp_path / "agree", exact, rows=agreeing))).charged == ("people",)
    wrong = agreeing | {"count": [n + (place == 2) for place, n in enumerate(counts.values())]}
    other = publicly(tmp_path / "wrong", exact, rows=wrong)
    for command in ("check", "run"):
        said = " ".join(call(command, other, refused=True).stderr.split())
        assert "'region (the register of people)' and 'level × job'" in said
        assert "the same sum in the grand total" in said
    assert not (tmp_path / "wrong" / "ledger.sqlite").exists()


@pytest.mark.slow
def test_public_totals_that_no_cube_without_negative_cells_has_are_refused_before_the_charge(tmp_path: Path) -> None:
    pairs = {"region,job": "a.csv", "job,level": "b.csv", "region,level": "c.csv"}
    controls = ", ".join(f'{{ by = {json.dumps(by.split(","))}, totals = "{name}" }}' for by, name in pairs.items())
    file = release(tmp_path, (NOISY, f"controls = [{controls}]"), ("cap = 7", "cap = 7\nnonnegative = true"))
    # People of region N have job a and others b; those with job a have level 1; but it is the others of region N.
    alike = {"region,job": {("N", "a"), ("E", "b")}, "job,level": {("a", "1"), ("b", "2")}}
    alike["region,level"] = {("N", "2"), ("E", "1")}
    for by, name in pairs.items():
        one, other = by.split(",")
        rows = [f"{c},{d},{100 * ((c, d) in alike[by])}" for c in CODES[one] for d in CODES[other]]
        (tmp_path / name).write_text("\n".join([f"{by},count", *rows]), encoding="utf-8")
    for command in ("check", "run"):
        said = " ".join(call(command, file, refused=True).stderr.split())
        assert "'region × job (a.csv)', 'job × level (b.csv)', 'region × level (c.csv)'" in said
        assert "nonnegative = true" in said
    assert not (tmp_path / "ledger.sqlite").exists()
    file.write_text(file.read_text().replace("nonnegative = true", ""), encoding="utf-8")
    assert json.loads(call("run", file, "--json").stdout)["charged"] == ["people"]


def test_noisy_controls_give_way_to_public_totals(tmp_path: Path) -> None:
    file = publicly(tmp_path, ("cap = 7", "cap = 7\nnonnegative = true"))
    cube = open_cube(run(load(file)).bundle, "people").cube
    assert int(cube["count"].min()) >= 0
    assert np.array_equal(cube.project("region")["count"], np.array([110, 100, 90, 100]) * 1_000_000)
