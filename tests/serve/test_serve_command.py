"""`sfumato serve` starts, or says in plain words why not."""

import shutil
import signal
import socket
import stat
from pathlib import Path

from sfumato.serve.cache import BoundedCache
from tests.cli.call import call
from tests.serve.running import serving


def test_a_port_that_is_taken_is_named(bundles: dict[str, Path]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = call("serve", bundles["survey"], "--port", str(port), code=1)
    assert f"port {port}" in done.stderr
    assert "--port" in done.stderr


def test_a_folder_that_is_no_bundle_is_named(tmp_path: Path) -> None:
    assert "expected: a bundle" in call("serve", tmp_path, code=1).stderr


def test_a_changed_bundle_is_not_served(bundles: dict[str, Path], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(bundles["survey"], tmp_path / "bundle"))
    with (folder / "cubes/people.parquet").open("ab") as file:
        file.write(b"x")
    assert "cubes/people.parquet was changed" in call("serve", folder, code=1).stderr


def test_it_says_what_to_open_and_stops_quietly(bundles: dict[str, Path], tmp_path: Path) -> None:
    with serving(bundles["survey"], "--state", tmp_path / "state") as server:
        assert server.get("/config").status_code == 200
        server.process.send_signal(signal.SIGINT)
        assert server.process.stdout
        assert server.process.stderr
        said, wrong = server.process.stdout.read(), server.process.stderr.read()
        server.process.wait(30)
    assert server.process.returncode == 0
    assert "/api/v2/tables/people/data?outputFormat=xlsx" in said
    assert said.endswith("Stopped.\n")
    assert not wrong
    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o700


def test_the_cache_stays_within_its_bound() -> None:
    cache = BoundedCache[int](1_000)
    for number in range(100):
        cache.put(number, number, size=100)
        assert cache.held <= 1_000
    assert cache.get(99) == 99
    assert cache.get(0) is None
    cache.put("large", 1, size=900)
    assert cache.get("large") is None
    cache.put(99, 1, size=50)
    assert cache.held == 950
