"""Counts of people in parts are published like those in one piece: the same rows, one charge, noise of one size."""

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from sfumato.bundle.manifest import MANIFEST
from sfumato.bundle.read import select_rows
from sfumato.bundle.rows import MOST_ROWS
from sfumato.checking import check, checked
from sfumato.engine.chunks import MOST_CELLS
from sfumato.errors import DataError, ReleaseError
from sfumato.plan import Plan
from sfumato.release import load
from sfumato.report.assess import assess
from sfumato.running import run
from sfumato.serve.core.catalogue import BundleSource, open_catalogue
from tests.running.answered import answered
from tests.running.same_draws import same_draws
from tests.running.test_kill import check_invariants, entries
from tests.running.test_parts import files_of, kill_after, published

TABLE = "people"
CODES = {
    "year": ["2001", "2002"],
    "place": [f"p{code:02d}" for code in range(60)],
    "work": [f"w{code:02d}" for code in range(50)],
}
COUNT = 'count = "records"\nby = ["place", "year", "work"]\nprotect = { method = "laplace", epsilon = 0.5 }\n'
EARNINGS = "[data.measures]\nearnings = { minimum = 0, maximum = 100 }\n"
MEAN = 'mean = "earnings"\nby = ["place", "year"]\nprotect = { method = "mose", epsilon = 2, chi = 50 }\n'


def release_of(folder: Path, asked: str = COUNT, *, name: str = "release", more: str = "", head: str = "") -> Path:
    """A release of one table of 3,000 people over two years, with a ledger and a bundle of its own."""
    if not (folder / "people.parquet").exists():
        chance, people = np.random.default_rng(2), 3_000
        columns = {
            "person": np.repeat(np.arange(people), 2),
            "year": np.tile(CODES["year"], people),
            "place": np.repeat(chance.choice(CODES["place"], people), 2),
            "work": chance.choice(CODES["work"], 2 * people),
            "earnings": chance.integers(0, 101, 2 * people),
        }
        pq.write_table(pa.table(columns), folder / "people.parquet")
    attributes = "\n".join(f"{attribute} = {{ codes = {json.dumps(codes)} }}" for attribute, codes in CODES.items())
    text = f"""
[release]
title = "People at work"
period = "2001-2002"
budget = {{ epsilon = 2, definition = "individuals", conditional = true }}
ledger = "{name}.sqlite"
bundle = "{name}.bundle"
{head}
[data]
records = {{ path = "people.parquet", unit = "person", period = "year" }}

{EARNINGS if "earnings" in asked else ""}
[data.attributes]
{attributes}

[[table]]
name = "{TABLE}"
{asked}{more}
"""
    path = folder / f"{name}.toml"
    path.write_text(text, encoding="utf-8")
    return path


def plan_of(file: Path) -> Plan:
    return check(load(file), data=False).plan


def test_readers_get_the_same_table_in_parts_and_in_one_piece_but_for_its_noise(tmp_path: Path) -> None:
    whole = run(load(release_of(tmp_path, name="whole"))).bundle
    parts = run(load(release_of(tmp_path, name="parts", more="parts = 7"))).bundle
    assert files_of(whole) == {f"tables/{TABLE}.parquet", f"tables/{TABLE}.csv"}
    assert files_of(parts) == {f"tables/{TABLE}/part-{number:05d}.parquet" for number in range(7)}
    one, other = published(whole), published(parts)
    assert other.schema.equals(one.schema)
    assert other.num_rows == 60 * 2 * 50
    assert other.select(list(CODES)).equals(one.select(list(CODES)))
    for table in (one, other):  # the same error in every cell, but for values that it would contradict
        error, value = table["error"].to_numpy(), table["value"].to_numpy()
        assert error == pytest.approx(np.maximum(error.min(), -value))
    assert pc.min(other["error"]) == pc.min(one["error"])
    assert not other["value"].equals(one["value"])
    (about,), (apart,) = (json.loads((bundle / "structure.json").read_text())["tables"] for bundle in (whole, parts))
    assert apart.pop("files") == {"parquet": f"tables/{TABLE}", "parts": 7, "rows": 60 * 2 * 50}
    del about["files"]
    assert apart == about
    assert (parts / "statement.md").read_text() == (whole / "statement.md").read_text()


def test_rows_follow_the_order_of_the_dimensions_through_all_parts(tmp_path: Path) -> None:
    bundle = run(load(release_of(tmp_path, more="parts = 4"))).bundle
    read = [pq.read_table(path).to_pandas() for path in sorted(bundle.glob("tables/*/*.parquet"))]
    listed = [tuple(row) for part in read for row in part[["place", "year", "work"]].to_numpy()]
    assert listed == [(p, y, w) for p in CODES["place"] for y in CODES["year"] for w in CODES["work"]]


@pytest.mark.parametrize("more", ["", "parts = 4"], ids=["one piece", "parts"])
@pytest.mark.parametrize("where", ["", 'where = { year = "2002" }\n'], ids=["two years", "one year"])
def test_noise_has_no_bias_and_the_stated_size_whether_in_parts_or_not(tmp_path: Path, more: str, where: str) -> None:
    release = load(release_of(tmp_path, more=where + more))
    with same_draws():
        run(release)
    with checked(release) as ready:
        (planned,) = ready.plan.tables
        true = ready.count({TABLE: planned})[TABLE]
    assert planned.method.epsilon / planned.method.periods == Fraction(1, 2 if where else 4)
    answer = answered(release, TABLE)
    assert answer.dimensions == true.dimensions
    assert np.array_equal(answer.positions, true.positions), "each cell once, those without people included"
    assert true["count"].sum() == (3_000 if where else 6_000)
    noise = answer["value"] - true["count"]
    ratio = np.abs(noise) / planned.method.expected_error(true)
    for some, sizes in zip(np.array_split(noise, 4), np.array_split(ratio, 4), strict=True):
        assert abs(some.mean()) < 5 * some.std() / np.sqrt(len(some))
        assert abs(sizes.mean() - 1) < 5 * sizes.std() / np.sqrt(len(sizes))
    off = ratio / 1.2
    assert abs(off.mean() - 1) > 5 * off.std() / np.sqrt(len(off)), "a scale that is off by a fifth would be found out"


