"""Send an HTTP request with a deadline, and read a response of limited size.

A socket timeout limits only each single wait: a server that sends a byte now and then could block a
request for ever. Redirects are not followed, because they could send credentials elsewhere.
"""

import io
import json
import socket
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from http.client import (
    HTTPConnection,
    HTTPException,
    HTTPResponse,
    HTTPSConnection,
    IncompleteRead,
)
from typing import Any

_SHOWN = 300
_LEAST_SECONDS = 0.001


@dataclass(frozen=True, slots=True)
class ClientResponse:
    """An HTTP response: status, headers and the first bytes of the body.

    `is_cut` is true if the body was longer.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    is_cut: bool = False


def send(
    request: urllib.request.Request,
    seconds: float,
    most_bytes: int,
    context: ssl.SSLContext | None = None,
) -> ClientResponse:
    """Send a request and return the response, of any status.

    At most `most_bytes` of the body are returned; with 0 the body is not awaited. `context` is used
    for HTTPS; None is the default context. Raises OSError if the connection fails or takes more
    than `seconds` (name resolution is limited only by the timeouts of the system), or HTTPException
    if the response is incomplete or not HTTP.
    """
    end = time.monotonic() + seconds
    opener = urllib.request.build_opener(_PlainHttp(end), _Https(end, context), _AnyStatus())
    try:
        with opener.open(request, timeout=seconds) as reply:
            if not most_bytes:
                return ClientResponse(reply.status, reply.headers, b"")
            body = reply.read(most_bytes + 1)
            if reply.length and len(body) <= most_bytes:
                raise IncompleteRead(body, reply.length)
            return ClientResponse(
                reply.status, reply.headers, body[:most_bytes], len(body) > most_bytes
            )
    except ValueError as error:  # raised by http.client for some malformed responses
        raise HTTPException(f"the response cannot be read: {error}") from error


def failure_reason(error: Exception) -> str:
    """Return the reason of an error that `send` raised, as one printable line."""
    return one_line(str(error.reason if isinstance(error, urllib.error.URLError) else error))


def json_of(body: bytes) -> Any:  # noqa: ANN401  (any JSON)
    """Parse a body as JSON. Raises ValueError if it is invalid or nested too deeply."""
    try:
        return json.loads(body)
    except RecursionError as error:
        raise ValueError("the JSON is too deep") from error


def one_line(text: object, most: int = _SHOWN) -> str:
    """Shorten text from a server to one printable line of its first `most` characters.

    Characters that are not printable become spaces. A longer text is followed by "..." and its
    length. For a value that is not text, the name of its type is returned.
    """
    plain = text if isinstance(text, str) else type(text).__name__
    line = "".join(c if c.isprintable() else " " for c in plain[: most + 1])
    return line if len(line) <= most else f"{line[:most]}... ({len(plain)} characters)"


class _PlainHttp(urllib.request.HTTPHandler):
    def __init__(self, end: float) -> None:
        super().__init__()
        self._end = end

    def http_open(self, request: urllib.request.Request) -> HTTPResponse:
        return self.do_open(partial(_connection, HTTPConnection, self._end), request)


class _Https(urllib.request.HTTPSHandler):
    def __init__(self, end: float, context: ssl.SSLContext | None) -> None:
        # Without a context, Python 3.12 and later would load all certificates for each opener.
        super().__init__(context=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
        self._end = end
        self._tls = context

    def https_open(self, request: urllib.request.Request) -> HTTPResponse:
        # The default context is expensive to create, so only requests over HTTPS create it.
        tls = ssl.create_default_context() if self._tls is None else self._tls
        make = partial(_connection, HTTPSConnection, self._end, context=tls)
        return self.do_open(make, request)


class _AnyStatus(urllib.request.HTTPErrorProcessor):
    """A processor that returns responses of every status to the caller; it follows no redirects."""

    def http_response(self, request: urllib.request.Request, response: HTTPResponse) -> Any:  # noqa: ANN401  (as in the base class)
        return response

    https_response = http_response


def _connection(
    kind: Callable[..., HTTPConnection], end: float, host: str, **options: object
) -> HTTPConnection:
    connection = kind(host, **options)
    connection.response_class = partial(_Response, end)  # type: ignore[assignment]  # a function
    # The library would allow the whole time for each address of the host.
    connection._create_connection = partial(_connect, end)  # type: ignore[attr-defined]  # private
    return connection


def _connect(end: float, address: tuple[str, int], *_: object) -> socket.socket:
    """Connect to the first address of a host that accepts a connection before the time `end`."""
    error = OSError(f"{address[0]} has no address")
    for family, kind, number, _name, socket_address in socket.getaddrinfo(
        *address, 0, socket.SOCK_STREAM
    ):
        connected = socket.socket(family, kind, number)
        try:
            connected.settimeout(_left(end))
            connected.connect(socket_address)
        except OSError as failed:
            connected.close()
            error = failed
        else:
            connected.settimeout(_left(end))
            return connected
    raise error


class _Response(HTTPResponse):
    def __init__(self, end: float, sock: socket.socket, method: str | None = None) -> None:
        super().__init__(sock, method=method)
        self.fp = io.BufferedReader(_Deadline(sock, self.fp.detach(), end))


class _Deadline(io.RawIOBase):
    """A raw stream of a socket that fails after the deadline `end`, even if bytes keep arriving."""

    def __init__(self, sock: socket.socket, raw: io.RawIOBase, end: float) -> None:
        self._socket = sock
        self._raw = raw
        self._end = end

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:  # noqa: ANN401  (as in the base class)
        self._socket.settimeout(_left(self._end))
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


def _left(end: float) -> float:
    left = end - time.monotonic()
    if left <= 0:
        raise TimeoutError("timed out")
    return max(left, _LEAST_SECONDS)
