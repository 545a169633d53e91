"""Ad-hoc tables over records: the answers of a live table, in every format, to those who may ask."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import permutations, product
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.live import GuardedSession, open_guarded
from sfumato.release import load
from tests.serve import patient
from tests.serve.live_serving import LiveServer, live_serving, of_businesses, serving_again

TURNOVER = {"statistic": "total", "measure": "turnover", "by": ["state", "industry"]}


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A server over businesses whose guard lets every cell through, so that tests can ask what they like."""
    with live_serving(of_businesses(tmp_path_factory.mktemp("live") / "business", guard="off")) as server:
        yield server


@pytest.fixture(scope="module")
def live(asked: LiveServer) -> Iterator[GuardedSession]:
    """The same records, asked without a server."""
    with open_guarded(load(asked.release)) as opened:
        yield opened


def rows(answer: httpx.Response, metric: str = "value") -> dict[tuple[str, ...], Any]:
    assert answer.status_code == 200, answer.text
    found = answer.json()
    *by, metrics = (list(found["dimension"][name]["category"]["index"]) for name in found["id"])
    keys = product(*by)
    place = 0 if metric == "value" else metrics.index(metric)  # the value comes first, under a code of its own
    figures = found["value"][place :: len(metrics)]
    return dict(zip(keys, figures, strict=True))


def expected(live: GuardedSession, column: str = "value", **question: Any) -> dict[tuple[str, ...], Any]:
    table = live.ask(**question).to_pylist()
    return {tuple(row[name] for name in question["by"]): row[column] for row in table}


@pytest.mark.parametrize("metric", ["value", "rse", "low", "high"])
def test_an_answer_is_that_of_the_live_table(asked: LiveServer, live: GuardedSession, metric: str) -> None:
    assert rows(asked.ask(TURNOVER), metric) == expected(live, metric, total="turnover", by=["state", "industry"])


def test_means_counts_filters_and_totals_are_answered(asked: LiveServer, live: GuardedSession) -> None:
    where = {"state": ["NSW", "VIC"]}
    mean = {"statistic": "mean", "measure": "profit", "by": ["industry"], "where": where, "totals": True}
    assert rows(asked.ask(mean)) == expected(live, mean="profit", by=["industry"], where=where, totals=True)
    assert rows(asked.ask({"by": ["size"]})) == expected(live, count="records", by=["size"])


def test_a_question_has_one_answer_however_it_is_written(asked: LiveServer) -> None:
    states = ["NSW", "VIC", "QLD"]
    answers = {
        asked.ask(TURNOVER | {"by": list(by), "where": {"state": list(some)}}).content
        for by in permutations(["state", "industry"])
        for some in (states, states[::-1], [*states, "NSW"])
    }
    assert len(answers) == 1


def test_every_format_is_given(asked: LiveServer) -> None:
    kinds = {
        "csv": "text/csv",
        "xlsx": "spreadsheetml",
        "parquet": "parquet",
        "html": "text/html",
        "px": "octet-stream",
    }
    for name, kind in kinds.items():
        answer = asked.ask(TURNOVER, outputFormat=name)
        assert answer.status_code == 200
        assert kind in answer.headers["content-type"]
        assert "no-store" in answer.headers["cache-control"]


def test_nobody_asks_without_a_token(asked: LiveServer) -> None:
    for path in ("/live/tables", "/live/prices"):
        assert patient.post(f"{asked.server.url}{path}", json=TURNOVER).status_code == 401
    for path in ("/live/config", "/live/api/v2/tables", "/live/api/v2/tables/live_records/data"):
        assert patient.get(f"{asked.server.url}{path}").status_code == 401
        with asked.client() as client:
            assert client.get(path).status_code == 200  # and what was given to the analyst is not given on
        assert patient.get(f"{asked.server.url}{path}").status_code == 401
    sent = patient.get(f"{asked.server.url}/live")
    assert (sent.status_code, sent.headers["location"]) == (303, "/sign-in?next=%2Flive")
    public = patient.get(f"{asked.server.v2}/tables").json()["tables"]
    assert not [table["id"] for table in public if table["id"].startswith("live")]