def test_a_table_in_parts_costs_what_it_costs_in_one_piece(tmp_path: Path) -> None:
    done = run(load(release_of(tmp_path, more="parts = 5")))
    assert done.charged == (TABLE,)
    assert done.balance is not None
    assert done.balance.spent_epsilon == Fraction(1, 2)


@pytest.mark.parametrize(("first", "later"), [("", "parts = 5"), ("parts = 5", ""), ("parts = 5", "parts = 3")])
def test_an_answer_stays_as_it_was_given_however_the_table_is_cut_later(tmp_path: Path, first: str, later: str) -> None:
    given = run(load(release_of(tmp_path, more=first)))
    assert given.charged == (TABLE,)
    rows = published(given.bundle)
    again = run(load(release_of(tmp_path, more=later)))
    assert again.charged == ()
    assert published(again.bundle).equals(rows)


def test_a_repeated_run_gives_the_stored_parts_to_the_byte(tmp_path: Path) -> None:
    release = load(release_of(tmp_path, more="parts = 5"))
    manifest = (run(release).bundle / MANIFEST).read_bytes()
    assert (run(release).bundle / MANIFEST).read_bytes() == manifest


@pytest.mark.slow
def test_a_run_that_is_killed_between_parts_is_finished_by_the_next_one_without_a_second_charge(
    tmp_path: Path,
) -> None:
    file = release_of(tmp_path, more="parts = 300")
    release, seen = load(file), ()
    for parts in (1, 100):
        assert kill_after(parts, file, release)
        seen = check_invariants(release, seen)
        assert [entry.kind for entry in seen] == ["budget", "data", "charge"]
        assert not release.bundle.exists()
    assert run(release).charged == ()
    assert [entry.kind for entry in entries(release)] == ["budget", "data", "charge", "answer"]
    assert len(files_of(release.bundle)) == 300
    assert list(release.store.glob("answers/.*")) == [], "what the killed runs drew is gone"


def test_data_that_are_not_as_described_are_refused_before_anything_is_charged(tmp_path: Path) -> None:
    file = release_of(tmp_path, more="parts = 5")
    people = pq.read_table(tmp_path / "people.parquet")
    pq.write_table(pa.concat_tables([people, people.slice(7, 1)]), tmp_path / "people.parquet")
    with pytest.raises(DataError, match="repeat the unit and period"):
        run(load(file))
    assert not load(file).ledger.exists()


def test_large_counts_of_people_are_in_parts_by_themselves_and_small_ones_are_not(tmp_path: Path) -> None:
    assert [planned.in_chunks for planned in plan_of(release_of(tmp_path)).tables] == [False]
    file = release_of(tmp_path)
    text = file.read_text(encoding="utf-8")
    more = "\n".join(f"a{n} = {{ codes = {json.dumps([str(code) for code in range(100)])} }}" for n in range(2))
    text = text.replace("[data.attributes]", f"[data.attributes]\n{more}")
    file.write_text(text.replace('"work"]', '"work", "a0", "a1"]'), encoding="utf-8")
    (planned,) = plan_of(file).tables
    assert planned.cells == 60_000_000 > MOST_CELLS > MOST_ROWS
    assert planned.in_chunks


@pytest.mark.parametrize(
    ("asked", "head", "why"),
    [
        (MEAN, "", "the statistic mean of people"),
        (COUNT, "reconcile = true", "in all tables that are to agree"),
    ],
)
def test_tables_of_people_that_stay_whole_are_refused_in_parts_before_they_are_charged(
    tmp_path: Path, asked: str, head: str, why: str
) -> None:
    with pytest.raises(ReleaseError, match=why):
        run(load(release_of(tmp_path, asked, head=head, more="parts = 3")))
    assert not load(tmp_path / "release.toml").ledger.exists()
    assert not plan_of(release_of(tmp_path, asked, head=head)).tables[0].in_chunks


def test_a_count_with_an_option_that_its_method_does_not_have_is_refused_by_name(tmp_path: Path) -> None:
    asked = COUNT.replace("epsilon = 0.5 }", 'epsilon = 0.5, classes = ["place"] }')
    with pytest.raises(ReleaseError, match="option 'classes'"):
        plan_of(release_of(tmp_path, asked))


def test_query_and_server_read_the_parts_as_one_table(tmp_path: Path) -> None:
    bundle = run(load(release_of(tmp_path, more="parts = 6"))).bundle
    rows = published(bundle).to_pandas()
    chosen = select_rows(bundle, TABLE, where={"place": ["p07"], "year": ["2001", "2002"]}).rows.to_pandas()
    assert chosen["value"].tolist() == rows[rows["place"] == "p07"].sort_values(["year", "work"])["value"].tolist()
    served = open_catalogue([BundleSource(folder=bundle)])[TABLE]
    assert [len(dimension) for dimension in served.dimensions] == [60, 2, 50]
    assert served.source.columns[0].values.ravel().tolist() == (
        rows.sort_values(["place", "year", "work"])["value"].tolist()
    )


def test_people_in_parts_can_be_assessed(tmp_path: Path) -> None:
    release = load(release_of(tmp_path, more="parts = 3"))
    run(release)
    (utility,) = assess(release).utilities
    assert utility is not None
