"""What those who run a server can watch: numbers by route, and traces that tell nothing of what was asked."""

import re
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from time import time
from typing import Any

import httpx
import pytest

from sfumato.errors import SfumatoError
from sfumato.serve.app import make_app
from sfumato.serve.core import traces
from sfumato.serve.core.access import Settings
from sfumato.serve.core.catalogue import Catalogue
from tests.serve import patient
from tests.serve.in_thread import asking
from tests.serve.running import serving

DATA = "/api/v2/tables/jobs_by_place/data"
_LINE = re.compile(r"[a-z_]+(\{[a-z]+=\"[^\"\n]*\"(,[a-z]+=\"[^\"\n]*\")*\})? [0-9.e+-]+")


def numbers(text: str) -> dict[str, float]:
    """The lines, each of which has to be one that Prometheus reads."""
    lines = [line for line in text.splitlines() if not line.startswith("# ")]
    assert all(_LINE.fullmatch(line) for line in lines)
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines}


@pytest.fixture
def client(catalogue: Catalogue, tmp_path: Path) -> Iterator[httpx.Client]:
    with asking(make_app(catalogue, Settings(state=tmp_path, metrics=True, calls=0))) as found:
        yield found


def test_answers_are_counted_by_route_and_status_and_never_by_what_was_asked(client: httpx.Client) -> None:
    assert client.get(DATA).status_code == 200
    client.head(DATA)
    client.get("/api/v2/tables/none/data?valueCodes[secret]=x")
    client.get("/wp-login.php")
    client.request("BREW", "/coffee")
    text = client.get("/metrics").text
    found = numbers(text)
    route = "/api/v2/tables/{id}/data"
    assert found[f'sfumato_requests_total{{method="GET",route="{route}",status="200"}}'] == 1
    assert found[f'sfumato_requests_total{{method="HEAD",route="{route}",status="200"}}'] == 1
    assert found[f'sfumato_requests_total{{method="GET",route="{route}",status="404"}}'] == 1
    assert found[f'sfumato_request_seconds_count{{route="{route}"}}'] == 3
    assert found[f'sfumato_request_seconds_bucket{{route="{route}",le="+Inf"}}'] == 3
    assert not any(word in text for word in ("secret", "wp-login", "jobs_by_place", "BREW", "coffee"))
    assert 'method="other",route="none"' in text
    assert found["sfumato_requests_running"] == 0
    assert found["sfumato_tables"] >= 10
    assert found["process_resident_memory_bytes"] > 1_000_000


def test_numbers_never_fall_and_say_what_each_is(client: httpx.Client) -> None:
    before = numbers(client.get("/metrics").text)
    client.get("/health")
    text = client.get("/metrics").text
    assert all(numbers(text)[name] >= value for name, value in before.items() if "_total" in name or "_count" in name)
    names = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}
    assert names == {line.split()[2] for line in text.splitlines() if line.startswith("# HELP")}


def test_when_tables_were_opened_is_told_to_the_second(catalogue: Catalogue, tmp_path: Path) -> None:
    before = time()
    with asking(make_app(catalogue, Settings(state=tmp_path, metrics=True))) as client:
        opened = numbers(client.get("/metrics").text)["sfumato_tables_opened_seconds"]
    assert before - 1 <= opened <= time() + 1


def test_without_the_option_there_are_no_numbers(catalogue: Catalogue, tmp_path: Path) -> None:
    with asking(make_app(catalogue, Settings(state=tmp_path))) as client:
        assert client.get("/metrics").status_code == 404
        assert "/metrics" not in client.get("/openapi.json").text


def test_every_request_is_a_span_below_that_of_its_caller_and_tells_little(
    catalogue: Catalogue, tmp_path: Path
) -> None:
    pytest.importorskip("opentelemetry.sdk", reason="the extra sfumato[telemetry] is not installed")
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    kept, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    app = make_app(catalogue, Settings(state=tmp_path, calls=0), traces=provider)

    @app.get("/broken")
    async def broken() -> Any:
        raise RuntimeError("confidential")

    caller = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    with asking(app) as client:
        code = catalogue["jobs_by_place"].dimensions[0].codes[0]
        client.get(f"{DATA}?valueCodes[place]={code}", headers={"traceparent": caller})
        client.get("/broken", headers={"Authorization": "Bearer sfumato_secret"})
    spans = {span.name: span for span in kept.get_finished_spans()}
    first = spans["GET /api/v2/tables/{id}/data"]
    assert f"{first.context.trace_id:032x}" == caller.split("-")[1]
    assert f"{first.parent.span_id:016x}" == caller.split("-")[2]
    assert dict(first.attributes) == {
        "http.request.method": "GET",
        "http.route": "/api/v2/tables/{id}/data",
        "http.response.status_code": 200,
        "sfumato.table": "jobs_by_place",
        "sfumato.cells": len(catalogue["jobs_by_place"].metrics),
    }
    told = "".join(span.to_json() for span in spans.values())
    assert not any(word in told for word in (code, "confidential", "secret", "127.0.0.1"))
    assert spans["GET /broken"].status.status_code.name == "ERROR"


def test_traces_without_the_extra_are_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(SfumatoError, match=r"pip install 'sfumato\[telemetry\]'"):
        traces.tracer_provider()


@pytest.mark.slow
def test_a_server_as_it_is_started_answers_models_shows_numbers_and_sends_traces(
    bundles: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="sfumato[telemetry] is not installed")
    from tests.serve.test_mcp import call

    got: list[tuple[str, bytes]] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append((self.path, self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Collector) as collector:
        thread = Thread(target=collector.serve_forever)
        thread.start()
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{collector.server_port}")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "none")
        options = ("--mcp", "--metrics", "--traces", "--state", tmp_path / "state")
        with serving(bundles["jobs"], *options) as server:
            given = call(f"{server.url}/mcp", "get_data", table="jobs_by_place", codes={"place": ["top(1)"]})
            assert given["cells"]
            assert 'route="/mcp",status="200"' in patient.get(f"{server.url}/metrics").text
        collector.shutdown()
        thread.join()
    assert {path for path, _ in got} == {"/v1/traces"}
    sent = b"".join(content for _, content in got)
    assert b"POST /mcp" in sent
    assert b"jobs_by_place" in sent
