"""Saved queries are small, in one spelling, and never fill the disk."""

import os
from pathlib import Path
from typing import Any

import httpx
import pytest
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from sfumato.serve.app import make_app
from sfumato.serve.core.access import Settings
from sfumato.serve.core.catalogue import Catalogue
from sfumato.serve.core.errors import RefusedError
from sfumato.serve.pxweb.saved import LONGEST, SavedQueries
from tests.serve import patient
from tests.serve.in_thread import asking
from tests.serve.running import Server


def saved(server: Server, *selection: dict[str, Any], **more: Any) -> httpx.Response:
    query = {"tableId": "people", "selection": {"selection": selection}, **more}
    return patient.post(f"{server.v2}/savedqueries", json=query)


def test_repeated_codes_and_parameters_are_kept_once(server: Server) -> None:
    once = saved(
        server, {"variableCode": "region", "valueCodes": ["N", "E", "top(2)"]}, outputFormatParams=["UseCodes"]
    )
    assert once.status_code == 201, once.text
    often = saved(
        server,
        {"variableCode": "REGION", "valueCodes": ["E", "top(2)"]},
        {"variableCode": "region", "valueCodes": ["N"] * 3_000},
        outputFormatParams=["UseCodes"] * 100,
    )
    assert often.json() == once.json()
    assert once.json()["savedQuery"]["selection"]["selection"] == [
        {"variableCode": "region", "valueCodes": ["N", "E", "top(2)"], "codelist": None, "outputValues": None}
    ]


def aged(queries: SavedQueries, name: str, second: int) -> str:
    """Make a query as old as if it had been used last at a second of the epoch."""
    os.utime(queries.folder / f"{name}.json", (second, second))
    return name


@pytest.mark.parametrize("limits", [{"most": 3, "most_bytes": 10**6}, {"most": 100, "most_bytes": 3_100}])
def test_the_query_used_least_recently_makes_room(limits: dict[str, int], tmp_path: Path) -> None:
    queries = SavedQueries(folder=tmp_path / "saved", **limits)
    first, second, third = (aged(queries, queries.save({"a": f"{n}" * 1_000}), n) for n in (1, 2, 3))
    queries.read(first)
    fourth = queries.save({"a": "4" * 1_000})
    with pytest.raises(RefusedError):
        queries.read(second)
    assert [queries.read(name)["a"][0] for name in (first, third, fourth)] == ["1", "3", "4"]
    aged(queries, third, 3)
    assert queries.save({"a": "3" * 1_000}) == third
    assert len(list(queries.folder.iterdir())) == 3
    assert sum(path.stat().st_size for path in queries.folder.iterdir()) <= limits["most_bytes"]


def test_one_query_has_a_bounded_length(tmp_path: Path) -> None:
    queries = SavedQueries(folder=tmp_path / "saved", most=10, most_bytes=10**6)
    with pytest.raises(RefusedError) as refused:
        queries.save({"a": "x" * LONGEST})
    assert refused.value.status == 413
    assert not queries.folder.exists()


def test_one_client_cannot_push_out_the_queries_of_others(
    catalogue: Catalogue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sfumato.serve.pxweb.saved.MOST_NEW", 2)
    proxied = ProxyHeadersMiddleware(make_app(catalogue, Settings(state=tmp_path / "state")), ["127.0.0.1"])

    def save(codes: list[str], client: str = "192.0.2.1") -> httpx.Response:
        selection = {"selection": [{"variableCode": "region", "valueCodes": codes}]}
        body = {"tableId": "people", "selection": selection}
        return asked.post("/api/v2/savedqueries", json=body, headers={"X-Forwarded-For": client})

    with asking(proxied) as asked:
        first = save(["N"])
        assert [first.status_code, save(["E"]).status_code] == [201, 201]
        refused = save(["N", "E"])
        assert refused.status_code == 429
        assert int(refused.headers["retry-after"]) > 0
        assert "an hour" in refused.json()["detail"]
        assert save(["N"]).json() == first.json(), "what is kept already takes no room"
        assert save(["N", "E"], "192.0.2.2").status_code == 201, "others may"
