"""A collector of OpenTelemetry: takes OTLP over HTTP on a free port and keeps what it receives."""

import gzip
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from typing import ClassVar

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.support.http_serving import HttpServing

PROTOBUF = "application/x-protobuf"


class OtlpReceiver(HttpServing):
    """Spans and resources that were sent to `/v1/traces`, in the order of their arrival."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.resources: list[dict[str, object]] = []
        self.headers: list[dict[str, str]] = []
        self._arrived = threading.Condition()
        super().__init__(type("Handler", (_Handler,), {"receiver": self}))

    def take(self, request: ExportTraceServiceRequest, headers: dict[str, str]) -> None:
        """Keep a request."""
        with self._arrived:
            for resource_span in request.resource_spans:
                self.resources.append(values(resource_span.resource.attributes))
                self.spans.extend(
                    span for scope in resource_span.scope_spans for span in scope.spans
                )
            self.headers.append(headers)
            self._arrived.notify_all()

    def wait_for(self, condition: Callable[[list[Span]], bool], seconds: float = 180) -> None:
        """Return when the spans are as they should be."""
        end = time.monotonic() + seconds
        with self._arrived:
            while not condition(self.spans):
                assert self._arrived.wait(max(end - time.monotonic(), 0)), self.spans

    def children(self, parent: Span) -> list[Span]:
        """Spans right below one."""
        return [span for span in self.spans if span.parent_span_id == parent.span_id]

    def named(self, name: str) -> list[Span]:
        """All spans of a name."""
        return [span for span in self.spans if span.name == name]


class _Handler(BaseHTTPRequestHandler):
    receiver: ClassVar[OtlpReceiver]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        known = self.path == "/v1/traces" and self.headers["Content-Type"] == PROTOBUF
        if known:
            request = ExportTraceServiceRequest.FromString(body)
            self.receiver.take(request, {k.lower(): v for k, v in self.headers.items()})
        answer = ExportTraceServiceResponse().SerializeToString()
        self.send_response(200 if known else 404)
        self.send_header("Content-Type", PROTOBUF)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: object) -> None:
        pass


def values(attributes: "list[KeyValue]") -> dict[str, object]:
    """Attributes as Python values."""
    return {attribute.key: _value(attribute.value) for attribute in attributes}


def _value(value: AnyValue) -> object:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(one) for one in value.array_value.values]
    return getattr(value, str(kind))
