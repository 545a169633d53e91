"""What Spark puts on disks is encrypted, in a folder of its owner, never the key, and gone even after a killed run."""

import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import sfumato
from sfumato.engine.connect import spill_folder
from sfumato_lab.economy.jobs.generate import generate
from tests.cli.holding import holding
from tests.conftest import need_java
from tests.engine.cluster import MASTER, releases

pytestmark = pytest.mark.spark
PROGRAM = Path(__file__).with_name("seen_on_disk.py")
CODES = 150_000
"""So many that the work on a part, which names them, is larger than what PySpark sends without a file."""


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What was on the disk while Spark worked, by its path below the temporary folder, and what is left there."""

    during: dict[str, dict[str, bool]]
    temporary: Path
    ended: int

    @property
    def shuffled(self) -> list[str]:
        """The files of what Spark sorted and sent around: true rows."""
        return [
            path for path in self.during if path.rpartition("/")[2].startswith("shuffle_") and path.endswith(".data")
        ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An economy with a release of a keyed table over very many places."""
    folder = generate(tmp_path_factory.mktemp("scratch") / "economy", jobs=20_000).folder
    releases(folder)
    with (folder / "codelists" / "place.csv").open("a", encoding="utf-8") as places:
        places.writelines(f"Q{number},Nowhere {number}\n" for number in range(CODES))
    return folder


def look(folder: Path, *, master: str = "local[2]", settings: str = "", killed: bool = False) -> Seen:
    """Let Spark work on the table with a temporary folder of its own, and look there."""
    need_java()
    release = folder / "looked.toml"
    text = (folder / "spark.toml").read_text(encoding="utf-8").replace(MASTER, master)
    release.write_text(text.replace("[data.spark]", f"[data.spark]\n{settings}"), encoding="utf-8")
    temporary, draft, noted = folder / "temporary", folder / "draft", folder / "noted.json"
    for place in (temporary, draft):
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    environment |= {
        "TMPDIR": str(temporary),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # these programs end before they could warm up
        "PYTHONPATH": str(Path(sfumato.__file__).parents[1]),
    }
    command = [sys.executable, PROGRAM, release, draft, noted, "killed" if killed else "ends"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=600)
    assert noted.exists(), done.stderr[-4000:]
    seen = Seen(during=json.loads(noted.read_text(encoding="utf-8")), temporary=temporary, ended=done.returncode)
    noted.unlink()
    return seen


def test_a_killed_run_leaves_encrypted_files_without_the_key_for_its_owner_until_the_next_run(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = look(folder, killed=True)
    assert seen.ended < 0, "it was not killed"
    assert seen.shuffled, "nothing was shuffled there"
    assert not [path for path, what in seen.during.items() if what["plain"] or what["key"]]
    (left,) = [path for path in seen.temporary.iterdir() if path.name.startswith("sfumato-")]
    assert {path.split("/")[0] for path in seen.shuffled} == {left.name}
    assert left.stat().st_mode & 0o777 == 0o700
    assert list(left.rglob("shuffle_*.data")), "a killed run would leave nothing to remove"
    monkeypatch.setattr("tempfile.tempdir", str(seen.temporary))
    with spill_folder():
        assert not left.exists()


@pytest.mark.slow
def test_the_key_is_in_no_file_even_where_the_release_turns_encryption_off(folder: Path) -> None:
    named = f'spark.local.dir = "{folder / "temporary"}"'
    seen = look(folder, settings=f"{named}\nspark.io.encryption.enabled = false")
    assert any(seen.during[path]["plain"] for path in seen.shuffled), "it was not turned off"
    assert not [path for path, what in seen.during.items() if what["key"]]


@pytest.mark.slow
def test_executors_of_this_machine_write_into_the_same_folder_which_is_gone_at_the_end(folder: Path) -> None:
    seen = look(folder, master=MASTER)
    assert seen.shuffled
    assert {path.split("/")[0].split("-")[0] for path in seen.shuffled} == {"sfumato"}
    assert not [path for path, what in seen.during.items() if what["plain"] or what["key"]]
    assert seen.ended == 0
    assert not list(seen.temporary.glob("sfumato-*"))


@pytest.mark.slow
def test_a_place_that_the_release_names_is_used_and_encrypted_too(folder: Path) -> None:
    named = folder / "temporary" / "named"
    seen = look(folder, settings=f'spark.local.dir = "{named}"')
    assert {path.split("/")[0] for path in seen.shuffled} == {"named"}
    assert not [path for path, what in seen.during.items() if what["plain"] or what["key"]]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_command_on_spark_that_is_told_to_stop_leaves_nothing(number: signal.Signals, tmp_path: Path) -> None:
    need_java()
    child = holding('if spark_session({"master": "local[1]"}):', temporary=tmp_path)
    child.send_signal(number)
    _, said = child.communicate(timeout=120)
    assert child.returncode == 128 + number
    assert "Stopped. Nothing was half-written" in said
    assert not list(tmp_path.glob("sfumato-*"))


@pytest.mark.slow
def test_a_session_that_someone_made_without_encryption_is_refused() -> None:
    need_java()
    program = """
from pyspark.sql import SparkSession
from sfumato.engine.connect import spark_session
SparkSession.builder.master("local[1]").getOrCreate()
spark_session({})
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=300)
    assert "EngineError: [data.spark], spark.io.encryption.enabled" in done.stderr
    assert "expected: 'true', unless the release file says otherwise" in done.stderr