MISTAKES: dict[str, dict[str, Any]] = {
    "no attribute": {"by": []},
    "unknown attribute": {"by": ["town"]},
    "unknown measure": {"by": ["state"], "statistic": "total", "measure": "income"},
    "no measure": {"by": ["state"], "statistic": "total"},
    "a count of a measure": {"by": ["state"], "measure": "turnover"},
    "unknown code": {"by": ["state"], "where": {"state": ["Mars"]}},
    "a filter in capitals": {"by": ["size"], "where": {"State": ["NT"]}},
    "a filter on nothing known": {"by": ["state"], "where": {"town": ["x"]}},
    "no codes": {"by": ["state"], "where": {"state": []}},
    "twice": {"by": ["state", "state"]},
    "sql": {"by": ["state"], "where": {"state": ["NSW' OR 1=1 --"]}},
    "sql in a name": {"by": ["state; drop table x"]},
    "an epsilon": {"by": ["state"], "epsilon": 1},
    "another key": {"by": ["state"], "limit": 5},
    "many": {"by": ["state"], "where": {"state": ["x" * 300]}},
}


@pytest.mark.parametrize("question", MISTAKES.values(), ids=list(MISTAKES))
def test_a_question_that_makes_no_sense_is_refused_in_words(asked: LiveServer, question: dict[str, Any]) -> None:
    for path in ("/live/tables", "/live/prices"):
        answer = asked.ask(question, path)
        assert answer.status_code == 400, answer.text
        assert answer.headers["content-type"] == "application/problem+json"
        assert len(answer.json()["detail"]) < 1_000


@pytest.mark.slow
def test_fifty_clients_get_identical_answers(asked: LiveServer) -> None:
    questions = [TURNOVER, {"by": ["size"]}, {"by": ["state"], "statistic": "mean", "measure": "profit"}]

    def ask(number: int) -> list[bytes]:
        with asked.client() as client:
            turned = questions[number % 3 :] + questions[: number % 3]
            found = {str(q): client.post("/live/tables", json=q) for q in turned}
        assert [answer.status_code for answer in found.values()] == [200] * 3
        return [found[str(q)].content for q in questions]

    with ThreadPoolExecutor(50) as pool:
        first, *others = pool.map(ask, range(50))
    assert all(other == first for other in others)


def test_pxwebapi_asks_any_attributes(asked: LiveServer, live: GuardedSession) -> None:
    def data(**codes: str) -> dict[tuple[str, ...], Any]:
        selected = {f"valueCodes[{name}]": text for name, text in codes.items()}
        with asked.client() as client:
            return rows(client.get("/live/api/v2/tables/live_total_turnover/data", params=selected))

    by_state = expected(live, total="turnover", by=["state"], totals=True)
    assert data(state="*", contents="value") == by_state
    assert data(state="NSW,total", contents="value") == {key: by_state[key] for key in (("NSW",), ("total",))}
    assert data(contents="value") == {(): by_state["total",]}
    crossed = expected(live, total="turnover", by=["state", "industry"], where={"state": ["NSW"]})
    industries = ",".join(industry for _, industry in crossed)
    assert data(state="NSW", industry=industries, contents="value") == crossed
    total = data(state="total", industry=industries, contents="value")
    assert total == {
        ("total", key): value for (key,), value in expected(live, total="turnover", by=["industry"]).items()
    }


def test_the_form_works_without_scripts(asked: LiveServer, live: GuardedSession) -> None:
    with asked.client() as client:
        empty = client.get("/live")
        asking = {"what": "total:turnover", "by": ["state"], "where[state]": ["NSW", "VIC"]}
        shown = client.get("/live", params=asking, follow_redirects=True)
        wrong = client.get("/live", params={"what": "total:nothing", "by": "state"}, follow_redirects=True)
    assert "Tick at least one attribute" in empty.text
    values = expected(live, total="turnover", by=["state"], where={"state": ["NSW", "VIC"]})
    assert all(f"{value:,}" in shown.text for value in values.values())
    assert "What was done to these numbers" in shown.text
    assert (wrong.status_code, "This has no answer" in wrong.text) == (400, True)


def test_what_is_asked_is_in_the_log_and_values_are_not(asked: LiveServer) -> None:
    question = TURNOVER | {"where": {"state": ["TAS"]}}
    values = [value for value in rows(asked.ask(question)).values() if value]
    log = (asked.release.parent / "state/audit/users.jsonl").read_text()
    assert '"where":{"state":["TAS"]}' in log
    assert not [value for value in values if value > 1_000 and str(value) in log]


def test_a_price_is_logged_with_what_it_was_asked_for(asked: LiveServer) -> None:
    price = asked.ask(TURNOVER | {"where": {"state": ["ACT"]}, "totals": True}, "/live/prices")
    assert price.status_code == 200
    *_, line = (asked.release.parent / "state/audit/users.jsonl").read_text().splitlines()
    entry = json.loads(line)
    assert (entry["path"], entry["user"], entry["cells"]) == ("/live/prices", "ann", price.json()["cells"])
    assert entry["asked"] == {
        "total": "turnover",
        "by": ["state", "industry"],
        "where": {"state": ["ACT"]},
        "totals": True,
    }


