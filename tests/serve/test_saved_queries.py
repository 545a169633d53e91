"""Saved queries are small, in one spelling, and never fill the disk."""

import os
from pathlib import Path
from typing import Any

import httpx
import pytest

from sfumato.serve.core.errors import RefusedError
from sfumato.serve.pxweb.saved import LONGEST, SavedQueries
from tests.serve import patient
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
