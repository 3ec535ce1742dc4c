"""A real HTTP server on a free port of this machine that answers by script, for one test.

    with ScriptedServer([(503, {}), (200, {"databases": []})]) as server: ...

Each entry is a status and a document, or a function of the request, or None: hang up.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.support.http_serving import HttpServing


@dataclass(frozen=True, slots=True)
class SignalRequests:
    """A request as the server got it."""

    method: str
    path: str
    headers: Mapping[str, str]
    document: Any


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer with headers."""

    status: int
    document: Any = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)


Step = Reply | None | Callable[[SignalRequests], Reply]


class ScriptedServer(HttpServing):
    """Answers in order; beyond its script with 500."""

    def __init__(self, script: Iterable[Step]) -> None:
        self.script = list(script)
        self.asked: list[SignalRequests] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def _answer(self) -> None:
                server.answer(self)

            do_GET = do_POST = do_DELETE = _answer  # noqa: N815  (names of the base class)

            def log_message(self, *_: Any) -> None:
                """Nothing: tests are quiet."""

        super().__init__(Handler)

    @property
    def uri(self) -> str:
        """Where it listens."""
        return self.endpoint

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        """Take the next step of the script."""
        data = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        headers = {name.lower(): value for name, value in handler.headers.items()}
        document = json.loads(data) if data else None
        asked = SignalRequests(handler.command, handler.path, headers, document)
        self.asked.append(asked)
        step = self.script.pop(0) if self.script else Reply(500, {"message": "end of script"})
        reply = step(asked) if callable(step) else step
        if reply is None:
            handler.close_connection = True
            return
        body = reply.document
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        handler.send_response(reply.status)
        for name, value in {**reply.headers, "Content-Length": str(len(raw))}.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(raw)
