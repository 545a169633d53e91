"""Nobody asks more often than the server announces, and nobody who keeps to it is refused."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pxweb import PxApi

from sfumato.serve.core.rate_limit import Buckets, network
from sfumato.serve.core.users import Role, Users
from tests.cli.call import call
from tests.serve import patient
from tests.serve.running import Server, serving


class Clock:
    """A clock that goes on when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@given(calls=st.integers(1, 50), window=st.integers(1, 60), waits=st.lists(st.floats(0, 10), max_size=200))
def test_no_window_lets_more_through_than_twice_the_calls(calls: int, window: int, waits: list[float]) -> None:
    clock, granted = Clock(), []
    buckets = Buckets(calls=calls, window=window, clock=clock)
    for wait in waits:
        clock.now += wait
        if buckets.wait("a") == 0:
            granted.append(clock.now)
    times = np.array(granted)
    within = [(times >= start) & (times <= start + window) for start in granted]
    assert all(some.sum() <= 2 * calls for some in within)


@given(calls=st.integers(1, 50), window=st.integers(1, 60), rounds=st.integers(1, 5))
def test_a_client_that_keeps_to_the_announced_rate_is_never_refused(calls: int, window: int, rounds: int) -> None:
    clock = Clock()
    buckets = Buckets(calls=calls, window=window, clock=clock)
    for _ in range(rounds):
        assert all(buckets.wait("a") == 0 for _ in range(calls))
        clock.now += window * 1.000001


@given(calls=st.integers(1, 50), window=st.integers(1, 60))
def test_a_client_that_comes_back_when_it_is_told_is_let_through(calls: int, window: int) -> None:
    clock = Clock()
    buckets = Buckets(calls=calls, window=window, clock=clock)
    for _ in range(calls):
        buckets.wait("a")
    wait = buckets.wait("a")
    assert 0 < wait <= window / calls * 1.000001
    clock.now += wait * 1.000001
    assert buckets.wait("a") == 0


def test_a_flood_of_clients_takes_no_more_memory_than_is_set() -> None:
    buckets = Buckets(calls=5, window=10, most=100)
    for number in range(10_000):
        buckets.wait(str(number))
    assert len(buckets) == 100


def test_neighbours_in_version_six_are_one_client_and_in_version_four_they_are_not() -> None:
    assert network("2001:db8::1", 32, 64) == network("2001:db8::ffff:1", 32, 64)
    assert network("192.0.2.1", 32, 64) != network("192.0.2.2", 32, 64)
    assert network("no address", 32, 64) == "unknown"


@pytest.fixture
def slow(bundles: dict[str, Path], tmp_path: Path) -> Iterator[Server]:
    """A server that lets five calls through in a long time, and has a user."""
    with serving(bundles["survey"], "--state", tmp_path / "state", "--rate", "5/1000") as running:
        yield running


@pytest.mark.slow
def test_a_client_that_asks_too_often_is_told_when_to_come_back(slow: Server, tmp_path: Path) -> None:
    assert [slow.get("/config").status_code for _ in range(5)] == [200] * 5
    refused = slow.get("/config")
    assert refused.status_code == 429
    assert refused.headers["content-type"] == "application/problem+json"
    assert 1 <= int(refused.headers["retry-after"]) <= 200
    assert refused.headers["access-control-allow-origin"] == "*"
    forged = patient.get(f"{slow.v2}/config", headers={"X-Forwarded-For": "192.0.2.1", "Forwarded": "for=192.0.2.1"})
    assert forged.status_code == 429
    _, token = Users(tmp_path / "state").add("ann", Role.analyst)
    known = {"Authorization": f"Bearer {token}"}
    assert [patient.get(f"{slow.v2}/config", headers=known).status_code for _ in range(6)] == [200] * 5 + [429]


@pytest.mark.slow
def test_of_several_proxies_the_nearest_is_read_first_and_no_client_is_believed(
    bundles: dict[str, Path], tmp_path: Path
) -> None:
    trusted = ("--trusted-proxy", "127.0.0.1", "--trusted-proxy", "192.0.2.0/24")
    with serving(bundles["survey"], "--state", tmp_path / "state", "--rate", "1/1000", *trusted) as proxied:

        def asked(*headers: str) -> int:
            found = [("X-Forwarded-For", text) for text in headers]
            return patient.get(f"{proxied.v2}/config", headers=found).status_code

        assert asked("203.0.113.9, 192.0.2.7") == 200
        assert asked("198.51.100.1, 203.0.113.9, 192.0.2.7") == 429, "what a client wrote before counts for nothing"
        assert asked("198.51.100.2", "203.0.113.9, 192.0.2.7") == 429, "nor in a header of its own"
        assert asked("203.0.113.9:4711") == 429, "a port makes no other client"
        assert asked("[2001:db8::1]:4711") == 200
        assert asked("2001:db8::2") == 429, "one network"


@pytest.mark.slow
def test_a_trusted_proxy_says_who_asks(bundles: dict[str, Path], tmp_path: Path) -> None:
    arguments = (bundles["survey"], "--state", tmp_path / "state", "--rate", "1/1000", "--trusted-proxy", "127.0.0.1")
    with serving(*arguments) as proxied:
        asked = [
            patient.get(f"{proxied.v2}/config", headers={"X-Forwarded-For": client}).status_code
            for client in ("192.0.2.1", "192.0.2.1", "192.0.2.2")
        ]
    assert asked == [200, 429, 200]


@pytest.mark.slow
def test_pxwebpy_keeps_to_the_announced_rate_also_when_it_splits_a_question(
    bundles: dict[str, Path], tmp_path: Path, server: Server
) -> None:
    arguments = (bundles["survey"], "--state", tmp_path / "state", "--most-cells", "2", "--rate", "6/1")
    asked = {"region": ["*"], "job": ["*"], "contents": ["weighted", "weighted_error"]}
    with serving(*arguments) as limited:
        parts = PxApi(limited.v2).get_table_data("people", asked)
        answered = (tmp_path / "state/audit/public.jsonl").read_text(encoding="utf-8").splitlines()
    posts = [line for line in answered if '"method":"POST"' in line]
    assert len(posts) >= 12
    whole = PxApi(server.v2).get_table_data("people", asked)
    key = sorted(whole[0].keys() - {"value"})
    assert sorted(parts, key=lambda row: [row[name] for name in key]) == sorted(
        whole, key=lambda row: [row[name] for name in key]
    )


@pytest.mark.slow
def test_without_a_limit_clients_are_told_so(bundles: dict[str, Path], tmp_path: Path) -> None:
    with serving(bundles["survey"], "--state", tmp_path / "state", "--rate", "0") as unlimited:
        assert unlimited.get("/config").json()["maxCallsPerTimeWindow"] >= 1_000_000
        assert patient.get(f"{unlimited.url}/api/v1?config").json()["maxCalls"] >= 1_000_000


@pytest.mark.parametrize("rate", ["5", "0/1", "1.5/2"])
def test_a_rate_that_is_none_is_named(rate: str, bundles: dict[str, Path]) -> None:
    assert "--rate" in call("serve", bundles["survey"], "--rate", rate, refused=True).stderr


def test_everybody_cannot_be_a_trusted_proxy(bundles: dict[str, Path]) -> None:
    assert "--trusted-proxy" in call("serve", bundles["survey"], "--trusted-proxy", "*", refused=True).stderr
