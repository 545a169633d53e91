"""A trace of every request, for offices that follow requests through several systems with OpenTelemetry.

The SDK is an extra. What is told of a request is its route, its status and which table it was about: never the codes
that were asked for, a figure or a token.
"""

from typing import TYPE_CHECKING

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sfumato.errors import SfumatoError
from sfumato.serve.core.audit import audited
from sfumato.serve.core.http import method_sent
from sfumato.serve.core.metrics import route_of

if TYPE_CHECKING:  # only a name for types
    from opentelemetry.trace import TracerProvider

NAME = "sfumato"
_FAULT = 500


class Traced:
    """An application whose requests are spans, below the span that the caller names (`traceparent`)."""

    def __init__(self, app: ASGIApp, *, provider: "TracerProvider | None" = None) -> None:
        from opentelemetry import trace  # noqa: PLC0415 — an extra, imported where it was asked for

        self._app, self._tracer = app, trace.get_tracer(NAME, tracer_provider=provider)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on within a span of its own."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        from opentelemetry.propagate import extract  # noqa: PLC0415
        from opentelemetry.trace import SpanKind, StatusCode  # noqa: PLC0415

        caller = {name.decode("latin-1"): text.decode("latin-1") for name, text in scope["headers"] if name in _CALLER}
        method = method_sent(scope)
        with self._tracer.start_as_current_span(method, extract(caller), SpanKind.SERVER) as span:

            async def watched(message: Message) -> None:
                if message["type"] == "http.response.start":
                    span.set_attribute("http.response.status_code", message["status"])
                    if message["status"] >= _FAULT:
                        span.set_status(StatusCode.ERROR)
                await send(message)

            try:
                await self._app(scope, receive, watched)
            finally:
                route, asked = route_of(scope), audited(scope)
                span.update_name(f"{method} {route}")
                span.set_attributes({"http.request.method": method, "http.route": route})
                if asked is not None:
                    span.set_attributes({"sfumato.table": asked.table, "sfumato.cells": asked.cells})


_CALLER = (b"traceparent", b"tracestate")


def tracer_provider() -> "TracerProvider":
    """What sends traces to where the environment says (`OTEL_EXPORTER_OTLP_ENDPOINT` and its kin)."""
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
    except ImportError as error:
        raise SfumatoError(
            "--traces",
            expected="the extra that sends traces",
            found=f"no module {error.name}",
            do="pip install 'sfumato[telemetry]'",
        ) from error
    provider = TracerProvider(resource=Resource.create({"service.name": NAME}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider
