"""What is published while the server runs is served whole or not at all, and nothing else changes by it."""

import gc
import logging
import shutil
import subprocess
import sys
import weakref
from pathlib import Path
from queue import Queue

import pytest

from sfumato.bundle.manifest import MANIFEST
from sfumato.errors import BundleError
from sfumato.serve.app import make_app
from sfumato.serve.core.access import Settings
from sfumato.serve.core.catalogue import BundleSource, open_catalogue
from sfumato.serve.core.editions import Editions
from sfumato.serve.core.users import Role, Users
from tests.serve.in_thread import asking
from tests.serve.patient import PATIENCE
from tests.serve.test_access import sign_in, with_rooms


@pytest.fixture
def shelf(bundles: dict[str, Path], tmp_path: Path) -> Path:
    """A folder of bundles that has one."""
    folder = tmp_path / "shelf"
    shutil.copytree(bundles["jobs"], folder / "Year 2025")
    return folder


def editions_of(folder: Path) -> Editions:
    return Editions(open_catalogue([BundleSource(folder=folder)]), cache_bytes=10**6)


def ids(editions: Editions) -> set[str]:
    return {table.id.partition("-")[0] for table in editions.current.catalogue}


def test_a_folder_of_bundles_grows_and_its_tables_keep_their_names(shelf: Path, bundles: dict[str, Path]) -> None:
    editions = editions_of(shelf)
    before = editions.current.catalogue["year_2025-jobs_by_place"]
    assert not editions.renew()
    shutil.copytree(bundles["survey"], shelf / ".survey.draft-1")
    assert not editions.renew(), "what is hidden is not finished"
    (shelf / ".survey.draft-1").rename(shelf / "survey")
    assert editions.renew()
    assert ids(editions) == {"year_2025", "survey"}
    assert editions.current.catalogue["year_2025-jobs_by_place"] is before, "it is not opened again"


def test_a_bundle_that_is_copied_file_by_file_is_not_shown_before_it_is_whole(
    shelf: Path, bundles: dict[str, Path]
) -> None:
    editions, files = editions_of(shelf), [path for path in bundles["survey"].rglob("*") if path.is_file()]
    files.sort(key=lambda path: path.name != MANIFEST)  # the manifest first
    for path in files:
        assert not editions.renew()
        assert ids(editions) == {"year_2025"}
        there = shelf / "survey" / path.relative_to(bundles["survey"])
        there.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, there)
    assert editions.renew()
    assert ids(editions) == {"year_2025", "survey"}


def test_a_bundle_that_cannot_be_served_keeps_no_other_from_being_served(
    shelf: Path, bundles: dict[str, Path], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("uvicorn.error"), "propagate", True)
    caplog.set_level(logging.ERROR, logger="uvicorn.error")  # servers of other tests made it quieter
    editions = editions_of(shelf)
    shutil.copytree(bundles["jobs"], shelf / "bad")
    (shelf / "bad" / "statement.md").write_text("changed")
    shutil.copytree(bundles["survey"], shelf / "survey")
    assert editions.renew()
    assert ids(editions) == {"year_2025", "survey"}
    assert not editions.renew()
    assert len(caplog.records) == 1, "it is said once"
    shutil.rmtree(shelf / "bad")
    shutil.copytree(bundles["jobs"], shelf / "bad")
    assert editions.renew()
    assert ids(editions) == {"year_2025", "survey", "bad"}


def test_a_bundle_that_is_away_for_a_moment_stays_and_one_that_is_removed_goes(
    shelf: Path, bundles: dict[str, Path]
) -> None:
    shutil.copytree(bundles["survey"], shelf / "survey")
    editions = editions_of(shelf)
    (shelf / "survey").rename(shelf / ".aside")
    assert not editions.renew()
    (shelf / ".aside").rename(shelf / "survey")
    assert not editions.renew()
    assert ids(editions) == {"year_2025", "survey"}
    shutil.rmtree(shelf / "survey")
    assert not editions.renew()
    assert editions.renew()
    assert ids(editions) == {"year_2025"}
    shutil.rmtree(shelf / "Year 2025")
    assert not any(editions.renew() for _ in range(3)), "an empty folder is no reason to serve nothing"


