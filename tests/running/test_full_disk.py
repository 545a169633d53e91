"""A full disk is an error in words, leaves nothing half-written, and the next run goes on without a second charge."""

import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sfumato.bundle.manifest import read_manifest
from sfumato.durable import write_durably
from sfumato.errors import DiskError
from sfumato.privacy.ledger import Ledger
from sfumato.release import load
from tests.release.test_release_file import GOOD, written

KIB = 1024
FEW = (0, 16, 40)
"""KiB that are left on the disk: too few for the ledger, for the store, for the bundle."""
MANY = (0, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 48, 56, 64, 72, 80, 88, 96, 104, 128)


@pytest.fixture
def small_disk(tiny: Path) -> Iterator[Path]:
    """The tiny data on a disk of two MiB."""
    disk = tiny / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)], check=False, capture_output=True
    )
    if mounted.returncode:
        pytest.skip("only a user who may mount can make a small disk")
    try:
        for path in tiny.glob("*.parquet"):
            shutil.copy(path, disk)
        written(disk, GOOD)
        yield disk
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def command(*arguments: object, file_size: int | None = None) -> subprocess.CompletedProcess[str]:
    def limit() -> None:
        if file_size is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (file_size, file_size))

    line = [sys.executable, "-m", "sfumato", *map(str, arguments)]
    return subprocess.run(line, check=False, capture_output=True, text=True, preexec_fn=limit)


def failed_in_words(done: subprocess.CompletedProcess[str]) -> bool:
    """Whether a command failed; if so, it must have said in words that there is no room."""
    if done.returncode == 0:
        return False
    assert done.returncode == DiskError.exit_code
    assert "Traceback" not in done.stderr
    assert "this never to happen" not in done.stderr
    assert "free space" in " ".join(done.stderr.split()), done.stderr
    assert all(part in done.stderr for part in ("expected:", "found:", "do:"))
    return True


def check_nothing_half_written(folder: Path) -> None:
    release = load(folder / "release.toml")
    if release.bundle.exists():
        read_manifest(release.bundle)
    assert not [path for path in folder.rglob("*") if path.name.startswith(".") and path.suffix != ".lock"]
    if release.ledger.exists():
        charges = [entry for entry in Ledger.open(release.ledger).history() if entry.kind == "charge"]
        assert len(charges) in (0, len(release.tables))


@pytest.mark.parametrize("rooms", [FEW, pytest.param(MANY, marks=pytest.mark.slow)], ids=["few", "many"])
def test_a_run_on_a_full_disk_says_so_and_the_next_goes_on(small_disk: Path, rooms: tuple[int, ...]) -> None:
    filler, refused = small_disk / "filler", 0
    for room in rooms:
        filler.unlink(missing_ok=True)
        free = shutil.disk_usage(small_disk).free
        filler.write_bytes(b"\0" * (free - room * KIB))
        refused += failed_in_words(command("run", small_disk / "release.toml"))
        check_nothing_half_written(small_disk)
    assert refused >= len(FEW)
    filler.unlink()
    release = load(small_disk / "release.toml")
    done = command("run", small_disk / "release.toml", "--json")
    assert json.loads(done.stdout)["bundle"] == str(release.bundle)
    assert len(read_manifest(release.bundle)["charges"]) == len(release.tables)
    assert sum(entry.kind == "charge" for entry in Ledger.open(release.ledger).history()) == len(release.tables)


@pytest.mark.slow
@pytest.mark.parametrize("size", [100, 2 * KIB, 12 * KIB])
def test_a_run_that_may_write_no_larger_files_says_so_and_the_next_goes_on(tiny: Path, size: int) -> None:
    file = written(tiny, GOOD)
    assert failed_in_words(command("run", file, file_size=size))
    check_nothing_half_written(tiny)
    assert command("run", file).returncode == 0
    assert sum(entry.kind == "charge" for entry in Ledger.open(load(file).ledger).history()) == 2


@pytest.mark.slow
def test_the_confidential_report_on_a_full_disk_says_so(small_disk: Path) -> None:
    assert command("run", small_disk / "release.toml").returncode == 0
    (small_disk / "filler").write_bytes(b"\0" * (shutil.disk_usage(small_disk).free - 4 * KIB))
    assert failed_in_words(command("assess", small_disk / "release.toml"))
    assert not list(small_disk.rglob("*.html"))


def test_a_file_that_does_not_fit_leaves_the_old_one(small_disk: Path) -> None:
    kept = small_disk / "kept"
    write_durably(kept, b"old")
    with pytest.raises(DiskError, match="no space left"):
        write_durably(kept, os.urandom(4 * KIB * KIB))
    assert kept.read_bytes() == b"old"
    assert not list(small_disk.glob(".kept*"))
