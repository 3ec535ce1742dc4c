"""The pages over TLS, with a token, and for clients that send too much or too slowly."""

import base64
import http.client
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partialmethod
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

from ingestd.daemon import http_server
from ingestd.daemon.http_access import BoundedRequest, HttpAccess
from ingestd.daemon.http_server import HttpServer
from ingestd.daemon.status import Status
from ingestd.errors import ConfigError
from tests.support.certificates import HAS_OPENSSL, Authority

OPEN, GUARDED = ("/livez", "/readyz"), ("/", "/status", "/metrics", "/page.js", "/nothing")


@pytest.fixture(autouse=True)
def quick_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server looks at once whether it is to end, and not twice a second."""
    serve = partialmethod(ThreadingHTTPServer.serve_forever, 0.02)
    monkeypatch.setattr(http_server._Server, "serve_forever", serve)


@contextmanager
def serving(access: HttpAccess) -> Iterator[HttpServer]:
    server = HttpServer("127.0.0.1:0", Status("shop", "1", []), access)
    server.start()
    try:
        yield server
    finally:
        server.stop()


@contextmanager
def silent_clients(server: HttpServer, count: int) -> Iterator[None]:
    """This many open connections that send nothing."""
    host, _, port = server.address.rpartition(":")
    with ExitStack() as clients:
        for _ in range(count):
            clients.enter_context(socket.create_connection((host, int(port)), 60))
        yield


def status_of(connection: http.client.HTTPConnection, path: str, token: str | None) -> int:
    headers = {} if token is None else {"Authorization": token}
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status


def test_all_pages_but_the_probes_ask_for_the_token(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "token"
    file.write_text("planted-token\n")
    with serving(HttpAccess(auth_file=str(file))) as server:

        def ask(path: str, token: str | None = None) -> int:
            return status_of(http.client.HTTPConnection(server.address, timeout=60), path, token)

        assert [ask(path) for path in GUARDED] == [401] * len(GUARDED)
        assert ask("/livez") == 200
        assert ask("/readyz") == 503
        for wrong in ("Bearer", "Bearer x", "planted-token", "Basic planted-token", "Bearer \xe9"):
            assert ask("/status", wrong) == 401, wrong
        assert ask("/status", "Bearer planted-token") == 200
        for password, code in (("planted-token", 200), ("x", 401), ("", 401)):
            basic = base64.b64encode(f"me:{password}".encode()).decode()
            assert ask("/", f"Basic {basic}") == code, "a browser"
        file.write_text("another")
        assert ask("/status", "Bearer planted-token") == 401
        assert ask("/status", "Bearer another") == 200
        assert caplog.records == []
        file.unlink()
        assert ask("/status", "Bearer another") == 401
        assert ask("/status", "Bearer ") == 401
    assert {record.getMessage() for record in caplog.records} == {"http_auth_file_unusable"}


def test_a_token_that_is_not_there_stops_the_start(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.write_text(" \n")
    for file in (empty, tmp_path / "nowhere"):
        with pytest.raises(ConfigError, match=r"http\.auth-file"):
            HttpServer("127.0.0.1:0", Status("s", "1", []), HttpAccess(auth_file=str(file)))


@pytest.mark.skipif(not HAS_OPENSSL, reason="needs openssl")
def test_the_pages_are_served_over_tls_and_not_without(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    mine = authority.sign("page")
    with serving(HttpAccess(str(mine.certificate), str(mine.key))) as server:
        trusting = ssl.create_default_context(cafile=str(authority.path))
        secured = http.client.HTTPSConnection(server.address, timeout=60, context=trusting)
        assert status_of(secured, "/livez", None) == 200
        plain = http.client.HTTPConnection(server.address, timeout=60)
        with pytest.raises((OSError, http.client.HTTPException)):
            status_of(plain, "/livez", None)
        with silent_clients(server, 200):
            assert status_of(secured, "/livez", None) == 200


def subject(server: HttpServer, authority: Authority) -> str:
    """The name in the certificate that a client is shown, and whether it can be trusted."""
    trusting = ssl.create_default_context(cafile=str(authority.path))
    host, port = server.address.split(":")
    with (
        socket.create_connection((host, int(port)), 60) as plain,
        trusting.wrap_socket(plain, server_hostname=host) as secured,
    ):
        found = secured.getpeercert()
    assert found is not None
    return str(dict(pair for (pair,) in found["subject"])["commonName"])


@pytest.mark.skipif(not HAS_OPENSSL, reason="needs openssl")
def test_a_certificate_that_is_replaced_is_shown_to_the_next_client(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    old, new = authority.sign("old"), authority.sign("new")
    with serving(HttpAccess(str(old.certificate), str(old.key))) as server:
        assert subject(server, authority) == "old"
        new.certificate.replace(old.certificate)
        assert subject(server, authority) == "old", "whose key is not there yet"
        new.key.replace(old.key)
        assert subject(server, authority) == "new"
        old.key.unlink()
        assert subject(server, authority) == "new"


def test_files_that_are_no_certificate_are_a_fault_of_the_configuration(tmp_path: Path) -> None:
    file = tmp_path / "page.pem"
    file.write_text("nothing of the kind")
    for one in (file, tmp_path / "nowhere"):
        with pytest.raises(ConfigError, match=r"http\.tls-certificate"):
            HttpAccess(str(one), str(one)).tls()


def test_a_request_may_not_be_longer_than_its_limit() -> None:
    with serving(HttpAccess()) as server:
        host, port = server.address.split(":")
        with socket.create_connection((host, int(port)), 60) as client:
            client.sendall(b"GET /livez HTTP/1.0\r\nX: " + b"x" * 20_000 + b"\r\n\r\n")
            assert b"200 OK" not in _all_of(client)


def test_the_first_byte_has_to_come_sooner_than_the_request() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        silent = BoundedRequest(ours, 100, 0.1, 600)
        with pytest.raises(TimeoutError):
            silent.readinto(memoryview(bytearray(10)))
        begun = BoundedRequest(ours, 100, 0.1, 600)
        theirs.sendall(b"x")
        assert begun.readinto(memoryview(bytearray(10))) == 1
        time.sleep(0.2)
        theirs.sendall(b"y")
        assert begun.readinto(memoryview(bytearray(10))) == 1


def test_a_client_that_sends_bit_by_bit_is_cut_off() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        request = BoundedRequest(ours, 100, 30, 0.2)
        buffer, seen = memoryview(bytearray(10)), 0
        end = time.monotonic() + 120
        with pytest.raises(TimeoutError):
            while time.monotonic() < end:
                theirs.sendall(b"x")
                seen += request.readinto(buffer)
                time.sleep(0.05)
        assert 0 < seen < 100


def test_reading_ends_at_the_limit_of_bytes() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        request = BoundedRequest(ours, 12, 30, 30)
        theirs.sendall(b"x" * 50)
        buffer = memoryview(bytearray(8))
        assert [request.readinto(buffer), request.readinto(buffer)] == [8, 4]
        with pytest.raises(TimeoutError, match="too long"):
            request.readinto(buffer)


def _all_of(client: socket.socket) -> bytes:
    found = b""
    try:
        while part := client.recv(4096):
            found += part
    except ConnectionResetError:
        pass
    return found
