"""What those who run the server watch, as Prometheus reads it: numbers of answers, how long they took, who waits."""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from time import perf_counter, process_time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sfumato.serve.core.http import method_sent

PATH = "/metrics"
MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Bounds of the classes of how long answers take."""
_METHODS = ("GET", "HEAD", "POST", "OPTIONS")
_NO_ANSWER = 499
Gauges = Callable[[], Mapping[str, tuple[str, float]]]
"""By name what it is, and how much of it there is now."""


class Metrics:
    """Numbers since the server began. Labels are routes and never what was asked, so that there are few of them."""

    def __init__(self, gauges: Gauges) -> None:
        self._gauges = gauges
        self._answers: Counter[tuple[str, str, int]] = Counter()
        self._classes: dict[str, list[int]] = {}
        self._seconds: Counter[str] = Counter()
        self.running = 0

    def add(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count an answer."""
        self._answers[method if method in _METHODS else "other", route, status] += 1
        classes = self._classes.setdefault(route, [0] * (len(SECONDS) + 1))
        classes[bisect_left(SECONDS, seconds)] += 1
        self._seconds[route] += seconds  # type: ignore[assignment]  # counters count parts too

    def text(self) -> str:
        """All numbers, a line each."""
        return "".join(f"{line}\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        yield from _head("sfumato_requests_total", "counter", "Answers by route and status")
        for (method, route, status), number in sorted(self._answers.items()):
            yield f'sfumato_requests_total{{method="{method}",route="{_quoted(route)}",status="{status}"}} {number}'
        yield from _head("sfumato_request_seconds", "histogram", "Seconds until the answer is begun, waiting included")
        for route, classes in sorted(self._classes.items()):
            so_far, name = 0, _quoted(route)
            for bound, number in zip((*SECONDS, "+Inf"), classes, strict=True):
                so_far += number
                yield f'sfumato_request_seconds_bucket{{route="{name}",le="{bound}"}} {so_far}'
            yield f'sfumato_request_seconds_sum{{route="{name}"}} {self._seconds[route]:.6f}'
            yield f'sfumato_request_seconds_count{{route="{name}"}} {so_far}'
        gauges = {"sfumato_requests_running": ("Requests that are worked on or wait", self.running), **self._gauges()}
        for name, (said, value) in gauges.items():
            yield from _head(name, "gauge", said)
            yield f"{name} {value:.15g}"  # a time in seconds has ten digits before the point
        yield from _head("process_cpu_seconds_total", "counter", "Processor time of the server")
        yield f"process_cpu_seconds_total {process_time():.3f}"
        memory = Path("/proc/self/statm")
        if memory.exists():
            yield from _head("process_resident_memory_bytes", "gauge", "Memory of the server")
            yield f"process_resident_memory_bytes {int(memory.read_text(encoding='ascii').split()[1]) * _PAGE}"


_PAGE = 4_096
_PART = re.compile(r"\{(\w+)[^}]*\}")


class Measured:
    """An application whose answers are counted."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and count its answer."""
        if scope["type"] != "http" or scope["path"] == PATH:
            await self._app(scope, receive, send)
            return
        begun, status, seconds = perf_counter(), _NO_ANSWER, None

        async def watched(message: Message) -> None:
            nonlocal status, seconds
            if message["type"] == "http.response.start":
                status, seconds = message["status"], perf_counter() - begun
            await send(message)

        self._metrics.running += 1
        try:
            await self._app(scope, receive, watched)
        finally:
            self._metrics.running -= 1
            took = perf_counter() - begun if seconds is None else seconds
            self._metrics.add(method_sent(scope), route_of(scope), status, took)


def route_of(scope: Scope) -> str:
    """The route that answered, without what stood in its place: few, whatever is asked."""
    template: str | None = getattr(scope.get("route"), "path", None)
    if template is None:
        return "none"
    # A route knows its path below the interface it belongs to; what is before it is the same in every request.
    own = _PART.sub(lambda part: str(scope.get("path_params", {}).get(part[1], "")), template)
    path: str = scope["path"]
    return path.removesuffix(own) + template if path.endswith(own) else template


def _head(name: str, kind: str, said: str) -> Iterator[str]:
    yield f"# HELP {name} {said}"
    yield f"# TYPE {name} {kind}"


def _quoted(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
