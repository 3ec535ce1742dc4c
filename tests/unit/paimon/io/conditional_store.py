"""A tiny object store in this process that speaks as much of GCS and Azure as one commit asks for.

It creates an object only if the condition is there and met, as both clouds do, and remembers the
headers of every put.
"""

import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import urlsplit

from tests.support.http_serving import HttpServing

_DATE = "Sat, 21 Nov 2026 10:00:00 GMT"


class ConditionalStore(HttpServing):
    """`condition` is the header, in lower case, and the value that make a put a creation."""

    def __init__(self, condition: tuple[str, str]) -> None:
        self.objects: dict[str, bytes] = {}
        self.puts: list[Mapping[str, str]] = []
        self._lock = threading.Lock()
        store = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_PUT(self) -> None:
                data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                headers = {name.lower(): value for name, value in self.headers.items()}
                with store._lock:
                    store.puts.append(headers)
                    taken = urlsplit(self.path).path in store.objects
                    if taken and headers.get(condition[0]) == condition[1]:
                        self._answer(412 if condition[0].startswith("x-goog") else 409)
                        return
                    store.objects[urlsplit(self.path).path] = data
                self._answer(201)

            def do_GET(self) -> None:
                found = store.objects.get(urlsplit(self.path).path)
                self._answer(404 if found is None else 200, found or b"")

            do_HEAD = do_GET  # noqa: N815  (name of the base class)

            def _answer(self, status: int, body: bytes = b"") -> None:
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.send_header("ETag", '"e"')
                self.send_header("Last-Modified", _DATE)
                self.send_header("x-goog-generation", "1")
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                """Nothing: tests are quiet."""

        super().__init__(Handler)
