"""Composite estimates: nearer the truth, honest about how near, made of published numbers alone, beside the values."""

import json
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from sfumato.agree.composite import Composite, with_composite
from sfumato.agree.published import agreed_answers
from sfumato.cells import Cells, Dimension
from sfumato.checking import check
from sfumato.engine.connect import connect
from sfumato.errors import ReleaseError, SfumatoError
from sfumato.noise.randomness import Seeded
from sfumato.release import load
from sfumato.running import run
from sfumato.serve.core.catalogue import BundleSource, open_catalogue
from sfumato.statistics.jobs.tabulate import tabulate
from sfumato_lab.economy.jobs.generate import generate

TABLES = """
[[table]]
name = "jobs"
count = "jobs"
by = ["place", "industry"]
protect = { method = "smooth-pareto", epsilon = 1 }

[[table]]
name = "workers"
count = "jobs"
by = ["place", "industry", "education"]
composite = ["industry"]
protect = { method = "smooth-pareto", epsilon = 1 }
"""


@pytest.fixture(scope="module")
def release_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release with composite estimates of an economy that was made for it."""
    made = generate(tmp_path_factory.mktemp("composite") / "economy", jobs=60_000)
    text = made.release.read_text(encoding="utf-8")
    head = text[: text.index("# Each table")].replace("population =", "reconcile = true\npopulation =", 1)
    made.release.write_text(head + TABLES, encoding="utf-8")
    return made.release


@pytest.fixture(scope="module")
def bundle(release_file: Path) -> Path:
    """Its bundle."""
    return run(load(release_file)).bundle


def changed(release_file: Path, *changes: tuple[str, str]) -> Path:
    """The same release beside it, with other words in some places."""
    text = release_file.read_text(encoding="utf-8")
    for old, new in changes:
        assert text.count(old), old
        text = text.replace(old, new)
    other = release_file.with_name("other.toml")
    other.write_text(text, encoding="utf-8")
    return other


def test_composites_are_nearer_the_truth_and_say_how_near(release_file: Path) -> None:
    plan = check(load(release_file), data=False).plan
    with connect(plan.release.frame) as tables:
        true = tabulate(plan.release.frame, tables, {table.name: table.question for table in plan.tables})
    count = true["workers"]["count"]
    squares = dict.fromkeys(("value", "composite", "composite_error"), 0.0)
    for draw in range(4):
        answers = {
            table.name: table.method.protect(true[table.name], Seeded(10 * draw + at)).with_column(
                "establishments", true[table.name]["establishments"]
            )
            for at, table in enumerate(plan.tables)
        }
        found = agreed_answers(plan, answers)["workers"]
        squares["value"] += float(np.square(found["value"] - count).sum())
        squares["composite"] += float(np.square(found["composite"] - count).sum())
        squares["composite_error"] += float(np.square(found["composite_error"] / 100).sum())
    assert squares["composite"] < 0.7 * squares["value"]
    assert 0.75 < squares["composite_error"] / squares["composite"] < 1.5


def read_cells(rows: "pq.Table", dimensions: dict[str, tuple[str, ...]], column: str) -> Cells:
    """The cells of a published table that has an establishment in each."""
    by = tuple(Dimension(name=name, codes=codes, public=name != "education") for name, codes in dimensions.items())
    places = [[d.places[code] for code in rows[d.name].to_pylist()] for d in by]
    positions = np.ravel_multi_index(places, [len(d) for d in by])
    order = np.argsort(positions)
    shown = {"value": rows[column].to_numpy(), "establishments": rows["establishments"].to_numpy()}
    columns = {
        name: np.rint(values * (100 if values.dtype.kind == "f" else 1)).astype(np.int64)[order]
        for name, values in shown.items()
    }
    return Cells(dimensions=by, positions=positions[order], columns=columns)


def test_a_bundle_has_all_that_composites_are_made_of(bundle: Path) -> None:
    structure = json.loads((bundle / "structure.json").read_text("utf-8"))
    about = {table["name"]: table for table in structure["tables"]}
    rows = {}
    for name, table in about.items():
        listed = pq.read_table(bundle / table["files"]["parquet"])
        rows[name] = listed.filter(pc.greater(listed["establishments"], 0))
    workers = rows["workers"]
    codes = {name: tuple(sorted(set(workers[name].to_pylist()))) for name in ("place", "industry", "education")}
    agreed = read_cells(workers, codes, "value")
    measured = {
        "workers": read_cells(workers, codes, "measured"),
        "jobs": read_cells(rows["jobs"], {name: codes[name] for name in ("place", "industry")}, "measured"),
    }
    told = about["workers"]["composite"]
    rule = Composite(**told | {"within": tuple(told["within"])})
    found = with_composite(rule, "workers", agreed, measured)
    published = {name: read_cells(workers, codes, name)["value"] for name in ("composite", "composite_error")}
    assert np.array_equal(found["composite"], published["composite"])
    assert np.array_equal(found["composite_error"], published["composite_error"])
    assert not np.array_equal(found["composite"], found["value"])
    assert found["composite"].min() == 0
    assert about["jobs"].keys() == about["workers"].keys() - {"composite"}


def test_values_stay_as_they_are_and_nothing_is_charged_for_composites(bundle: Path, release_file: Path) -> None:
    before = pq.read_table(bundle / "tables/workers.parquet")
    without = changed(release_file, ('composite = ["industry"]\n', ""), ("population =", 'bundle = "b"\npopulation ='))
    again = run(load(without))
    assert not again.charged
    plain = pq.read_table(again.bundle / "tables/workers.parquet")
    assert before.drop_columns(["composite", "composite_error"]).equals(plain)
    assert "omposite" in (bundle / "statement.md").read_text("utf-8")
    assert "omposite" not in (again.bundle / "statement.md").read_text("utf-8")


def test_composites_are_served_with_their_errors(bundle: Path) -> None:
    (table,) = [one for one in open_catalogue([BundleSource(folder=bundle)]).tables.values() if "workers" in one.id]
    shown = {metric.code: metric for metric in table.metrics}
    assert (shown["composite"].decimals, shown["composite_error"].decimals) == (0, 2)
    assert shown["composite"].kind == shown["composite_error"].kind == "other"  # never in the place of the value


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ([("reconcile = true\n", "")], "a table that is not reconciled"),
        ([('composite = ["industry"]', 'composite = ["education"]')], "'education'"),
        ([('composite = ["industry"]', 'composite = ["place", "industry"]')], r"\['place', 'industry'\]"),
        ([('by = ["place", "industry"]\n', 'by = ["place"]\n')], "found: +none"),
        (
            [('by = ["place", "industry"]\n', 'by = ["place", "industry", "education"]\n')],
            "found: +none",
        ),  # asked twice
        ([("epsilon = 1 }", "epsilon = 0.35 }"), ('"education"]', '"sex"]')], "vector-pareto, by ="),
        ([('"smooth-pareto", epsilon = 1 }', '"smooth-gamma", epsilon = 3 }')], "smooth-gamma, by ="),
        ([('by = ["place", "industry"', 'by = ["ownership", "place_size"'), ('["industry"]', "[]")], "16 workplace"),
        ([("composite = [", "nonnegative = true\ncomposite = [")], "nonnegative = true"),
        ([("composite = [", "establishments = false\ncomposite = [")], "a table that is not reconciled"),
        ([("[[table]]\n", "[[table]]\nestablishments = false\n")], "without their number"),
        ([('workplaces = { path = "workplaces.parquet", key = "workplace" }\n', "")], "without their number"),
        ([('count = "jobs"\nby = ["place", "industry", ', 'indicators = "all"\nby = ["place", "industry", ')], "jobs"),
    ],
)
def test_tables_that_cannot_have_composites_are_refused(
    release_file: Path, changes: list[tuple[str, str]], found: str
) -> None:
    with pytest.raises(SfumatoError, match=found):
        check(load(changed(release_file, *changes)), data=False)


def test_an_attribute_with_the_name_of_a_column_is_refused(release_file: Path) -> None:
    renamed = [
        ('"education"', '"composite"'),
        ("education = {", 'composite = { column = "education",'),
    ]
    with pytest.raises(ReleaseError, match="an attribute 'composite'"):
        check(load(changed(release_file, *renamed)), data=False)


def test_cells_that_nothing_predicts_keep_their_values() -> None:
    """One workplace cell of each industry: no other one tells the shares of its workers."""
    industry = Dimension(name="industry", codes=tuple(map(str, range(60))))
    sex = Dimension(name="sex", codes=("F", "M"), public=False)
    values = np.arange(120) % 17
    establishments = np.ones(120, dtype=np.int64)
    agreed = Cells(
        dimensions=(industry, sex),
        positions=np.arange(120),
        columns={"value": values, "establishments": establishments},
    )
    totals = Cells(
        dimensions=(industry,), positions=np.arange(60), columns={"value": values.reshape(-1, 2).sum(axis=1)}
    )
    rule = Composite(within=("industry",), alpha=0.1, variance=2.0, totals={"totals": 1.0})
    found = with_composite(rule, "own", agreed, {"own": agreed, "totals": totals})
    assert np.array_equal(found["composite"], values)
    none = [
        Cells(
            dimensions=cells.dimensions,
            positions=cells.positions[:0],
            columns={n: c[:0] for n, c in cells.columns.items()},
        )
        for cells in (agreed, totals)
    ]
    assert not len(with_composite(rule, "own", none[0], {"own": none[0], "totals": none[1]}))
