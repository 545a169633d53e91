"""A bundle is whole, says what it holds, and can be checked."""

import hashlib
import json
import multiprocessing
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from sfumato.bundle.manifest import read_manifest
from sfumato.cells import Cells
from sfumato.checking import checked, stored_answers
from sfumato.errors import BundleError, DataError, LedgerError
from sfumato.privacy.account import Overdraft
from sfumato.privacy.ledger import Ledger
from sfumato.release import load
from sfumato.running import run
from sfumato.serve.core.bundle import OpenBundle


def test_the_bundle_holds_tables_codelists_structure_statement_and_a_manifest_of_them(release_folder: Path) -> None:
    published = run(load(release_folder / "release.toml"))
    bundle = published.bundle
    manifest = read_manifest(bundle)
    files = {str(p.relative_to(bundle)) for p in bundle.rglob("*") if p.is_file()}
    assert files == set(manifest["files"]) | {"manifest.json"}
    assert {"statement.md", "structure.json", "codelists/place.csv", "tables/jobs_by_place.parquet"} <= files
    for name, entry in manifest["files"].items():
        assert hashlib.sha256((bundle / name).read_bytes()).hexdigest() == entry["sha256"]
    assert manifest["software"].startswith("sfumato ")


def test_parquet_and_csv_hold_the_same_table_described_by_the_structure(release_folder: Path) -> None:
    bundle = run(load(release_folder / "release.toml")).bundle
    structure = json.loads((bundle / "structure.json").read_text())
    for table in structure["tables"]:
        parquet = pq.read_table(bundle / table["files"]["parquet"])
        names = [d["name"] for d in table["dimensions"]]
        types = {name: pa.string() for name in names}
        csv = pyarrow.csv.read_csv(
            bundle / table["files"]["csv"], convert_options=pyarrow.csv.ConvertOptions(column_types=types)
        )
        assert csv.to_pylist() == parquet.to_pylist()
        assert parquet.column_names == [*names, *table["columns"]]
        for dimension in table["dimensions"]:
            codes = pyarrow.csv.read_csv(
                bundle / dimension["codelist"],
                convert_options=pyarrow.csv.ConvertOptions(column_types={"code": pa.string()}),
            )
            assert set(parquet[dimension["name"]].to_pylist()) <= set(codes["code"].to_pylist())


def test_structural_zeros_are_exact_and_cells_with_an_establishment_get_noise(release_folder: Path) -> None:
    bundle = run(load(release_folder / "release.toml")).bundle
    table = pq.read_table(bundle / "tables" / "jobs_by_place_industry.parquet").to_pandas()
    empty = table[table.establishments == 0]
    assert len(empty) > 0
    assert (empty[["value", "error", "low", "high"]] == 0).all().all()
    assert (table[table.establishments > 0].error > 0).all()


def test_structural_zeros_can_be_left_out(release_folder: Path) -> None:
    text = (release_folder / "release.toml").read_text()
    (release_folder / "release.toml").write_text(
        text.replace('count = "jobs"', 'count = "jobs"\nstructural_zeros = "implied"', 1)
    )
    bundle = run(load(release_folder / "release.toml")).bundle
    table = pq.read_table(bundle / "tables" / "jobs_by_place_industry.parquet")
    assert min(table["establishments"].to_pylist()) > 0
    structure = json.loads((bundle / "structure.json").read_text())
    assert "exactly" in structure["tables"][0]["structural_zeros"]


def test_error_figures_depend_on_published_values_and_parameters_only(release_folder: Path) -> None:
    release = load(release_folder / "release.toml")
    with checked(release) as ready:
        planned = ready.plan.tables[0]
        cells = ready.count({"t": planned})["t"]
    values = np.arange(len(cells), dtype=np.int64) - 5
    answers = [
        Cells(dimensions=cells.dimensions, positions=cells.positions, columns={"value": values, "establishments": e})
        for e in (cells["establishments"], cells["establishments"] + 7)
    ]
    first, second = (planned.rows(answer) for answer in answers)
    assert first.drop(["establishments"]).equals(second.drop(["establishments"]))


