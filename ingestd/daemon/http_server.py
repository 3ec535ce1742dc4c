"""The read-only HTTP pages of the daemon: metrics, probes and status, on one port.

The number of connections, their time and their bytes are limited, so that slow or many clients do
not affect ingest. The connections that wait and the connections that are served a page have
separate limits; beyond a limit, a new connection replaces another, see `ConnectionLimit`; probes do
not wait for other pages. `http_access` determines which clients may see which pages.
"""

import io
import ipaddress
import json
import logging
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, NamedTuple, TypeVar
from urllib.parse import parse_qsl, unquote

from ingestd.daemon.console.table_details import DetailsReader
from ingestd.daemon.console.views import (
    ASSETS,
    DEAD_LETTERS,
    asset,
    console_page,
    page_of_dead_letters,
    page_of_table,
)
from ingestd.daemon.http_access import BoundedRequest, HttpAccess, Tls
from ingestd.daemon.status import NOT_READY, Status
from ingestd.errors import ConfigError, IngestdError
from ingestd.log import redact
from ingestd.metrics_page import MetricsPage

_LOG = logging.getLogger(__name__)
_MAX_WAITING = 64
"""Maximum number of connections that have not sent their request yet."""
_MAX_PAGES = 8
"""Maximum number of connections that are served a page other than a probe."""
_FIRST_BYTE_SECONDS = 2.0
_REQUEST_SECONDS = 5.0
_REQUEST_BYTES = 16 << 10
_OPEN = HttpAccess()
_ALL_SERIES = MetricsPage()
_FOR_ALL = frozenset({"/livez", "/readyz"})
"""Pages without access control: probes reveal only a yes or no."""
_TEXT = "text/plain; charset=utf-8"
_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
)
_TABLE = "/tables/"
_Read = TypeVar("_Read")
_PAGES: Mapping[str, str] = {
    "/metrics": "Prometheus metrics",
    "/livez": "200 while the daemon makes progress",
    "/readyz": "200 while the query runs and polls its sources",
    "/status": "state, tables, offsets and lag as JSON",
}


class HttpResponse(NamedTuple):
    """The response to a request for a page; `encoding` is None if the body is not compressed."""

    code: HTTPStatus
    content_type: str
    body: bytes
    encoding: str | None = None


_REFUSED = HttpResponse(HTTPStatus.UNAUTHORIZED, _TEXT, b"this page requires the bearer token\n")
_WRONG_HOST = HttpResponse(
    HTTPStatus.MISDIRECTED_REQUEST,
    _TEXT,
    b"http.listen is a loopback address: the Host header must be localhost or a loopback address\n",
)


def page(path: str, status: Status, query: str = "") -> HttpResponse:
    """Return the response to a GET of a path other than `/metrics`; 404 for an unknown path.

    `query` is the part of the URL after the question mark.
    """
    if path == "/livez":
        return _probe(status.is_live, "alive", "the loop is stuck")
    if path == "/readyz":
        reason = status.not_ready
        why = "" if reason is None else f"not ready: {reason}: {NOT_READY[reason]}"
        return _probe(reason is None, "ready", why)
    if path == "/status":
        body = json.dumps(status.document(), indent=2).encode() + b"\n"
        return HttpResponse(HTTPStatus.OK, "application/json", body)
    if path in ASSETS:
        return HttpResponse(HTTPStatus.OK, ASSETS[path], asset(path))
    html = console_page(path, dict(parse_qsl(query)), status.console_document(), _PAGES)
    if html is not None:
        return HttpResponse(HTTPStatus.OK, "text/html; charset=utf-8", html)
    names = ", ".join(["/", *_PAGES])
    return HttpResponse(HTTPStatus.NOT_FOUND, _TEXT, f"pages: {names}\n".encode())


def table_page(name: str, status: Status, tables: DetailsReader) -> HttpResponse:
    """Return the page of one table of the pipeline, or status 404 if there is no such table.

    If the table cannot be read, the page shows the error. This function reads the warehouse, so
    call it without the lock under which other pages are rendered.
    """
    document = status.document()
    if name not in document["tables"]:
        message = f"the pipeline has no table '{name}'; /tables lists its tables\n"
        return HttpResponse(HTTPStatus.NOT_FOUND, _TEXT, message.encode())
    details = _or_message(lambda: tables.details(name))
    html = page_of_table(name, details, document, _PAGES)
    return HttpResponse(HTTPStatus.OK, "text/html; charset=utf-8", html)


