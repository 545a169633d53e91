"""Tables of earlier releases: they stay as they were published, and new ones are told by them and agree with them."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from sfumato.errors import ReleaseError
from sfumato.privacy.ledger import Ledger
from sfumato.release import load
from sfumato.report.assess import assess
from sfumato.running import Published, run
from sfumato_lab.economy.jobs.generate import generate
from tests.running.same_draws import same_draws

FIRST = [("jobs_by_place", ["place"]), ("jobs_by_industry", ["industry"])]
FINE = [("fine", ["place", "industry"])]


@pytest.fixture
def economy(tmp_path: Path) -> Path:
    return generate(tmp_path / "economy", jobs=20_000).release


def release(economy: Path, name: str, tables: list[tuple[str, list[str]]], **about: Any) -> Path:
    """A release of the economy with tables of its own."""
    text = economy.read_text(encoding="utf-8")
    head = text[: text.index("[[table]]")].replace("epsilon = 4.0", "epsilon = 40")
    rest = "\n".join(f"{key} = {json.dumps(told)}" for key, told in {"bundle": name, **about}.items())
    head = head.replace('title = "Jobs', f'{rest}\ntitle = "{name}')
    for table, by in tables:
        head += f'\n[[table]]\nname = "{table}"\ncount = "jobs"\nby = {json.dumps(by)}\nprotect = {{ epsilon = 2 }}\n'
    file = economy.parent / f"{name}.toml"
    file.write_text(head, encoding="utf-8")
    return file


def sums(published: Published, table: str, by: str) -> dict[str, int]:
    rows = pq.read_table(published.bundle / f"tables/{table}.parquet").group_by(by).aggregate([("value", "sum")])
    return {row[by]: row["value_sum"] for row in rows.to_pylist()}


def test_new_tables_agree_with_what_was_published_which_stays_as_it_is(economy: Path) -> None:
    first = run(load(release(economy, "spring", FIRST, reconcile=True)))
    before = (first.bundle / "tables/jobs_by_place.parquet").read_bytes()
    second = run(load(release(economy, "autumn", FINE, reconcile=True, earlier=["spring.toml"])))
    for by in ("place", "industry"):
        told, coarse = sums(second, "fine", by), sums(first, f"jobs_by_{by}", by)
        assert any(coarse.values())
        # The first has more codes, and is met exactly; the second crosses it, and is met but for roundings.
        near = 0 if by == "place" else len(sums(second, "fine", "place")) / 2
        assert all(abs(told.get(code, 0) - value) <= near for code, value in coarse.items())
    assert sum(sums(second, "fine", "industry").values()) == sum(sums(first, "jobs_by_industry", "industry").values())
    assert "these stay as they are: `jobs_by_place of spring" in (second.bundle / "statement.md").read_text("utf-8")
    assert {"measured", "error"} <= set(pq.read_schema(second.bundle / "tables/fine.parquet").names)
    third = run(load(release(economy, "winter", [("sizes", ["place_size"])], reconcile=True, earlier=["autumn.toml"])))
    assert sum(sums(third, "sizes", "place_size").values()) == sum(sums(second, "fine", "place").values())
    assert not run(load(economy.parent / "spring.toml")).charged
    assert (first.bundle / "tables/jobs_by_place.parquet").read_bytes() == before
    charged = [entry for entry in Ledger.open(load(economy).ledger).history() if entry.kind == "charge"]
    assert sorted(entry.table for entry in charged) == ["fine", "jobs_by_industry", "jobs_by_place", "sizes"]
    assert assess(load(economy.parent / "autumn.toml")) is not None


def test_earlier_tables_make_errors_smaller_without_any_charge(economy: Path) -> None:
    coarse = [("jobs_by_industry", ["industry"])]
    with same_draws():
        run(load(release(economy, "fine", FINE)))
        alone = run(load(release(economy, "alone", coarse)))
        told = run(load(release(economy, "told", coarse, earlier=["fine.toml"])))
    assert not told.charged, "the same question, which was answered"
    rows = [pq.read_table(one.bundle / "tables/jobs_by_industry.parquet").to_pylist() for one in (alone, told)]
    assert [row["value"] for row in rows[0]] == [row["value"] for row in rows[1]]
    assert sum(row["error"] for row in rows[1]) < sum(row["error"] for row in rows[0]) / 2
    structure = json.loads((told.bundle / "structure.json").read_text(encoding="utf-8"))
    assert structure["tables"][0]["largest_from"] == ["fine of fine by place and industry"]


def test_what_cannot_be_agreed_with_is_refused_before_anything_is_charged(economy: Path) -> None:
    release(economy, "spring", FIRST)
    unpublished = load(release(economy, "autumn", FINE, reconcile=True, earlier=["spring.toml"]))
    with pytest.raises(ReleaseError, match="publish it first"):
        run(unpublished)
    assert not unpublished.ledger.exists()
    run(load(economy.parent / "spring.toml"))
    with pytest.raises(ReleaseError, match="whose sums differ"):
        run(unpublished)
    other = release(economy, "other", FINE, earlier=["spring.toml"], ledger="another.sqlite")
    with pytest.raises(ReleaseError, match="another ledger"):
        run(load(other))
    itself = release(economy, "itself", FINE, earlier=["itself.toml"])
    with pytest.raises(ReleaseError, match="name one another"):
        run(load(itself))
    text = release(economy, "unlike", FINE, earlier=["spring.toml"])
    text.write_text(text.read_text("utf-8").replace('label = "Industry"', 'label = "Trade"'), encoding="utf-8")
    run(load(text))  # words change nothing
    text.write_text(text.read_text("utf-8").replace('codelist = "codelists/industry.csv"', 'codes = ["11"]'), "utf-8")
    with pytest.raises(ReleaseError, match="described otherwise"):
        run(load(text))
