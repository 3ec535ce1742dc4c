"""Stands between a client and an S3 server: counts requests, and answers some as bad networks do.

    with FaultyProxy(server.endpoint) as proxy:
        proxy.faults.append(ProxyFault("lost", "PUT", "snapshot-2"))

Requests go through as they were signed, with the host name that the client knows.
"""

import contextlib
import http.client
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from random import Random
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

from tests.support.http_serving import HttpServing

Trouble = Literal["slow-down", "broken", "lost", "cut", "conflict", "taken"]
TROUBLES: tuple[Trouble, ...] = ("slow-down", "broken", "lost", "cut", "conflict", "taken")
"""`slow-down`, `broken`: 503 and 500, nothing is done. `lost`: it is done and no one answers.
`cut`: it is done and half of the answer comes (of its body, if it has one). `conflict`: 409, as
when two puts of a name meet, nothing is done. `taken`: 412 although nothing is there."""
_REFUSALS = {
    "slow-down": (503, "SlowDown"),
    "broken": (500, "InternalError"),
    "conflict": (409, "ConditionalRequestConflict"),
    "taken": (412, "PreconditionFailed"),
}
_HOP_BY_HOP = {"connection", "transfer-encoding", "content-length", "keep-alive"}


class Seen(NamedTuple):
    """A request that came by: `kind` is its method, or LIST; `path` with the query."""

    kind: str
    path: str


@dataclass
class ProxyFault:
    """Troubles the requests `first` to `first + times - 1` of a kind whose path holds a text."""

    trouble: Trouble
    kind: str
    path_part: str = ""
    first: int = 1
    times: int = 1
    met: int = 0

    def strikes(self, seen: Seen) -> bool:
        """Counts a request and tells whether it is one to trouble."""
        if seen.kind != self.kind or self.path_part not in seen.path:
            return False
        self.met += 1
        return self.first <= self.met < self.first + self.times


@dataclass(frozen=True)
class Answer:
    """What a server has answered."""

    status: int
    reason: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


class FaultyProxy(HttpServing):
    """A proxy on a free port.

    `seen` are the requests in order, `struck` those that met trouble; each waits `delay` seconds,
    and meets trouble by chance with the probability that `chance` names beside its dice.
    """

    def __init__(self, target: str) -> None:
        self.faults: list[ProxyFault] = []
        self.seen: list[Seen] = []
        self.struck: list[tuple[Trouble, Seen]] = []
        self.delay = 0.0
        self.chance: tuple[Random, float] | None = None
        self._target = urlsplit(target).netloc
        self._lock = threading.Lock()
        self._connections = threading.local()
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def _pass_on(self) -> None:
                proxy.handle(self)

            do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _pass_on  # noqa: N815

            def log_message(self, *_: Any) -> None:
                """Nothing: tests are quiet."""

        super().__init__(Handler)

    def count(self, kind: str) -> int:
        """How many requests of a kind came by."""
        return sum(one.kind == kind for one in self.seen)

    def forget(self) -> None:
        """Count from nothing again, and trouble no one any more."""
        with self._lock:
            self.faults.clear()
            self.seen.clear()
            self.struck.clear()
            self.chance = None

    def handle(self, handler: BaseHTTPRequestHandler) -> None:
        """Pass one request on, or do not."""
        body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        seen = Seen(_kind(handler), handler.path)
        trouble = self._trouble(seen)
        time.sleep(self.delay)
        if trouble in _REFUSALS:
            _send(handler, _refusal(trouble))
            return
        try:
            answer = self.forward(handler, body)
        except (OSError, http.client.HTTPException):
            self._connections.one = None
            trouble = "lost"
        if trouble == "lost":
            handler.close_connection = True
            return
        with contextlib.suppress(ConnectionError):  # a client may have heard enough
            _send(handler, answer, cut=trouble == "cut")

    def _trouble(self, seen: Seen) -> Trouble | None:
        with self._lock:
            self.seen.append(seen)
            due = [fault.trouble for fault in self.faults if fault.strikes(seen)]
            if self.chance is not None and self.chance[0].random() < self.chance[1]:
                due.append(self.chance[0].choice(TROUBLES if seen.kind == "PUT" else TROUBLES[:4]))
            self.struck.extend((one, seen) for one in due[:1])
            return due[0] if due else None

    def forward(self, handler: BaseHTTPRequestHandler, body: bytes) -> Answer:
        """Pass one request on."""
        known: http.client.HTTPConnection | None = getattr(self._connections, "one", None)
        connection = known or http.client.HTTPConnection(self._target, timeout=60)
        self._connections.one = connection
        headers = dict(handler.headers.items())
        with contextlib.suppress(ConnectionError):  # it may have answered before it read all
            connection.request(handler.command, handler.path, body or None, headers)
        answer = connection.getresponse()
        kept = {n: v for n, v in answer.getheaders() if n.lower() not in _HOP_BY_HOP}
        content = answer.read()
        length = answer.getheader("Content-Length") if handler.command == "HEAD" else None
        kept["Content-Length"] = length or str(len(content))
        return Answer(answer.status, answer.reason, kept, content)


def _kind(handler: BaseHTTPRequestHandler) -> str:
    listing = handler.command == "GET" and "list-type=" in urlsplit(handler.path).query
    return "LIST" if listing else handler.command


def _refusal(trouble: str) -> Answer:
    status, code = _REFUSALS[trouble]
    body = f"<Error><Code>{code}</Code><Message>as told</Message></Error>".encode()
    headers = {"Content-Type": "application/xml", "Content-Length": str(len(body))}
    return Answer(status, code, headers, body)


def _send(handler: BaseHTTPRequestHandler, answer: Answer, *, cut: bool = False) -> None:
    handler.send_response(answer.status, answer.reason)
    for name, value in answer.headers.items():
        handler.send_header(name, value)
    body = answer.body if handler.command != "HEAD" else b""
    if cut:
        handler.close_connection = True
        body = body[: len(body) // 2]
    if not cut or body:
        handler.end_headers()
    else:
        handler._headers_buffer.pop()  # type: ignore[attr-defined]  # half of the headers
        handler.flush_headers()
    handler.wfile.write(body)
