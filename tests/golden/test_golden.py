"""What the code does is what it did when golden files were frozen; `running` says what is left out of them."""

import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.golden.cases import CASES, EARLIER, FROZEN
from tests.golden.economies import ECONOMIES, RELEASED
from tests.golden.freeze import economy_runs, economy_text, frozen_texts, made_economy, query_text
from tests.golden.running import as_frozen, digest, entries, masked_statement, run, sfumato, values_digest


@pytest.mark.parametrize("name", ECONOMIES)
def test_an_economy_is_what_it_was(name: str, tmp_path: Path) -> None:
    found = json.loads(economy_text(made_economy(name, tmp_path / name)))
    frozen = json.loads((FROZEN / "economies" / name / "files.json").read_bytes())
    for file in (*found.values(), *frozen.values()):
        if file.get("writer", writer(tmp_path)) != writer(tmp_path):  # another one writes other bytes
            file.pop("bytes")
    assert {name: unwritten(told) for name, told in found.items()} == {
        name: unwritten(told) for name, told in frozen.items()
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", RELEASED)
def test_the_releases_of_an_economy_leave_behind_what_they_left(name: str, tmp_path: Path) -> None:
    found = economy_runs(made_economy(name, tmp_path / name))
    assert_same(found, frozen_texts(FROZEN / "economy_releases" / name))


@pytest.mark.parametrize("name", CASES)
def test_a_release_leaves_behind_what_it_left(name: str, tmp_path: Path) -> None:
    assert_same(run(CASES[name].written(tmp_path / name)), frozen_texts(FROZEN / "releases" / name))


def test_hundreds_of_questions_are_frozen() -> None:
    names = {entry["question"] for path in FROZEN.glob("releases/*/ledger.json") for entry in charges(path)}
    assert len(names) > 200


@pytest.fixture
def earlier(tmp_path: Path) -> Path:
    """A copy of the folder that is kept whole, as private as it was."""
    folder = tmp_path / "earlier"
    shutil.copytree(FROZEN / "earlier" / "folder", folder)
    for path in (folder / "sfumato.key", folder / "ledger.sqlite", *(folder / "ledger.store").rglob("*")):
        path.chmod(0o700 if path.is_dir() else 0o600)
    (folder / "ledger.store").chmod(0o700)
    return folder


def test_earlier_releases_are_given_again(earlier: Path, tmp_path: Path) -> None:
    before = {name: contents(earlier / f"{name}_bundle") for name in EARLIER}
    ledger, answers = entries(earlier / "ledger.sqlite"), contents(earlier / "ledger.store" / "answers")
    same = writer(tmp_path) == digest(pq.read_metadata(earlier / "jobs_bundle/tables/formal.parquet").created_by)[:8]
    for name in EARLIER:
        printed = sfumato("run", earlier / f"{name}.toml")
        assert printed["charged"] == []
        assert printed["charged_before"] == []
        after = contents(earlier / f"{name}_bundle")
        if same and software(before[name]) == software(after):
            described = {"structure.json", "manifest.json"}  # which lists the structure
            assert {n: text for n, text in after.items() if n not in described} == {
                n: text for n, text in before[name].items() if n not in described
            }
        assert {n: unversioned(n, content) for n, content in after.items()} == {
            n: unversioned(n, content) for n, content in before[name].items()
        }
    assert entries(earlier / "ledger.sqlite") == ledger
    assert contents(earlier / "ledger.store" / "answers") == answers


def test_an_earlier_ledger_is_checked_and_found_paid(earlier: Path) -> None:
    for name in EARLIER:
        sfumato("check", earlier / f"{name}.toml")
    with sqlite3.connect(earlier / "ledger.sqlite") as connection:
        kinds = dict(connection.execute("SELECT kind, count(*) FROM entries GROUP BY kind").fetchall())
    connection.close()
    assert kinds["charge"] == kinds["answer"] > 20


def test_earlier_bundles_answer_as_they_did(earlier: Path) -> None:
    assert query_text(earlier) == (FROZEN / "earlier" / "queries.json").read_bytes().decode()


def assert_same(found: dict[str, str], frozen: dict[str, str]) -> None:
    """The same texts under the same names; the first that differs is shown."""
    assert list(found) == [name for name in found if name in frozen], "more than there was"
    assert found.keys() == frozen.keys()
    for name, text in found.items():
        assert text.splitlines() == frozen[name].splitlines(), name
        assert text == frozen[name], name


def charges(ledger: Path) -> list[dict[str, Any]]:
    """The charges among frozen entries."""
    return [entry for entry in json.loads(ledger.read_bytes()) if entry["kind"] == "charge"]


def contents(folder: Path) -> dict[str, bytes]:
    """The content of every file of a folder, by name."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def software(bundle: dict[str, bytes]) -> str:
    """The version that wrote a bundle."""
    return str(json.loads(bundle["manifest.json"])["software"])


def unversioned(name: str, content: bytes) -> Any:
    """A file of a bundle without versions, of the software and of the Parquet writer."""
    if name == "manifest.json":
        manifest = json.loads(content)
        return {**manifest, "software": "", "published": "", "files": sorted(manifest["files"])}
    if name == "structure.json":
        return as_frozen(content)
    if name == "statement.md":
        return masked_statement(content.decode())
    return values_digest(pq.read_table(pa.BufferReader(content))) if name.endswith(".parquet") else content


def unwritten(told: dict[str, Any]) -> dict[str, Any]:
    """What is told of a file but for which writer wrote it."""
    return {name: value for name, value in told.items() if name != "writer"}


def writer(folder: Path) -> str:
    """A digest of the name of the Parquet writer in use."""
    pq.write_table(pa.table({"any": [1]}), folder / "any.parquet")
    return digest(pq.read_metadata(folder / "any.parquet").created_by)[:8]
