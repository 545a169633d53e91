"""`sfumato doctor` finds what would stop a run, says what to mend, and changes nothing."""

import json
import os
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import sfumato
from sfumato.cli.doctor import installation, of_release
from sfumato.errors import BundleError, DataError, KeyFileError, LedgerError, ReleaseError
from sfumato.keys import new_key
from tests.cli.call import call


def states(folder: Path) -> dict[str, str]:
    return {one.name: one.state for one in of_release(folder / "release.toml", None)}


def test_a_machine_that_runs_these_tests_is_sound() -> None:
    assert "broken" not in {one.state for one in installation()}
    assert {"sfumato", "Python", "memory", "temporary folder"} <= {one.name for one in installation()}


@pytest.mark.slow
def test_a_release_that_runs_is_sound_and_nothing_is_written(release_folder: Path) -> None:
    before = sorted(release_folder.rglob("*"))
    text = call("doctor", release_folder / "release.toml").stdout
    assert "All is sound." in text
    assert sorted(release_folder.rglob("*")) == before
    found = json.loads(call("doctor", release_folder / "release.toml", "--json").stdout)
    assert found["sound"]
    assert {"data: jobs", "ledger", "bundle", "clock"} <= {one["name"] for one in found["findings"]}


def without_data(folder: Path) -> None:
    (folder / "jobs.parquet").unlink()


def with_a_mistake(folder: Path) -> None:
    (folder / "release.toml").write_text((folder / "release.toml").read_text().replace('"2025"', "“2025”"))


def without_a_codelist(folder: Path) -> None:
    (folder / "codelists" / "place.csv").unlink()


def with_an_open_key(folder: Path) -> None:
    new_key(folder / "office.key")
    (folder / "office.key").chmod(0o644)
    file = folder / "release.toml"
    file.write_text(file.read_text().replace("[release]", '[release]\nkey = "office.key"'))


def with_another_ledger(folder: Path) -> None:
    (folder / "ledger.sqlite").write_text("a letter")


def with_a_foreign_bundle(folder: Path) -> None:
    (folder / "bundle").mkdir()
    (folder / "bundle" / "letter.txt").write_text("precious")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spoiled", "name", "kind"),
    [
        (without_data, "data", DataError),
        (with_a_mistake, "release file", ReleaseError),
        (without_a_codelist, "tables and codelists", (ReleaseError, DataError)),
        (with_an_open_key, "key file", KeyFileError),
        (with_another_ledger, "ledger", LedgerError),
        (with_a_foreign_bundle, "bundle", BundleError),
    ],
)
def test_what_would_stop_a_run_is_found_with_what_to_mend(
    spoiled: Callable[[Path], None], name: str, kind: Any, release_folder: Path
) -> None:
    spoiled(release_folder)
    kinds = kind if isinstance(kind, tuple) else (kind,)
    found = {one.name: one for one in of_release(release_folder / "release.toml", None)}
    assert found[name].state == "broken"
    assert found[name].do
    assert found[name].exit_code in {one.exit_code for one in kinds}
    done = call("doctor", release_folder / "release.toml", code=found[name].exit_code)
    assert "Something would stop a run." in done.stdout


@pytest.mark.slow
def test_codes_that_are_read_off_the_data_are_no_fault(release_folder: Path) -> None:
    file = release_folder / "release.toml"
    file.write_text(re.sub(r'codelist = "codelists/place.csv"', 'empty = "unknown"', file.read_text(), count=1))
    found = {one.name: one for one in of_release(file, None)}["tables and codelists"]
    assert found.state == "sound"
    assert "codes of place are read off the data" in found.found
    assert sfumato.check(sfumato.load(file)).refusal is None


@pytest.mark.slow
def test_a_clock_that_is_behind_the_ledger_is_doubted(release_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Behind(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:  # noqa: ARG003
            return datetime.now(UTC) - timedelta(days=2)

    call("run", release_folder / "release.toml", "--quiet")
    assert states(release_folder)["clock"] == "sound"
    monkeypatch.setattr("sfumato.cli.doctor.datetime", Behind)
    assert states(release_folder)["clock"] == "doubtful"


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is closed to root")
def test_a_file_that_is_closed_is_named(release_folder: Path) -> None:
    (release_folder / "jobs.parquet").chmod(0)
    assert states(release_folder)["data: jobs"] == "broken"
    release_folder.chmod(0o500)
    assert states(release_folder)["ledger"] == "broken"
    release_folder.chmod(0o700)