def test_tables_of_one_name_are_refused_at_the_start_and_the_later_one_is_left_out_later(
    bundles: dict[str, Path], tmp_path: Path
) -> None:
    for name in ("a b", "a-b"):
        shutil.copytree(bundles["survey"], tmp_path / "shelf" / name)
    with pytest.raises(BundleError, match="a second 'a_b-"):
        open_catalogue([BundleSource(folder=tmp_path / "shelf")])
    shutil.rmtree(tmp_path / "shelf" / "a-b")
    editions = editions_of(tmp_path / "shelf")
    shutil.copytree(bundles["survey"], tmp_path / "shelf" / "a-b")
    assert not editions.renew()


def test_an_empty_folder_is_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="publish it first"):
        open_catalogue([BundleSource(folder=tmp_path)])


def test_tags_change_with_the_figures_and_nobody_is_signed_out(bundles: dict[str, Path], tmp_path: Path) -> None:
    settings, path = Settings(state=tmp_path / "state"), "/api/v2/tables/{}/metadata"
    _, token = Users(settings.state).add("bea", Role.steward)
    first = open_catalogue([BundleSource(folder=bundles["jobs"])])
    app = with_rooms(first, settings)
    with asking(app) as client:
        sign_in(client, token)
        before = client.get(path.format("jobs_by_place"))
        app.state.context.editions.replace(open_catalogue([BundleSource(folder=bundles["survey"])]))
        gone = client.get(path.format("jobs_by_place"), headers={"If-None-Match": before.headers["etag"]})
        assert gone.status_code == 404
        assert client.get("/steward/room").text == "bea"
        app.state.context.editions.replace(first)
        again = client.get(path.format("jobs_by_place"), headers={"If-None-Match": before.headers["etag"]})
        assert again.status_code == 304
    assert make_app(first, settings)


def test_tables_that_were_published_anew_are_let_go_once_nobody_reads_them(
    bundles: dict[str, Path], tmp_path: Path
) -> None:
    twice = [BundleSource(folder=bundles["jobs"], prefix=prefix) for prefix in ("", "again-")]
    app = make_app(open_catalogue(twice), Settings(state=tmp_path / "state"))
    editions = app.state.context.editions
    earlier = [weakref.ref(table) for table in editions.current.catalogue]
    asked = [f"/tables/jobs_by_place{more}" for more in ("", "?lang=de", "/codes?variable=place", "/files")]
    asked += ["/", "/tables/jobs_by_place~again-jobs_by_place", "/catalog", "/sdmx/2.1/dataflow?references=all"]
    asked += ["/api/v2/tables/jobs_by_place/data?outputFormat=xlsx", "/sdmx/3.0/structure/dataflow"]
    with asking(app) as client:
        for path in asked:
            assert client.get(path).status_code == 200, path
        editions.replace(open_catalogue([BundleSource(folder=bundles["survey"])]))
        for _ in range(100):  # a thread that is just done holds its last work for a moment
            assert client.get("/").status_code == 200
            gc.collect()
            if not any(table() for table in earlier):
                return
    pytest.fail("tables of before are held")


FREED = """
from pathlib import Path
from threading import Thread
from sfumato.serve.core.editions import give_back

def resident():
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1000

last = []  # what lies above all else keeps what is below it from going back by itself

def write():
    written = [b"%d" % n * 500 for n in range(20_000)]
    last.append(written[-1])

before = resident()
threads = [Thread(target=write) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
held = resident() - before
give_back()
print(held, resident() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems say in another way what a process holds")
def test_memory_that_is_free_goes_back_to_the_system(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # In a process of its own: threads of other tests hold memory of theirs.
    done = subprocess.run([sys.executable, "-c", FREED], check=True, capture_output=True, text=True)
    held, left = map(float, done.stdout.split())
    assert left < held / 4, "what four threads wrote is free, and was held"

    times: Queue[None] = Queue()
    monkeypatch.setattr("sfumato.serve.core.editions.give_back", lambda: times.put(None))
    monkeypatch.setattr("sfumato.serve.core.editions.SECONDS", 0.001)
    monkeypatch.setattr("sfumato.serve.core.editions.TRIMMED", 2)
    with editions_of(shelf).watched(lambda _: None):
        for _ in range(3):
            times.get(timeout=PATIENCE)
