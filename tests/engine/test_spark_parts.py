"""On a cluster the executors protect: only metadata returns, keyed noise is DuckDB's, formal noise is their own."""

import base64
from pathlib import Path

import numpy as np
import pyarrow.dataset as ds
import pytest

from sfumato.checking import check, checked
from sfumato.chunks import Chunk
from sfumato.keys import read_key
from sfumato.privacy.answers import Answers
from sfumato.privacy.ledger import Ledger
from sfumato.release import load
from sfumato.running import run
from sfumato_lab.economy.jobs.generate import generate
from tests.engine.cluster import Driven, drive, releases
from tests.running.answered import answered

pytestmark = pytest.mark.spark
METADATA = set(Chunk.__dataclass_fields__)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An economy with one release for each engine; DuckDB's is published."""
    folder = generate(tmp_path_factory.mktemp("cluster") / "economy", jobs=300_000).folder
    run(load(releases(folder)["duckdb"]))
    return folder


@pytest.fixture(scope="module")
def driven(folder: Path) -> Driven:
    """The release run on the cluster."""
    return drive(folder / "spark.toml", "published")


def test_parts_are_worked_on_by_several_processes_none_of_them_the_driver(driven: Driven) -> None:
    workers = set(driven.printed["told"])
    assert len(workers) == 2
    assert str(driven.printed["driver"]) not in workers


def test_no_two_parts_get_the_same_noise(driven: Driven) -> None:
    assert len(set(driven.printed["drawn"])) == len(driven.printed["drawn"]) == 5


def test_only_names_sizes_digests_and_public_facts_return_to_the_driver(driven: Driven) -> None:
    public = {"_bucket", "_blocks"}  # how many workplace cells of a range have an establishment
    assert {frozenset(columns) for columns in driven.printed["returned"]} <= {frozenset(METADATA), frozenset(public)}
    assert sum(set(columns) == METADATA for columns in driven.printed["returned"]) == 4  # drawn and published, twice


@pytest.mark.usefixtures("driven")
def test_keyed_tables_are_the_same_as_on_duckdb_to_the_bit(folder: Path) -> None:
    here, there = (answered(load(folder / f"{engine}.toml"), "keyed") for engine in ("duckdb", "spark"))
    assert len(here) > 1_000
    assert there.equals(here)
    published = [ds.dataset(folder / engine / "tables" / "keyed").to_table() for engine in ("duckdb", "spark")]
    assert published[0].equals(published[1])


@pytest.mark.usefixtures("driven")
def test_formal_noise_from_executors_has_the_stated_scale(folder: Path) -> None:
    release = load(folder / "spark.toml")
    with checked(load(folder / "duckdb.toml")) as ready:
        planned = {table.name: table for table in ready.plan.tables}
        true = ready.count({"formal": planned["formal"]})["formal"]
    expected = planned["formal"].method.expected_error(true)
    drawn = answered(release, "formal")
    assert np.array_equal(drawn.positions, true.positions)
    relative = np.abs(drawn["value"] - true["count"]) / expected
    tolerance = 5.3 * relative.std() / np.sqrt(len(relative))  # beyond it by chance less than once in a million times
    assert tolerance < 0.2
    assert abs(relative.mean() - 1) < tolerance
    assert abs(relative.mean() - 1.3) > tolerance, "a scale that is off would pass"


def test_the_key_is_in_no_log_no_event_and_no_plan_of_spark(driven: Driven, folder: Path) -> None:
    secret = read_key(folder / "sfumato.key")
    plans = "\n".join(driven.printed["plans"]).encode()
    assert b"CoarseGrainedExecutorBackend" in driven.logs, "the logs of executors were not read"
    assert b"SparkListenerTaskEnd" in driven.logs, "the event log was not read"
    assert b"MapInArrow" in plans, "the computing of factors was not read"
    for text in (driven.logs, plans):
        for form in (secret.key, secret.key.hex().encode(), base64.b64encode(secret.key), repr(secret.key).encode()):
            assert form not in text


