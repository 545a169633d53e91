"""Data files may be anywhere: on a disk, behind file://, or in object storage; what is published is the same."""

import gzip
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.fs import FileSystem, LocalFileSystem, S3FileSystem, SubTreeFileSystem, copy_files

from sfumato.bundle.manifest import read_manifest
from sfumato.checking import checked
from sfumato.content import Content
from sfumato.engine.connect import connect
from sfumato.engine.data_files import DataFile, data_files, files
from sfumato.engine.memory import Memory
from sfumato.errors import DataError
from sfumato.frame.data import Data, Frame
from sfumato.frame.jobs import Jobs
from sfumato.frame.sources import Source
from sfumato.release import load
from sfumato.running import run
from tests.conftest import tiny_frame
from tests.tiny import TINY

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


def content_of(file: Path) -> Content:
    """What the data of a release are known by."""
    with checked(load(file)) as ready:
        return ready.identity.content


def test_addresses_of_files_give_what_their_paths_give(arranged: Path, engine: str) -> None:
    here = published(arranged, "here", at="data")
    assert published(arranged, "there", at=(arranged / "data").as_uri(), engine=engine) == here
    assert content_of(arranged / "there.toml") == content_of(arranged / "here.toml")


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


@pytest.mark.slow
def test_data_in_object_storage_give_what_files_on_a_disk_give(arranged: Path, storage: FileSystem) -> None:
    here = published(arranged, "here", at="data")
    assert published(arranged, "there", at=put(storage, arranged / "data", "some data")) == here
    assert content_of(arranged / "there.toml") == content_of(arranged / "here.toml")


@pytest.mark.slow
def test_texts_in_object_storage_are_the_same_data_as_on_a_disk(tiny: Path, storage: FileSystem) -> None:
    (tiny / "people").mkdir()
    for name, half in (("a.csv.gz", slice(4)), ("b.csv.gz", slice(4, None))):
        rows = zip(*(values[half] for values in TINY["workers"].values()), strict=True)
        lines = [",".join(TINY["workers"]), *(",".join(map(str, row)) for row in rows)]
        (tiny / "people" / name).write_bytes(gzip.compress("\n".join(lines).encode()))
    address = put(storage, tiny / "people", "texts")
    for path in ("people", address, f"{address}/*.csv.gz"):
        with connect(tiny_frame(tiny, workers={"path": path, "key": "worker"})) as tables:
            assert tables.workers is not None
            assert (
                tables.workers.select("worker", "sex", "age").fetch().sort_by("worker").to_pydict() == TINY["workers"]
            )


