"""Data files may be anywhere: on a disk, behind file://, or in object storage; what is published is the same."""

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.fs import FileSystem, LocalFileSystem, S3FileSystem, copy_files

from sfumato.check import checked
from sfumato.engine.data_files import data_files
from sfumato.errors import DataError
from sfumato.manifest import read_manifest
from sfumato.release_file import load
from sfumato.run import run
from tests.conftest import tiny_frame

KEYED = """
[release]
title = "Jobs by place"
period = "2025"
key = "sfumato.key"
ledger = "{name}.sqlite"
bundle = "{name}"

[data]
engine = "{engine}"
jobs = {{ path = "{at}/jobs.parquet", worker = "worker", workplace = "workplace" }}
workplaces = {{ path = "{at}/places/*.parquet", key = "workplace" }}
workers = {{ path = "{at}/people", key = "worker" }}
public = ["place", "industry"]

[data.attributes]
sex = {{ codes = ["F", "M"] }}

[[table]]
name = "keyed"
count = "jobs"
by = ["place", "industry", "sex"]
protect = {{ method = "noise-infusion" }}
"""


@pytest.fixture
def arranged(tiny: Path) -> Path:
    """The tiny data as one file, a folder and a folder to be matched by a pattern, with a key."""
    (tiny / "data" / "people").mkdir(parents=True)
    (tiny / "data" / "places").mkdir()
    shutil.move(tiny / "jobs.parquet", tiny / "data" / "jobs.parquet")
    shutil.move(tiny / "workers.parquet", tiny / "data" / "people" / "all.parquet")
    places = pq.read_table(tiny / "workplaces.parquet")
    for number in range(2):
        pq.write_table(places.slice(2 * number, 2), tiny / "data" / "places" / f"{number}.parquet")
    subprocess.run([sys.executable, "-m", "sfumato", "keys", "new", str(tiny / "sfumato.key")], check=True)
    return tiny


def published(folder: Path, name: str, *, at: str, engine: str = "duckdb") -> dict[str, str]:
    """Publish the keyed table from data at some place, and tell the digests of its files."""
    (folder / f"{name}.toml").write_text(KEYED.format(name=name, at=at, engine=engine), encoding="utf-8")
    bundle = run(load(folder / f"{name}.toml")).bundle
    return {path: file["sha256"] for path, file in read_manifest(bundle)["files"].items() if path.startswith("tables")}


def test_addresses_of_files_give_what_their_paths_give(arranged: Path, engine: str) -> None:
    here = published(arranged, "here", at="data")
    assert published(arranged, "there", at=(arranged / "data").as_uri(), engine=engine) == here


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FileSystem]:
    """A bucket called `office` in object storage on this machine, which the environment leads to."""
    if find_spec("moto") is None and os.environ.get("CI") != "true":
        pytest.skip("object storage is tested with moto: pip install 'sfumato[dev]'")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    log = (tmp_path_factory.mktemp("storage") / "log").open("w+", encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch, log, subprocess.Popen(command, stdout=log, stderr=log) as server:
        for name, value in {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
            "AWS_ACCESS_KEY_ID": "office",
            "AWS_SECRET_ACCESS_KEY": "not-a-secret",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }.items():
            patch.setenv(name, value)
        try:
            _wait_for(server, port)
            made = S3FileSystem(endpoint_override=os.environ["AWS_ENDPOINT_URL"], allow_bucket_creation=True)
            made.create_dir("office")
            yield made
        finally:
            server.terminate()


def _wait_for(server: "subprocess.Popen[bytes]", port: int) -> None:
    while server.poll() is None:
        with socket.socket() as tried:
            tried.settimeout(60)
            if tried.connect_ex(("127.0.0.1", port)) == 0:
                return
    raise AssertionError("the storage ended before it began to listen")


def put(storage: FileSystem, folder: Path, name: str) -> str:
    """Copy a folder into the bucket and return its address."""
    copy_files(str(folder), f"office/{name}", source_filesystem=LocalFileSystem(), destination_filesystem=storage)
    return f"s3://office/{name}"


def test_data_in_object_storage_give_what_files_on_a_disk_give(arranged: Path, storage: FileSystem) -> None:
    here = published(arranged, "here", at="data")
    assert published(arranged, "there", at=put(storage, arranged / "data", "some data")) == here


def test_an_object_that_was_written_again_is_another_question_even_with_the_same_size(
    arranged: Path, storage: FileSystem
) -> None:
    at = put(storage, arranged / "data", "changing")
    published(arranged, "there", at=at)
    release = load(arranged / "there.toml")
    with checked(release) as ready:
        before = ready.fingerprint
        states = [file.state() for files in data_files(release.data).values() for file in files]
    people = pq.read_table(arranged / "data" / "people" / "all.parquet")
    swapped = people.set_column(
        people.column_names.index("sex"), "sex", people["sex"].take(pa.array(range(len(people) - 1, -1, -1)))
    )
    assert not swapped.equals(people)
    pq.write_table(swapped, "office/changing/people/all.parquet", filesystem=storage)
    assert [file.state() for files in data_files(release.data).values() for file in files] != states
    with checked(release) as ready:
        assert ready.fingerprint != before


@pytest.mark.usefixtures("storage")
@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("s3://office/nothing/*.parquet", "nothing at s3://office/nothing"),
        ("s3://name:password@office/jobs.parquet", "an address without a password"),
        ("s3://office/jobs?.parquet", "an address without the characters"),
        ("https://office/jobs.parquet", "an address that begins with one of"),
        ("file://elsewhere/jobs.parquet", "three slashes"),
    ],
)
def test_an_address_that_leads_nowhere_is_refused_in_words(tiny: Path, path: str, words: str) -> None:
    with pytest.raises(DataError, match=words.replace("?", ".")) as refused:
        data_files(tiny_frame(tiny, jobs={"path": path, "worker": "worker", "workplace": "workplace"}))
    assert "password@" not in str(refused.value)


def test_objects_with_different_columns_are_refused(arranged: Path, storage: FileSystem) -> None:
    at = put(storage, arranged / "data", "uneven")
    pq.write_table(pa.table({"workplace": [99]}), "office/uneven/places/2.parquet", filesystem=storage)
    with pytest.raises(DataError, match="readable Parquet file"):
        published(arranged, "there", at=at)
