"""The way to a collector, where its packages are there and where they are not."""

import logging
import sys
from http.server import BaseHTTPRequestHandler

import pytest

from ingestd import log
from ingestd.errors import ConfigError
from ingestd.log import MASK, JsonFormatter
from ingestd.telemetry.span_exporter import open_sink, secrets_of
from ingestd.telemetry.spans import Span
from tests.support.http_serving import HttpServing
from tests.support.otlp_receiver import OtlpReceiver


def test_it_opens_the_door() -> None:
    with OtlpReceiver() as receiver:
        sink = open_sink("shop", "1", receiver.endpoint)
        sink.take(Span("batch", 1, 2))
        sink.close()
        assert [span.name for span in receiver.spans] == ["batch"]


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("opentelemetry")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "ingestd.telemetry.otlp", raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(ConfigError, match=r"pip install 'ingestd\[otel\]'"):
        open_sink("shop", "1", None)


class Repeating(BaseHTTPRequestHandler):
    """A collector that lets no one in and says with what they came."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(401, f"no: {self.headers['Authorization']} of {self.headers['X-Team']}")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


def test_what_lets_us_in_is_in_no_log_line_whatever_the_collector_answers(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(log, "_secrets", {})
    team = "0123456789abcdef"
    headers = f"authorization=Bearer%20planted-aB3$x,x-team={team}"
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", headers)
    with HttpServing(Repeating) as collector, caplog.at_level(logging.DEBUG):
        sink = open_sink("shop", "1", collector.endpoint)
        sink.take(Span("batch", 1, 2))
        sink.close()
    assert "Bearer planted-aB3$x" in caplog.text  # unformatted: the answer does get to the log
    lines = "".join(JsonFormatter().format(record) for record in caplog.records)
    assert MASK in lines
    assert "planted-aB3" not in lines
    assert team not in lines


@pytest.mark.parametrize(
    ("name", "value", "secrets"),
    [
        ("OTEL_EXPORTER_OTLP_HEADERS", "api-key=abc,x-tenant=lake", {"abc"}),
        ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "authorization=Basic%20YTpi", {"YTpi"}),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://me:p%40ss@collector:4318", {"p%40ss", "p@ss"}),
        ("OTEL_EXPORTER_OTLP_CERTIFICATE", "/etc/a/very/long/path.pem", set()),
        ("OTEL_SERVICE_NAME", "a-name-that-is-rather-long", set()),
    ],
)
def test_secrets_are_distinguished_from_other_values(
    name: str, value: str, secrets: set[str]
) -> None:
    found = set(secrets_of({name: value}, None))
    assert secrets <= found
    assert found == set() or secrets
    assert "lake" not in found


def test_a_password_in_the_configured_address_is_a_secret() -> None:
    assert set(secrets_of({}, "http://me:hunter22@collector:4318")) == {"hunter22"}
    assert set(secrets_of({}, "http://collector:4318")) == set()
    assert set(secrets_of({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://[no-address"}, None)) == set()
