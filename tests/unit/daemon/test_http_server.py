import gzip
import http.client
import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partialmethod
from http.server import ThreadingHTTPServer

import pytest

from ingestd.daemon import http_server
from ingestd.daemon.http_server import HttpServer, page
from ingestd.daemon.status import Status
from ingestd.daemon.watchdog import STUCK_SECONDS
from ingestd.errors import ConfigError, SourceError
from ingestd.ingest.batch_events import BatchSummary, TableCommit
from ingestd.ingest.values.counts import Counts
from ingestd.metrics_page import MetricsPage, Scrape
from tests.support.clock import Clock

PATHS = ("/metrics", "/livez", "/readyz", "/status")


@pytest.fixture(autouse=True)
def quick_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server looks at once whether it is to end, and not twice a second."""
    serve = partialmethod(ThreadingHTTPServer.serve_forever, 0.02)
    monkeypatch.setattr(http_server._Server, "serve_forever", serve)


@pytest.fixture
def clock() -> Clock:
    return Clock(0.0)


@pytest.fixture
def status(clock: Clock) -> Status:
    return Status("shop", "1.2.3", ["s"], clock, clock)


@pytest.fixture
def server(status: Status) -> Iterator[HttpServer]:
    server = HttpServer("127.0.0.1:0", status)
    server.start()
    yield server
    server.stop()


def ask(server: HttpServer, path: str, method: str = "GET") -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection(server.address, timeout=60)
    connection.request(method, path)
    return connection.getresponse()


def test_metrics_are_served_in_prometheus_text_format(server: HttpServer) -> None:
    answer = ask(server, "/metrics")
    assert answer.status == 200
    assert answer.headers["Content-Type"].startswith("text/plain")
    assert b"# TYPE ingestd_rows_written_total counter" in answer.read()


def test_metrics_are_served_as_the_client_accepts_them(server: HttpServer) -> None:
    wanted = {"Accept": "application/openmetrics-text; version=1.0.0", "Accept-Encoding": "gzip"}
    connection = http.client.HTTPConnection(server.address, timeout=60)
    connection.request("GET", "/metrics", headers=wanted)
    answer = connection.getresponse()
    assert answer.headers["Content-Type"].startswith("application/openmetrics-text")
    assert answer.headers["Content-Encoding"] == "gzip"
    body = gzip.decompress(answer.read())
    assert b"# TYPE ingestd_rows_written counter" in body
    assert body.endswith(b"# EOF\n")


def test_livez_fails_only_when_the_loop_is_stuck(
    server: HttpServer, status: Status, clock: Clock
) -> None:
    status.failed(SourceError("x"))
    status.enter("backoff")
    assert ask(server, "/livez").status == 200
    clock.now += STUCK_SECONDS + 1
    assert ask(server, "/livez").status == 503


def test_readyz_follows_the_query(server: HttpServer, status: Status) -> None:
    assert ask(server, "/readyz").status == 503
    status.source_answered("s", {})
    status.enter("running")
    assert ask(server, "/readyz").status == 503
    status.query_idled()
    assert ask(server, "/readyz").status == 200


def test_status_is_json(server: HttpServer) -> None:
    answer = ask(server, "/status?pretty")
    assert answer.headers["Content-Type"] == "application/json"
    assert json.loads(answer.read())["version"] == "1.2.3"


def test_the_page_for_people_lists_the_others(server: HttpServer) -> None:
    body = ask(server, "/").read().decode()
    for path in PATHS:
        assert f'href="{path}"' in body


def test_the_page_for_people_shows_names_as_text(status: Status) -> None:
    commit = TableCommit("db.<script>", "committed", 1, 1, 0.1)
    status.batch_finished(BatchSummary("1", {}, (commit,), Counts()))
    status.failed(SourceError("<b>bad</b>"))
    body = page("/", status).body.decode()
    assert "db.&lt;script&gt;" in body
    assert "&lt;b&gt;bad&lt;/b&gt;" in body
    assert "<script>" not in body
    assert "<b>bad" not in body


@pytest.mark.parametrize("path", ["/nothing", "/../etc/passwd", "/metrics/x"])
def test_other_paths_are_not_found_and_say_what_there_is(server: HttpServer, path: str) -> None:
    answer = ask(server, path)
    assert answer.status == 404
    assert b"/readyz" in answer.read()


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_nothing_can_be_done_but_reading(server: HttpServer, method: str) -> None:
    assert ask(server, "/status", method).status == 501


def test_head_has_no_body(server: HttpServer) -> None:
    answer = ask(server, "/status", "HEAD")
    assert answer.status == 200
    assert int(answer.headers["Content-Length"]) > 0
    assert answer.read() == b""


def test_pages_may_load_nothing_from_elsewhere(server: HttpServer) -> None:
    answer = ask(server, "/")
    policy = answer.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none';")
    assert set(re.findall(r"'[^']*'|\w+:", policy)) == {"'none'", "'self'"}
    body = answer.read().decode()
    assert not re.search(r"https?://| style=| on\w+=|<script>", body)


@pytest.mark.parametrize(("path", "kind"), [("/page.css", "text/css"), ("/page.js", "text/java")])
def test_the_page_brings_its_own_files(server: HttpServer, path: str, kind: str) -> None:
    assert path in ask(server, "/").read().decode()
    answer = ask(server, path)
    assert answer.status == 200
    assert answer.headers["Content-Type"].startswith(kind)
    assert answer.read()


def connected(server: HttpServer, sent: bytes = b"") -> socket.socket:
    host, _, port = server.address.rpartition(":")
    client = socket.create_connection((host, int(port)), 60)
    client.sendall(sent)
    return client


@pytest.mark.parametrize("sent", [b"", b"GET /livez HT"])
def test_two_hundred_unfinished_requests_shut_no_probe_out(
    server: HttpServer, sent: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_server, "_FIRST_BYTE_SECONDS", 600)  # none ends by itself
    monkeypatch.setattr(http_server, "_REQUEST_SECONDS", 600)
    with ExitStack() as clients:
        for _ in range(200):
            clients.enter_context(connected(server, sent))
        for path, code in (("/livez", 200), ("/readyz", 503), ("/metrics", 200)):
            assert ask(server, path).status == code  # at the first try
        end = time.monotonic() + 120
        while _serving() > http_server._MAX_WAITING + 3:  # those that gave way are ending
            assert time.monotonic() < end
            time.sleep(0.02)


def _serving() -> int:
    """Threads that serve a connection."""
    return sum("process_request" in one.name for one in threading.enumerate())


def test_clients_that_do_not_read_their_page_shut_no_other_out(
    server: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = Scrape("text/plain", None, b"x" * (64 << 20))
    monkeypatch.setattr(MetricsPage, "scrape", lambda *_: large)
    monkeypatch.setattr(http_server, "_REQUEST_SECONDS", 600)
    with ExitStack() as clients:
        for _ in range(3 * http_server._MAX_PAGES):
            client = clients.enter_context(connected(server, b"GET /metrics HTTP/1.0\r\n\r\n"))
            assert client.recv(1) == b"H"
        assert ask(server, "/livez").status == 200
        assert ask(server, "/status").status == 200


@pytest.mark.parametrize(
    ("host", "code"),
    [
        ("localhost:8080", 200),
        ("127.0.0.1", 200),
        ("[::1]:8080", 200),
        ("LOCALHOST", 200),
        ("evil.example:8080", 421),
        ("localhost.evil.example", 421),
        ("192.0.2.1", 421),
        ("[::1", 200),
        ("", 200),
    ],
)
def test_a_loopback_address_answers_no_page_of_another_site(
    server: HttpServer, host: str, code: int
) -> None:
    """A browser whose page of another site resolves to this machine sends that site's name."""
    connection = http.client.HTTPConnection(server.address, timeout=60)
    connection.request("GET", "/status", headers={"Host": host})
    assert connection.getresponse().status == code


def test_pages_are_shown_in_no_frame(server: HttpServer) -> None:
    assert "frame-ancestors 'none'" in ask(server, "/").headers["Content-Security-Policy"]


def test_an_address_that_is_taken_is_a_fault_of_the_configuration(
    server: HttpServer, status: Status
) -> None:
    with pytest.raises(ConfigError, match=r"http\.listen: cannot listen on 127\.0\.0\.1:\d+"):
        HttpServer(server.address, status)


def test_an_address_that_does_not_exist_is_a_fault_of_the_configuration(status: Status) -> None:
    for address in ("192.0.2.1:0", "no..host:0"):
        with pytest.raises(ConfigError, match=r"http\.listen"):
            HttpServer(address, status)