def dead_letters_page(status: Status, tables: DetailsReader, *, with_bytes: bool) -> HttpResponse:
    """Return the page of dead letters, with their keys and values if `with_bytes`.

    If dead letters cannot be read, the page shows the error. This function reads the warehouse, so
    call it without the lock under which other pages are rendered.
    """
    letters = _or_message(lambda: tables.dead_letters(with_bytes=with_bytes))
    html = page_of_dead_letters(letters, tables.replay_command(), status.document(), _PAGES)
    return HttpResponse(HTTPStatus.OK, "text/html; charset=utf-8", html)


def _or_message(read: Callable[[], _Read]) -> _Read | str:
    """Return the result of `read`, or the message of the error that it raises."""
    try:
        return read()
    except IngestdError as error:
        return redact(error.message)


class HttpServer:
    """The server of the pages, which runs in separate threads from `start` to `stop`.

    `listen` is its address as HOST:PORT. `tables` reads the tables for the console (None: there are
    no pages of tables). Creating the server raises ConfigError if the address or a file of `access`
    cannot be used.
    """

    def __init__(
        self,
        listen: str,
        status: Status,
        access: HttpAccess = _OPEN,
        metrics: MetricsPage = _ALL_SERIES,
        tables: DetailsReader | None = None,
    ) -> None:
        host, _, port = listen.rpartition(":")
        host = host.removeprefix("[").removesuffix("]")
        access.check()
        tls = access.tls()
        attributes = {"status": status, "access": access, "metrics": metrics, "tables": tables}
        handler = type("Handler", (_Handler,), attributes)
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        server_class = type("Server", (_Server,), {"address_family": family, "tls": tls})
        try:
            self._server: _Server = server_class((host, int(port)), handler)
        except (OSError, UnicodeError) as error:
            reason = getattr(error, "strerror", None) or error
            raise ConfigError(
                f"http.listen: cannot listen on {listen}: {reason}; choose "
                "another address, or port 0 for any free port (INGESTD__HTTP__LISTEN=127.0.0.1:0)"
            ) from error
        self._thread = threading.Thread(target=self._server.serve_forever, name="http", daemon=True)

    @property
    def address(self) -> str:
        """The listening address as HOST:PORT."""
        host, port = self._server.server_address[:2]
        name = host if isinstance(host, str) else host.decode()
        return f"[{name}]:{port}" if ":" in name else f"{name}:{port}"

    def start(self) -> None:
        """Start to serve the pages."""
        self._thread.start()
        _LOG.info("http_listening", extra={"ctx": {"address": self.address}})

    def stop(self) -> None:
        """Stop serving the pages, and close the port."""
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    tls: ClassVar[Tls | None] = None
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self.waiting = ConnectionLimit(_MAX_WAITING)
        self.pages = ConnectionLimit(_MAX_PAGES)
        self.composing = threading.Lock()  # rendering costs CPU, so one page is rendered at a time
        super().__init__(address, handler)
        self.on_loopback = _is_loopback(str(self.server_address[0]))

    def finish_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401  (types of the base class)
        """Serve a connection; this thread of the connection also runs the TLS handshake."""
        if self.tls is None:
            with self.waiting.counted(request, client_address[0]):
                super().finish_request(request, client_address)
            return
        request.settimeout(_FIRST_BYTE_SECONDS)
        context = self.tls.context()
        with (
            context.wrap_socket(
                request, server_side=True, do_handshake_on_connect=False
            ) as secured,
            self.waiting.counted(secured, client_address[0]),
        ):
            secured.do_handshake()
            super().finish_request(secured, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401  (types of the base class)
        _LOG.debug("http_request_failed", exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    status: ClassVar[Status]
    access: ClassVar[HttpAccess]
    metrics: ClassVar[MetricsPage]
    tables: ClassVar[DetailsReader | None]
    timeout = _REQUEST_SECONDS
    server_version = "ingestd"
    sys_version = ""

    def setup(self) -> None:
        super().setup()
        limits = _REQUEST_BYTES, _FIRST_BYTE_SECONDS, _REQUEST_SECONDS
        request = BoundedRequest(self.connection, *limits)
        self.rfile = io.BufferedReader(request)

    def do_GET(self) -> None:
        self._respond(with_body=True)

    def do_HEAD(self) -> None:
        self._respond(with_body=False)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: ANN401  (types of the base class)
        _LOG.debug("http_request", extra={"ctx": {"request": format % args}})

    def _respond(self, *, with_body: bool) -> None:
        path, _, query = self.path.partition("?")
        server = self.server
        server.waiting.leave(self.connection)
        if path in _FOR_ALL:
            self._send(page(path, self.status), with_body=with_body)  # few bytes: never blocks
            return
        with server.pages.counted(self.connection, self.client_address[0]):
            self._send(self._page(path, query), with_body=with_body)

    def _page(self, path: str, query: str) -> HttpResponse:
        """Return a page other than a probe, or an error response to a client without access."""
        if self.server.on_loopback and not _is_loopback(self.headers["Host"]):
            return _WRONG_HOST
        if not self.access.allows(self.headers["Authorization"]):
            return _REFUSED
        if path.startswith(_TABLE) and self.tables is not None:
            return table_page(unquote(path.removeprefix(_TABLE)), self.status, self.tables)
        if path == DEAD_LETTERS and self.tables is not None:
            protected = self.access.auth_file is not None
            return dead_letters_page(self.status, self.tables, with_bytes=protected)
        with self.server.composing:
            if path == "/metrics":
                accepted = self.headers["Accept"], self.headers["Accept-Encoding"]
                scrape = self.metrics.scrape(*accepted)
                return HttpResponse(
                    HTTPStatus.OK, scrape.content_type, scrape.body, scrape.encoding
                )
            return page(path, self.status, query)

    def _send(self, response: HttpResponse, *, with_body: bool) -> None:
        self.connection.settimeout(_REQUEST_SECONDS)
        self.send_response(response.code)
        if response is _REFUSED:
            self.send_header("WWW-Authenticate", "Bearer")
            self.send_header("WWW-Authenticate", 'Basic realm="ingestd", charset="UTF-8"')
        self.send_header("Content-Type", response.content_type)
        if response.encoding is not None:
            self.send_header("Content-Encoding", response.encoding)
        self.send_header("Content-Length", str(len(response.body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("Content-Security-Policy", _POLICY)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        if with_body:
            self.wfile.write(response.body)


def _is_loopback(host: str | None) -> bool:
    """Return whether a host is a loopback name or address; a missing Host header counts as one.

    Checking the header protects against DNS rebinding: a page of another site whose name resolves
    to this machine sends the name of that site. Browsers always send the header.
    """
    name = (host or "localhost").strip().lower()
    if name.startswith("["):
        name = name[1:].partition("]")[0]
    elif name.count(":") == 1:
        name = name.partition(":")[0]
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _probe(good: bool, yes: str, no: str) -> HttpResponse:
    code = HTTPStatus.OK if good else HTTPStatus.SERVICE_UNAVAILABLE
    return HttpResponse(code, _TEXT, f"{yes if good else no}\n".encode())


class ConnectionLimit:
    """Limits the number of concurrent connections to `most`; thread-safe.

    A connection beyond the limit replaces the oldest one of the address with the most connections.
    So an address with few connections, such as a probe's, is not affected by others.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._addresses: dict[socket.socket, str] = {}  # oldest connection first

    @contextmanager
    def counted(self, connection: socket.socket, address: str) -> Iterator[None]:
        """Count a connection until the block ends or `leave` is called.

        The connection is shut down if another one replaces it.
        """
        self._enter(connection, address)
        try:
            yield
        finally:
            self.leave(connection)

    def leave(self, connection: socket.socket) -> None:
        """Stop counting a connection; do nothing if it is not counted."""
        with self._lock:
            self._addresses.pop(connection, None)

    def _enter(self, connection: socket.socket, address: str) -> None:
        with self._lock:
            self._addresses[connection] = address
            if len(self._addresses) <= self._most:
                return
            counts = Counter(self._addresses.values())
            largest = max(counts.values())
            oldest = next(open_ for open_, its in self._addresses.items() if counts[its] == largest)
            del self._addresses[oldest]
            with suppress(OSError):
                # The plain socket's method: TLS's own would change state that another thread uses.
                socket.socket.shutdown(oldest, socket.SHUT_RDWR)
