"""Spans reach a real receiver of OTLP over HTTP, as protobuf, with what they hold."""

import socket
import threading
import time
from collections.abc import Iterator

import pytest

from ingestd.telemetry.otlp import OtlpSink
from ingestd.telemetry.spans import Span, SpanError
from tests.support.otlp_receiver import OtlpReceiver, values

BEGUN = 1_700_000_000_000_000_000
CHILD = Span("stages", BEGUN + 5, BEGUN + 10, {"ingestd.table": "db.t"})


@pytest.fixture
def receiver() -> Iterator[OtlpReceiver]:
    with OtlpReceiver() as one:
        yield one


def batch(error: SpanError | None = None) -> Span:
    attributes = {"ingestd.batch.id": 7, "ingestd.batch.ranges": ("s/t/0:1-3", "s/t/1:0-2")}
    return Span("batch", BEGUN, BEGUN + 20, attributes, (CHILD,), error)


def test_a_span_and_its_children_arrive_with_times_and_attributes(receiver: OtlpReceiver) -> None:
    sink = OtlpSink("shop", "1.2", receiver.endpoint + "/")
    sink.take(batch())
    sink.take(batch())
    sink.close()
    first, second = receiver.named("batch")
    assert first.trace_id != second.trace_id
    assert not first.parent_span_id
    assert (first.start_time_unix_nano, first.end_time_unix_nano) == (BEGUN, BEGUN + 20)
    assert values(first.attributes) == {
        "ingestd.batch.id": 7,
        "ingestd.batch.ranges": ["s/t/0:1-3", "s/t/1:0-2"],
    }
    [child] = receiver.children(first)
    assert child.trace_id == first.trace_id
    assert (child.name, child.start_time_unix_nano) == ("stages", BEGUN + 5)
    assert values(child.attributes) == {"ingestd.table": "db.t"}
    assert not first.events


def test_the_resource_is_sent_once_for_all_spans(receiver: OtlpReceiver) -> None:
    sink = OtlpSink("shop", "1.2", receiver.endpoint)
    sink.take(batch())
    sink.close()
    [resource] = receiver.resources
    own = {"service.name": "ingestd", "service.version": "1.2", "ingestd.pipeline": "shop"}
    assert own.items() <= resource.items()


def test_an_error_is_a_status_and_an_event(receiver: OtlpReceiver) -> None:
    sink = OtlpSink("shop", "1.2", receiver.endpoint)
    sink.take(batch(SpanError("SourceError", "no broker")))
    sink.close()
    [span] = receiver.named("batch")
    assert (span.status.code, span.status.message) == (2, "SourceError: no broker")
    [event] = span.events
    assert event.name == "exception"
    assert values(event.attributes) == {
        "exception.type": "SourceError",
        "exception.message": "no broker",
    }


def test_the_environment_says_what_the_configuration_does_not(
    receiver: OtlpReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.endpoint)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=lake")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "orders-to-lake")
    sink = OtlpSink("shop", "1.2", None)
    sink.take(batch())
    sink.close()
    assert receiver.resources[0]["service.name"] == "orders-to-lake"
    assert receiver.headers[0]["x-tenant"] == "lake"
    assert receiver.headers[0]["content-encoding"] == "gzip"
    assert len(receiver.named("batch")) == 1


@pytest.mark.parametrize(
    ("name", "value"), [("OTEL_SDK_DISABLED", "true"), ("OTEL_TRACES_SAMPLER", "always_off")]
)
def test_the_environment_may_silence_it(
    receiver: OtlpReceiver, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    sink = OtlpSink("shop", "1.2", receiver.endpoint)
    sink.take(batch())
    sink.close()
    assert receiver.spans == []


def test_a_collector_that_never_answers_holds_nobody_up(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "2")
    threads = set(threading.enumerate())
    with socket.create_server(("127.0.0.1", 0)) as silent:
        sink = OtlpSink("shop", "1.2", f"http://127.0.0.1:{silent.getsockname()[1]}")
        begin = time.monotonic()
        for _ in range(10_000):
            sink.take(batch())
        queued = time.monotonic()
        sink.close()
        closed = time.monotonic()
    for thread in set(threading.enumerate()) - threads:
        thread.join(60)  # it would draw its pauses from `random` while other tests run
    assert queued - begin < 60
    assert closed - queued < 60