def test_an_answer_names_no_address_that_leads_nowhere(asked: LiveServer) -> None:
    answer = asked.ask(TURNOVER).json()
    assert "href" not in str(answer)
    with asked.client() as client:
        described = client.get("/live/api/v2/tables/live_total_turnover/data", params={"valueCodes[state]": "*"}).json()
        assert client.get(described["href"]).status_code == 200
        assert described["dimension"]["state"]["extension"]["codelists"] == []


@pytest.mark.slow
def test_a_cell_that_differs_by_one_unit_is_withheld(tmp_path: Path) -> None:
    from tests.live.test_live_tables import one_less

    release = of_businesses(tmp_path / "business")
    where = one_less(release.parent)
    profit = {"statistic": "total", "measure": "profit", "by": ["state"]}
    with live_serving(release) as server:
        first = rows(server.ask(profit | {"where": {"state": where["state"]}}))
        assert None not in first.values()
        assert rows(server.ask(profit | {"where": where})) == dict.fromkeys(first)
        assert rows(server.ask(profit | {"where": {"state": where["state"]}})) == first


@pytest.mark.slow
def test_a_cell_that_differs_by_one_unit_is_marked_in_every_format_and_stays_so(tmp_path: Path) -> None:
    from tests.live.test_live_tables import one_less

    release = of_businesses(tmp_path / "business", guard="flag")
    where = one_less(release.parent)
    profit = {"statistic": "total", "measure": "profit", "by": ["state"]}
    before, after = profit | {"where": {"state": where["state"]}}, profit | {"where": where}
    formats = ("json-stat2", "csv", "xlsx", "html", "px", "json-px", "parquet")
    with live_serving(release) as server:
        first = {name: server.ask(before, outputFormat=name).content for name in formats}
        marked = {name: server.ask(after, outputFormat=name).content for name in formats}
    assert "differs by few units" not in first["html"].decode()
    assert "few units apart" in marked["csv"].decode()
    assert "few units apart" in str(pq.read_table(pa.BufferReader(marked["parquet"]))["status"].to_pylist())
    for name in ("html", "px", "json-px", "json-stat2"):
        meaning = "differs by few units, or by none, from a cell of this answer or one given before"
        assert meaning in marked[name].decode(), name
    assert "d" in json.loads(marked["json-stat2"])["status"]["0"].split()
    assert "1 cell differs by few units" in str(json.loads(marked["json-stat2"])["note"])
    with serving_again(server) as again:
        assert {name: again.ask(before, outputFormat=name).content for name in formats} == first
        assert {name: again.ask(after, outputFormat=name).content for name in formats} == marked


@pytest.mark.slow
def test_pxwebapi_marks_such_a_cell_too(tmp_path: Path) -> None:
    release = of_businesses(tmp_path / "business", guard="flag")
    path = "/live/api/v2/tables/live_total_employees/data"
    # Some industries of a state, which the release publishes, have nearly all their businesses in one class of size.
    codes = dict.fromkeys(("valueCodes[state]", "valueCodes[industry]", "valueCodes[size]"), "*")
    codes |= {"valueCodes[contents]": "value"}

    def asked(server: LiveServer) -> httpx.Response:
        with server.client() as client:
            return client.get(path, params=codes)

    with live_serving(release) as server:
        first = asked(server)
        assert any("d" in symbols.split() for symbols in first.json()["status"].values())
        assert "by few units" in str(first.json()["note"])
    with serving_again(server) as again:
        assert asked(again).content == first.content


def test_a_question_that_takes_too_long_is_stopped_and_the_next_is_answered(live: GuardedSession) -> None:
    from sfumato.engine.limits import TooSlowError, stopped_after

    engine = live.prepared.tables.engine
    endless = "select sum(a.range * b.range) from range(10000000) a, range(10000000) b"
    with pytest.raises(TooSlowError, match=r"within 0\.2 seconds"), stopped_after(engine, 0.2):
        engine.con.execute(endless).fetchall()
    assert live.ask(by=["state", "industry", "size"], count="records").num_rows


@pytest.mark.slow
def test_an_answer_from_confidential_data_is_never_written_in_parts(tmp_path: Path) -> None:
    with live_serving(of_businesses(tmp_path / "business"), "--most-cells", "5") as live, live.client() as client:
        address = "/live/api/v2/tables/live_total_turnover/data"
        for name in ("csv", "json-px"):
            large = client.get(address, params={"valueCodes[state]": "*", "outputFormat": name})
            assert large.status_code == 403, "each part would be a question of its own"
            assert "it may be larger" not in large.json()["detail"]