def test_nothing_is_clamped_unless_asked_and_then_the_statement_says_so(release_folder: Path) -> None:
    path = release_folder / "release.toml"
    # So much noise that not one of a hundred small cells below zero would be a miracle.
    path.write_text(path.read_text().replace("epsilon = 2.0", "epsilon = 0.2"))
    bundle = run(load(path)).bundle
    table = pq.read_table(bundle / "tables" / "jobs_by_place_industry.parquet")
    assert min(table["value"].to_pylist()) < 0
    assert "Nothing was clamped" in (bundle / "statement.md").read_text()
    path.write_text(path.read_text().replace('count = "jobs"', 'count = "jobs"\nnonnegative = true', 1))
    again = run(load(path))
    assert again.charged == ()
    clamped = pq.read_table(bundle / "tables" / "jobs_by_place_industry.parquet")
    assert clamped["value"].to_pylist() == [max(v, 0) for v in table["value"].to_pylist()]
    assert "Negative results were then raised to 0" in (bundle / "statement.md").read_text()


@pytest.mark.parametrize("nonnegative", [False, True])
def test_no_error_figure_contradicts_the_value_beside_it(release_folder: Path, nonnegative: bool) -> None:
    path = release_folder / "release.toml"
    text = path.read_text().replace("epsilon = 2.0", "epsilon = 0.2")
    path.write_text(text.replace('count = "jobs"', 'count = "jobs"\nnonnegative = true') if nonnegative else text)
    tables = run(load(path)).bundle / "tables"
    shown = pd.concat([pq.read_table(file).to_pandas() for file in tables.glob("*.parquet")])
    shown = shown[shown.establishments > 0]
    shown["high"] = shown.high.fillna(np.inf)
    assert (shown.value < 0).any() != nonnegative
    assert (shown.error >= -shown.value).all()
    assert (shown.low < shown.high).all()
    assert shown.value.clip(lower=0).between(shown.low, shown.high).all()


def test_the_same_release_again_gives_the_same_bytes_at_no_charge(release_folder: Path) -> None:
    release = load(release_folder / "release.toml")
    first = run(release)
    before = {p: p.read_bytes() for p in first.bundle.rglob("*") if p.is_file()}
    second = run(release)
    assert first.charged == tuple(t.name for t in release.tables)
    assert second.charged == ()
    assert second.balance == first.balance
    assert {p: p.read_bytes() for p in second.bundle.rglob("*") if p.is_file()} == before


def test_a_lost_or_spoilt_bundle_is_published_again_from_the_stored_answers(release_folder: Path) -> None:
    release = load(release_folder / "release.toml")
    bundle = run(release).bundle
    csv = bundle / "tables" / "jobs_by_place.csv"
    original = csv.read_bytes()
    csv.write_bytes(original + b"tampered")
    with pytest.raises(BundleError, match=r"tables/jobs_by_place\.csv was changed"):
        read_manifest(bundle)
    assert run(release).charged == ()
    assert csv.read_bytes() == original
    (bundle / "notes.txt").write_text("mine")
    with pytest.raises(BundleError, match=r"files missing or added: notes\.txt"):
        read_manifest(bundle)
    with pytest.raises(BundleError, match=r"other files: notes\.txt"):
        run(release)
    assert (bundle / "notes.txt").read_text() == "mine"


def test_a_renamed_table_keeps_its_answer_and_a_new_one_is_charged_alone(release_folder: Path) -> None:
    path = release_folder / "release.toml"
    text = path.read_text().replace("epsilon = 4.0", "epsilon = 5.0")
    path.write_text(text)
    first = run(load(path))
    old = pq.read_table(first.bundle / "tables" / "jobs_by_place.parquet")
    text = text.replace('"jobs_by_place"', '"places"')
    text += '\n[[table]]\nname = "owners"\ncount = "jobs"\nby = ["ownership"]\nprotect = { epsilon = 1.0 }\n'
    path.write_text(text)
    second = run(load(path))
    assert second.charged == ("owners",)
    assert second.balance.spent_epsilon == 5
    assert pq.read_table(second.bundle / "tables" / "places.parquet").equals(old)
    assert not (second.bundle / "tables" / "jobs_by_place.parquet").exists()


def test_the_manifest_says_when_a_bundle_was_published_and_the_same_content_keeps_its_day(
    release_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = release_folder / "release.toml"
    for day, expected in (("2026-01-31", "2026-01-31"), ("2026-02-01", "2026-01-31")):
        monkeypatch.setattr("sfumato.bundle.write.today", lambda day=day: day)
        bundle = run(load(path)).bundle
        assert read_manifest(bundle)["published"] == expected
    path.write_text(path.read_text().replace('"jobs_by_place"', '"places"'))
    assert read_manifest(run(load(path)).bundle)["published"] == "2026-02-01"
    assert OpenBundle.open(bundle).updated == datetime(2026, 2, 1, tzinfo=UTC)


def test_changed_data_are_charged_anew_and_an_overdraft_publishes_nothing(release_folder: Path) -> None:
    release = load(release_folder / "release.toml")
    bundle = run(release).bundle
    before = (bundle / "manifest.json").read_bytes()
    jobs = pq.read_table(release_folder / "jobs.parquet")
    pq.write_table(jobs.slice(1), release_folder / "jobs.parquet")
    with pytest.raises(Overdraft) as refused:
        run(release)
    assert (refused.value.remaining, refused.value.requested) == (0, 4)
    assert (bundle / "manifest.json").read_bytes() == before
    assert Ledger.open(release.ledger).balance(release.account).spent_epsilon == 4


def test_bad_data_are_refused_before_any_charge(release_folder: Path) -> None:
    jobs = pq.read_table(release_folder / "jobs.parquet")
    pq.write_table(pa.concat_tables([jobs, jobs.slice(0, 1)]), release_folder / "jobs.parquet")
    release = load(release_folder / "release.toml")
    with pytest.raises(DataError, match="1 rows that repeat the worker"):
        run(release)
    assert not release.ledger.exists()
    assert not release.bundle.exists()


def test_the_answers_cannot_be_lost_or_exchanged_silently(release_folder: Path) -> None:
    release = load(release_folder / "release.toml")
    run(release)
    answers = sorted((release_folder / "ledger.store" / "answers").iterdir())
    content = answers[0].read_bytes()
    answers[0].write_bytes(answers[1].read_bytes())
    with pytest.raises(LedgerError, match="restore the file from its backup"):
        run(release)
    answers[0].unlink()
    with pytest.raises(LedgerError, match="a new draw would spend the budget again"):
        run(release)
    answers[0].write_bytes(content)
    release.ledger.unlink()
    with pytest.raises(LedgerError, match="the budget would start anew"):
        run(release)


def test_other_peoples_folders_are_never_overwritten(release_folder: Path) -> None:
    release = load(release_folder / "release.toml")
    release.bundle.mkdir()
    (release.bundle / "thesis.doc").write_text("ten years of work")
    with pytest.raises(BundleError, match=r"other files: thesis\.doc"):
        run(release)
    assert not release.ledger.exists()
    assert (release.bundle / "thesis.doc").read_text() == "ten years of work"


def test_true_counts_and_noise_scales_stay_out_of_the_bundle_and_the_store(release_folder: Path) -> None:
    release = load(release_folder / "release.toml")
    with checked(release) as ready:
        counted = ready.count({t.table.name: t for t in ready.plan.tables})
        content = ready.identity.content
        questions = {t.name: ready.identity.charge(t).question for t in ready.plan.tables}
    bundle = run(release).bundle
    of_columns = [digest for table in content.tables.values() for digest in (table.keys, *table.columns.values())]
    digests = [content.digest, *of_columns, *questions.values()]
    for path in (p for p in bundle.rglob("*") if p.is_file() and p.suffix != ".parquet"):
        text = path.read_text()
        # A digest of the data would let a reader who knows all records but one test the last.
        assert not any(secret in text for secret in digests)
    for planned in ready.plan.tables:
        question = questions[planned.name]
        digest = Ledger.open(release.ledger).answer(question)
        assert digest is not None
        answer = stored_answers(release).read(question, digest)
        assert answer.columns.keys() == {"value", "establishments"}
        published = pq.read_table(bundle / "tables" / f"{planned.table.name}.parquet")
        assert set(published.column_names) == {d.name for d in planned.question.by} | {
            *("value", "error", "low", "high", "establishments")
        }
        assert not np.array_equal(answer["value"], counted[planned.table.name]["count"])


def _publish(path: str) -> tuple[str, ...]:
    return run(load(path)).charged


def test_two_processes_publishing_the_same_release_charge_once_and_agree(release_folder: Path) -> None:
    path = str(release_folder / "release.toml")
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        charged = pool.map(_publish, [path] * 3)
    assert sum(map(len, charged)) == 3
    release = load(path)
    assert Ledger.open(release.ledger).balance(release.account).spent_epsilon == Fraction(4)
    read_manifest(release.bundle)