@pytest.fixture(scope="module")
def interrupted(folder: Path) -> Driven:
    """Parts on a cluster that loses an executor, and then parts that fail."""
    return drive(folder / "spark.toml", "interrupted")


@pytest.mark.slow
def test_an_executor_that_dies_after_writing_leaves_every_part_there_once(interrupted: Driven, folder: Path) -> None:
    found = interrupted.printed
    assert found["left"] == [], "no executor died"
    assert len(set(found["told"])) == len(found["told"]) == 5
    assert set(found["told"]) < set(found["written"]), "the lost attempt left no file"
    release = load(folder / "duckdb.toml")
    entry = next(e for e in Ledger.open(release.ledger).history() if e.kind == "answer" and e.table == "keyed")
    parts = Answers(release.store / "answers").in_chunks(entry.question, entry.answer)
    assert parts is not None
    assert found["kept"] == [[part.name, part.sha256] for part in parts.parts]
    assert sorted(path.name for path in (folder / "draft").iterdir()) == [part.name for part in parts.parts]


@pytest.mark.slow
def test_an_error_on_an_executor_is_told_and_logged_by_its_kind_without_its_text(interrupted: Driven) -> None:
    assert "ArithmeticError" in interrupted.printed["failed"]
    assert b"ArithmeticError" in interrupted.logs
    assert b"quoted-quoted" not in interrupted.logs


@pytest.mark.slow
def test_a_cluster_lost_after_the_charge_leaves_a_release_that_the_next_run_finishes(folder: Path) -> None:
    again = folder / "lost.toml"
    text = (folder / "spark.toml").read_text(encoding="utf-8")
    again.write_text(text.replace("spark.sqlite", "lost.sqlite").replace('bundle = "spark"', 'bundle = "lost"'))
    found = drive(again, "lost").printed
    assert found["ended"] != "published"
    assert found["first"].count("charge") == 2
    assert found["first"].count("answer") == 0
    assert found["charged_again"] == []
    assert (folder / "lost" / "manifest.json").exists()
    assert sum(entry.kind == "charge" for entry in Ledger.open(folder / "lost.sqlite").history()) == 2


def with_another_sfumato(folder: Path, name: str) -> Path:
    """The release for a cluster whose executors have another version of this program."""
    (folder / "other" / "sfumato").mkdir(parents=True, exist_ok=True)
    (folder / "other" / "sfumato" / "__init__.py").write_text('__version__ = "0.0.0"\n')
    text = (folder / "spark.toml").read_text(encoding="utf-8")
    text = text.replace("spark.sqlite", f"{name}.sqlite").replace('bundle = "spark"', f'bundle = "{name}"')
    setting = f'[data.spark]\nspark.executorEnv.PYTHONPATH = "{folder / "other"}"'
    release = folder / f"{name}.toml"
    release.write_text(text.replace("[data.spark]", setting), encoding="utf-8")
    return release


@pytest.mark.slow
def test_executors_without_the_folder_or_with_another_sfumato_are_refused_before_anything_is_charged(
    folder: Path,
) -> None:
    found = drive(with_another_sfumato(folder, "refused"), "refused").printed
    assert "folder /proc/self/cwd/private" in found["folder"]
    assert "do not share" in found["folder"]
    assert "found:    sfumato 0.0.0" in found["program"]
    assert not (folder / "refused.sqlite").exists()
    assert not list(folder.glob(".shared-*"))


@pytest.mark.slow
def test_executors_that_only_compute_factors_are_asked_for_their_sfumato_before_anything_is_charged(
    folder: Path,
) -> None:
    release = with_another_sfumato(folder, "computing")
    head, _, keyed = release.read_text(encoding="utf-8").split("[[table]]")
    in_one_piece = keyed.replace("parts = 5", 'structural_zeros = "listed"')
    release.write_text(f"{head}[[table]]{in_one_piece}", encoding="utf-8")
    assert not any(planned.in_chunks for planned in check(load(release), data=False).plan.tables)
    assert "found:    sfumato 0.0.0" in drive(release, "refused").printed["program"]
    assert not (folder / "computing.sqlite").exists()