def in_bucket(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a folder of this machine be the bucket `office`, for a test to run where there is no storage."""

    class OfAnyKind(type):
        def __instancecheck__(cls, storage: object) -> bool:  # Arrow asks it of any storage
            return isinstance(storage, FileSystem)

    class FolderAsBucket(metaclass=OfAnyKind):
        @staticmethod
        def from_uri(address: str) -> tuple[FileSystem, str]:
            if not address.startswith("s3://office/"):
                found: tuple[FileSystem, str] = FileSystem.from_uri(address)
                return found
            return SubTreeFileSystem(str(folder), LocalFileSystem()), address.removeprefix("s3://office/")

    monkeypatch.setattr("pyarrow.fs.FileSystem", FolderAsBucket)


@pytest.mark.parametrize("path", ["people", "people/*/x.parquet"])
def test_the_same_files_are_the_same_data_on_a_disk_and_in_object_storage_however_folders_are_called(
    tiny: Path, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, name in enumerate(("2025", "2025-Q4")):  # by their steps in this order, as texts in the other
        (tiny / "people" / name).mkdir(parents=True)
        pq.write_table(pa.table({"worker": [number]}), tiny / "people" / name / "x.parquet")

    in_bucket(tiny, monkeypatch)
    listed = [files(tiny_frame(tiny), Source(path=at)) for at in (path, f"s3://office/{path}")]
    assert [len(found) for found in listed] == [2, 2]
    here, there = (Memory(tiny / "memory.json").fingerprint({"workers": found}) for found in listed)
    assert here == there


@pytest.mark.slow
def test_an_object_that_was_written_again_is_another_question_even_with_the_same_size(
    arranged: Path, storage: FileSystem
) -> None:
    at = put(storage, arranged / "data", "changing")
    published(arranged, "there", at=at)
    release = load(arranged / "there.toml")
    with checked(release) as ready:
        before = ready.identity.content
        states = [file.state() for files in data_files(release.data).values() for file in files]
    people = pq.read_table(arranged / "data" / "people" / "all.parquet")
    swapped = people.set_column(
        people.column_names.index("sex"), "sex", people["sex"].take(pa.array(range(len(people) - 1, -1, -1)))
    )
    assert not swapped.equals(people)
    pq.write_table(swapped, "office/changing/people/all.parquet", filesystem=storage)
    assert [file.state() for files in data_files(release.data).values() for file in files] != states
    with checked(release) as ready:
        assert ready.identity.content.changed_since(before) == ["workers: other values in sex"]


def test_an_address_with_a_password_is_refused_before_anything_is_read(tiny: Path) -> None:
    with pytest.raises(ValueError, match="give credentials in the environment, such as AWS_ACCESS_KEY_ID"):
        tiny_frame(tiny, jobs={"path": "s3://name:pass@office/j.parquet", "worker": "worker", "workplace": "workplace"})


@pytest.mark.usefixtures("storage")
@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("s3://office/nothing/*.parquet", "nothing at s3://office/nothing"),
        ("s3://office/jobs?.parquet", "an address without the characters"),
        ("https://office/jobs.parquet", "an address that begins with one of"),
        ("file://elsewhere/jobs.parquet", "three slashes"),
        ("s3:/office/jobs.parquet", "single slash"),
    ],
)
def test_an_address_that_leads_nowhere_is_refused_in_words(tiny: Path, path: str, words: str) -> None:
    with pytest.raises(DataError, match=words.replace("?", ".")) as refused:
        data_files(tiny_frame(tiny, jobs={"path": path, "worker": "worker", "workplace": "workplace"}))
    assert "password@" not in str(refused.value)


def test_objects_with_different_columns_are_refused(arranged: Path, storage: FileSystem) -> None:
    at = put(storage, arranged / "data", "uneven")
    pq.write_table(pa.table({"workplace": [99]}), "office/uneven/places/2.parquet", filesystem=storage)
    with pytest.raises(DataError, match="other files of the table have: place, industry"):
        published(arranged, "there", at=at)


HIDDEN = ["_jobs.parquet", ".jobs.parquet", "_temporary/0/jobs.parquet", "2025/.staging/jobs.parquet"]


def jobs_at(folder: Path, path: str, engine: str = "duckdb") -> list[str]:
    """The files of the jobs, when the release file names this path."""
    described = {"path": path, "worker": "worker", "workplace": "workplace"}
    return [file.name for file in data_files(tiny_frame(folder, jobs=described, engine=engine))["jobs"]]


@pytest.mark.parametrize("hidden", HIDDEN)
@pytest.mark.parametrize("path", ["jobs", "jobs/**/*.parquet", "{address}/jobs"])
@pytest.mark.parametrize("named", ["duckdb", "spark"])
def test_a_file_that_spark_would_leave_out_without_a_word_is_refused_with_both_engines(
    tiny: Path, hidden: str, path: str, named: str
) -> None:
    (tiny / "jobs" / hidden).parent.mkdir(parents=True)
    shutil.copy(tiny / "jobs.parquet", tiny / "jobs" / hidden)
    shutil.move(tiny / "jobs.parquet", tiny / "jobs" / "all.parquet")
    with pytest.raises(DataError, match="rename it, or remove what is left over") as refused:
        jobs_at(tiny, path.format(address=tiny.as_uri()), named)
    assert f"data file {hidden}" in str(refused.value)


def test_a_file_named_directly_is_refused_by_its_own_name_and_not_by_the_folders_it_is_in(tiny: Path) -> None:
    (tiny / "_office").mkdir()
    for name in ("jobs.parquet", "_jobs.parquet", "_SUCCESS"):
        shutil.copy(tiny / "jobs.parquet", tiny / "_office" / name)
    with pytest.raises(DataError, match=r"data file _jobs\.parquet"):
        jobs_at(tiny, "_office/_jobs.parquet")
    (tiny / "_office" / "_jobs.parquet").unlink()
    for path in ("_office/jobs.parquet", "_office", "_office/*.parquet"):
        assert jobs_at(tiny, path) == ["jobs.parquet"]


@pytest.mark.parametrize("hidden", HIDDEN)
@pytest.mark.parametrize("path", ["", "/**/*.parquet"])
def test_such_objects_are_refused_in_object_storage_too(
    tiny: Path, storage: FileSystem, hidden: str, path: str
) -> None:
    at = f"office/hidden{HIDDEN.index(hidden)}"
    pq.write_table(pa.table({"worker": [1]}), f"{at}/{hidden}", filesystem=storage)
    with pytest.raises(DataError, match="rename it, or remove what is left over") as refused:
        jobs_at(tiny, f"s3://{at}{path}")
    assert f"data file {hidden}" in str(refused.value)
    with pytest.raises(DataError, match="rename it") if "/" not in hidden else nullcontext():
        assert jobs_at(tiny, f"s3://{at}/{hidden}") == ["jobs.parquet"]


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("{address}/jobs.parquet?version=2", "'?'"),
        ("{address}/jobs.parquet#old", "'#'"),
        ("{address}%2Fjobs.parquet", "'%2F'"),
        ("file:{folder}/jobs.parquet", "single slash"),
        ("S3:/office/jobs.parquet", "single slash"),
    ],
)
def test_an_address_that_would_be_read_as_another_one_is_refused(tiny: Path, path: str, words: str) -> None:
    with pytest.raises(DataError) as refused:
        jobs_at(tiny, path.format(address=tiny.as_uri(), folder=tiny))
    assert words in str(refused.value)


def test_names_with_odd_characters_are_found_by_path_and_by_encoded_address(tiny: Path) -> None:
    shutil.copy(tiny / "jobs.parquet", tiny / "a #1: jobs.parquet")
    for path in ("a #1: jobs.parquet", (tiny / "a #1: jobs.parquet").as_uri()):
        assert jobs_at(tiny, path) == ["a #1: jobs.parquet"]


def test_a_file_that_appears_right_after_the_files_were_listed_is_noticed(
    arranged: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (arranged / "there.toml").write_text(KEYED.format(name="there", at="data", engine="duckdb"), encoding="utf-8")
    people = arranged / "data" / "people"
    pq.write_table(pq.read_table(people / "all.parquet").slice(0, 0), arranged / "none.parquet")

    def listed(data: Data) -> dict[str, list[DataFile]]:
        found = data_files(data)
        if (arranged / "none.parquet").exists():
            (arranged / "none.parquet").rename(people / "none.parquet")
        return found

    monkeypatch.setattr("sfumato.checking.data_files", listed)
    with pytest.raises(DataError, match="written to meanwhile"), checked(load(arranged / "there.toml")):
        pass


def test_a_description_beside_data_is_never_read_as_data(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for name in ("a.csv", "b.csv.gz", "README.txt"):
        (tmp_path / "in" / name).write_text("x\n1\n")
    frame = Frame(jobs=Jobs(path="in"), folder=tmp_path)
    with pytest.raises(DataError, match="a description in") as refused:
        files(frame, frame.jobs)
    assert refused.value.found == "README.txt"
    (tmp_path / "in" / "README.txt").unlink()
    assert [file.name for file in files(frame, frame.jobs)] == ["a.csv", "b.csv.gz"]


@pytest.mark.parametrize("path", ["in", "s3://office/in"])
@pytest.mark.parametrize("names", [["B.PARQUET", "a.parquet", "sub/c.Parquet"], ["A.CSV", "b.csv", "c.TSV.GZ"]])
def test_no_file_of_a_folder_is_left_out_whatever_the_case_of_its_ending(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: list[str], path: str
) -> None:
    in_bucket(tmp_path, monkeypatch)
    for name in (*names, "checksums.md5", "Thumbs.db", "~$book.xlsx"):
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / name).write_bytes(b"x\n1\n")
    frame = Frame(jobs=Jobs(path=path), folder=tmp_path)
    assert [file.name for file in files(frame, frame.jobs)] == [Path(name).name for name in names]


def test_a_text_is_unpacked_whatever_the_case_of_its_ending(tiny: Path) -> None:
    rows = zip(*TINY["workers"].values(), strict=True)
    lines = [",".join(TINY["workers"]), *(",".join(map(str, row)) for row in rows)]
    (tiny / "PEOPLE.CSV.GZ").write_bytes(gzip.compress("\n".join(lines).encode()))
    with connect(tiny_frame(tiny, workers={"path": "PEOPLE.CSV.GZ", "key": "worker"})) as tables:
        assert tables.workers is not None
        assert tables.workers.number() == len(TINY["workers"]["worker"])


@pytest.mark.parametrize("path", ["in", "s3://office/in", "in/*"])
@pytest.mark.parametrize("written", [None, "parquet"])
def test_a_folder_with_data_of_several_formats_is_refused_with_a_file_of_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, written: str | None
) -> None:
    in_bucket(tmp_path, monkeypatch)
    (tmp_path / "in").mkdir()
    for name in ("a.parquet", "b.csv", "c.parquet"):
        (tmp_path / "in" / name).write_text("x\n1\n")
    frame = Frame(jobs=Jobs.model_validate({"path": path, "format": written}), folder=tmp_path)
    with pytest.raises(DataError, match="files of one format") as refused:
        files(frame, frame.jobs)
    assert refused.value.found == "a.parquet (parquet) and b.csv (csv)"
    named = Source(path=f"{path.removesuffix('/*')}/*.parquet")
    assert [file.name for file in files(frame, named)] == ["a.parquet", "c.parquet"]
