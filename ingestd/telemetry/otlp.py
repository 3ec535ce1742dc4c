"""Send spans to an OpenTelemetry collector by OTLP over HTTP, in the background.

Imported only if traces are configured, because the packages are an extra. Everything else is
configured by the standard environment variables (`OTEL_EXPORTER_OTLP_*`, `OTEL_SERVICE_NAME`,
`OTEL_RESOURCE_ATTRIBUTES`, `OTEL_TRACES_SAMPLER`, `OTEL_BSP_*`, `OTEL_SDK_DISABLED`).

Specification: https://opentelemetry.io/docs/specs/otlp/#otlphttp
"""

import threading

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Status, StatusCode, set_span_in_context

from ingestd.telemetry.spans import Span

_SERVICE = "ingestd"
_UNNAMED = "unknown_service"
_PATH = "/v1/traces"
_CLOSE_SECONDS = 5.0


class OtlpSink:
    """A sink that sends the spans of one pipeline to one collector.

    `endpoint` is the base URL, such as `http://collector:4318`; if it is None, the environment
    determines it. Spans that cannot be sent are dropped after some retries; a batch never waits for
    them.
    """

    def __init__(self, pipeline: str, version: str, endpoint: str | None) -> None:
        url = None if endpoint is None else endpoint.rstrip("/") + _PATH
        self._provider = TracerProvider(
            resource=_resource(pipeline, version), shutdown_on_exit=False
        )
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=url)))
        self._tracer = self._provider.get_tracer(_SERVICE, version)

    def take(self, span: Span) -> None:
        """Queue a finished span and its children for sending."""
        self._queue(span, Context())

    def close(self) -> None:
        """Send the queued spans for at most 5 seconds, then stop; the remaining spans are lost."""
        last = threading.Thread(target=self._provider.shutdown, name="traces", daemon=True)
        last.start()
        last.join(_CLOSE_SECONDS)

    def _queue(self, span: Span, parent: Context) -> None:
        otel_span = self._tracer.start_span(
            span.name, context=parent, start_time=span.begun, attributes=span.attributes
        )
        inside = set_span_in_context(otel_span, parent)
        for child in span.children:
            self._queue(child, inside)
        if span.error is not None:
            what = {"exception.type": span.error.kind, "exception.message": span.error.message}
            otel_span.add_event("exception", what, timestamp=span.ended)
            otel_span.set_status(
                Status(StatusCode.ERROR, f"{span.error.kind}: {span.error.message}")
            )
        otel_span.end(end_time=span.ended)


def _resource(pipeline: str, version: str) -> Resource:
    """Return the resource of all spans.

    The service is named `ingestd` unless the environment names it.
    """
    resource = Resource.create()
    own = {"service.version": version, "ingestd.pipeline": pipeline}
    if str(resource.attributes.get(SERVICE_NAME, _UNNAMED)).startswith(_UNNAMED):
        own[SERVICE_NAME] = _SERVICE
    return resource.merge(Resource(own))
