"""A series is served as tables with a time dimension: PxWeb, JSON-stat, SDMX, the page and files to download."""

import csv
import io
from collections.abc import Iterator
from pathlib import Path

import pytest

from sfumato.release import load
from sfumato.running import run
from sfumato.serve.core.catalogue import BundleSource, open_catalogue
from sfumato.serve.core.editions import Editions
from tests.series.office import QUARTERS, RELEASE, make_office, read_csv, write_csv
from tests.serve import patient
from tests.serve.running import Server, serving

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Four quarters, in the last of which a new place took the place of another."""
    file = make_office(tmp_path_factory.mktemp("office") / "o")
    for quarter in QUARTERS[:3]:
        run(load(file, quarter))
    places = [(name, "D" if place == "C" else place) for name, place in read_csv(file.parent / "workplaces.csv")]
    write_csv(file.parent / "workplaces.csv", ("workplace", "place"), places)
    file.write_text(RELEASE.replace('C = "Cestadt"', 'D = "Deberg"'), encoding="utf-8")
    run(load(file, QUARTERS[3]))
    with serving(file.parent / "bundle") as server:
        yield server


def test_pxweb_has_a_time_variable(served: Server) -> None:
    described = served.get("/tables/jobs_by_place/metadata").json()
    assert described["role"]["time"] == ["quarter"]
    assert list(described["dimension"]["quarter"]["category"]["index"]) == list(QUARTERS)
    listed = served.get("/tables").json()["tables"]
    assert [(table["firstPeriod"], table["lastPeriod"]) for table in listed] == [("2026-Q1", "2026-Q4")]


def test_absent_cells_are_marked_and_are_not_zero(served: Server) -> None:
    answer = served.data("jobs_by_place", quarter="*", place="*", contents="jobs").json()
    values = answer["value"]
    assert len(values) == 4 * 4
    assert values.count(None) == 4, "D in three quarters, and C in the last"
    assert 0 not in values


def test_sdmx_has_time_period(served: Server) -> None:
    found = patient.get(f"{served.url}/sdmx/2.1/data/jobs_by_place", params={"format": "csvdata"})
    assert found.status_code == 200, found.text
    rows = list(csv.DictReader(io.StringIO(found.text)))
    assert {row["TIME_PERIOD"] for row in rows} == set(QUARTERS)


def test_the_page_shows_quarters_and_says_what_they_cost_together(served: Server) -> None:
    page = patient.get(f"{served.url}/tables/jobs_by_place", follow_redirects=True)
    assert page.status_code == 200
    assert all(quarter in page.text for quarter in QUARTERS)
    assert "To whoever is in all 4" in page.text


def test_files_to_download_have_the_time(served: Server) -> None:
    px = served.data("jobs_by_place", "px", quarter="*", place="*", contents="jobs").text
    assert 'TLIST(Q1),"20261","20262","20263","20264"' in px
    text = served.data("jobs_by_place", "csv", quarter="*", place="*", contents="jobs").text
    assert all(quarter in text for quarter in QUARTERS)


def test_a_running_server_shows_a_new_period_and_a_request_under_way_does_not_change(tmp_path: Path) -> None:
    file = make_office(tmp_path / "o")
    run(load(file, QUARTERS[0]))
    editions = Editions(open_catalogue([BundleSource(folder=file.parent / "bundle")]), cache_bytes=10**6)
    assert not editions.renew(), "nothing is opened twice"
    with editions.one():
        run(load(file, QUARTERS[1]))
        assert editions.renew()
        under_way = editions.current.catalogue["jobs_by_place"]
    served = editions.current.catalogue["jobs_by_place"]
    assert [list(table.dimensions[0].codes) for table in (under_way, served)] == [[QUARTERS[0]], list(QUARTERS[:2])]


def test_a_bundle_that_cannot_be_read_leaves_the_earlier_one_served(tmp_path: Path) -> None:
    file = make_office(tmp_path / "o")
    run(load(file, QUARTERS[0]))
    manifest = file.parent / "bundle/manifest.json"
    editions = Editions(open_catalogue([BundleSource(folder=file.parent / "bundle")]), cache_bytes=10**6)
    content = manifest.read_text()
    manifest.write_text(content.replace("sha256", "sha255"))
    assert not editions.renew()
    manifest.unlink()
    assert not editions.renew()
    assert len(editions.current.catalogue) == 1
    manifest.write_text(content)
    assert editions.renew(), "what was mended is served"


def test_a_server_says_that_it_serves_what_was_published_anew(tmp_path: Path) -> None:
    file = make_office(tmp_path / "o")
    run(load(file, QUARTERS[0]))
    with serving(file.parent / "bundle", "--state", tmp_path / "state") as server:
        answers = [server.data("jobs_by_place", quarter="*", place="*", contents="jobs").json()["size"][0]]
        run(load(file, QUARTERS[1]))
        assert server.process.stderr
        assert "published anew: 1 tables" in server.process.stderr.readline()
        answers.append(server.data("jobs_by_place", quarter="*", place="*", contents="jobs").json()["size"][0])
        flows = patient.get(f"{server.url}/sdmx/2.1/data/jobs_by_place", params={"format": "csvdata"}).text
    assert answers == [1, 2]
    assert "2026-Q2" in flows
