"""A schema registry of the Confluent protocol as a process of its own, over saved schemas.

    with RegistryServer(SHOP / "registry.json.xz") as registry:
        ... registry.url ...
        registry.close()
        registry.start()      # the same address again

The document is ``{"ids": {id: {schemaType, schema, references}}, "subjects": {subject: [{version,
id}]}}``, optionally ``"guids": {guid: id}``. ``fail_first`` schema look-ups are answered with
500, ``delay`` waits before each answer, ``headers`` are those that every request must have, and
after ``answers`` answers the process ends by itself. With
``token_uses`` a request must have an unexpired token of `tests.support.token_endpoint`, which was
used less often. ``/hits`` tells how often each path was asked.
"""

import json
import lzma
import os
import ssl
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from tests.support.closing import Closing
from tests.support.daemon import free_port
from tests.support.token_endpoint import has_expired

Answer = tuple[int, Any]
_NO_SCHEMA: Answer = (404, {"error_code": 40403, "message": "Schema not found"})
_NO_VERSION: Answer = (404, {"error_code": 40402, "message": "Version not found"})


class RegistryServer(Closing):
    """One registry; ``options`` are those of the module's documentation."""

    def __init__(self, document: Path | dict[str, Any], **options: Any) -> None:
        self._document = load_document(document) if isinstance(document, Path) else document
        self._options = options
        self._process: subprocess.Popen[str] | None = None
        self.port = free_port()

    @property
    def url(self) -> str:
        """Where it listens."""
        scheme = "https" if "certificate" in self._options else "http"
        return f"{scheme}://127.0.0.1:{self.port}"

    @property
    def hits(self) -> Counter[str]:
        """How often each path was asked since the start."""
        with urllib.request.urlopen(f"{self.url}/hits", timeout=60) as reply:
            return Counter(json.load(reply))

    def start(self) -> None:
        """Start it and wait until it listens."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.registry_server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).resolve().parents[2],
        )
        assert self._process.stdin and self._process.stdout
        settings = {"document": self._document, "port": self.port, **self._options}
        self._process.stdin.write(json.dumps(settings) + "\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline() == "listening\n", "the registry did not start"

    def wait_for_end(self) -> None:
        """Return once the process has ended by itself."""
        assert self._process is not None
        self._process.wait(timeout=240)

    def close(self) -> None:
        """End the process."""
        if self._process is None:
            return
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._process.wait(timeout=120)
        self._process = None


def load_document(path: Path) -> dict[str, Any]:
    """A saved registry, compressed or not."""
    data = path.read_bytes()
    document: dict[str, Any] = json.loads(lzma.decompress(data) if path.suffix == ".xz" else data)
    return document


class _Registry:
    """What the process answers."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self._document = settings["document"]
        self._fail = settings.get("fail_first", 0)
        self._delay = settings.get("delay", 0.0)
        self._headers = settings.get("headers", {})
        self._token_uses = settings.get("token_uses")
        self._answers = settings.get("answers")
        self._tokens: Counter[str] = Counter()
        self._hits: Counter[str] = Counter()
        self._lock = threading.Lock()

    def answer(self, path: str, headers: Message) -> Answer:
        if path == "/hits":
            return 200, self._hits
        time.sleep(self._delay)
        with self._lock:
            if self._hits.total() == self._answers:
                os._exit(0)
            self._hits[path] += 1
            if path.startswith("/schemas") and self._fail > 0:
                self._fail -= 1
                return 500, {"error_code": 50001, "message": "simulated"}
        if not self._is_authorized(headers):
            return 401, {"error_code": 40101, "message": "Unauthorized"}
        return self._find([unquote(part) for part in path.split("/")[1:]])

    def _is_authorized(self, headers: Message) -> bool:
        if any(headers.get(name) != value for name, value in self._headers.items()):
            return False
        if self._token_uses is None:
            return True
        token = headers.get("Authorization", "").removeprefix("Bearer ")
        with self._lock:
            self._tokens[token] += 1
            return not has_expired(token) and self._tokens[token] <= self._token_uses

    def _find(self, parts: list[str]) -> Answer:
        if parts[:2] == ["schemas", "guids"]:
            return self._schema(str(self._document.get("guids", {}).get(parts[2])))
        if parts[:2] == ["schemas", "ids"] and len(parts) == 3:
            return self._schema(parts[2])
        subjects = self._document.get("subjects", {})
        if parts[:2] == ["schemas", "ids"] and parts[3:] == ["versions"]:
            return 200, [
                {"subject": subject, "version": version["version"]}
                for subject, versions in subjects.items()
                for version in versions
                if str(version["id"]) == parts[2]
            ]
        if parts[:1] == ["subjects"] and parts[2:] == ["versions"]:
            return 200, [one["version"] for one in subjects.get(parts[1], ())]
        if parts[:1] == ["subjects"] and len(parts) == 4:
            for one in self._document["subjects"].get(parts[1], ()):
                if str(one["version"]) == parts[3]:
                    return self._schema(str(one["id"]))
            return _NO_VERSION
        return 404, "not a path of a registry"

    def _schema(self, number: str) -> Answer:
        found = self._document["ids"].get(number)
        if found is None:
            return _NO_SCHEMA
        answer = {"schema": found["schema"]}
        if found.get("references"):
            answer["references"] = found["references"]
        if found.get("schemaType", "AVRO") != "AVRO":
            answer["schemaType"] = found["schemaType"]
        return 200, answer


def _serve() -> None:
    settings = json.loads(sys.stdin.readline())
    registry = _Registry(settings)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = registry.answer(urlsplit(self.path).path, self.headers)
            data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            """Nothing: tests are quiet."""

    ThreadingHTTPServer.allow_reuse_address = True
    server = ThreadingHTTPServer(("127.0.0.1", settings["port"]), Handler)
    if "certificate" in settings:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(settings["certificate"])
        if settings.get("client_ca"):
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(settings["client_ca"])
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print("listening", flush=True)
    sys.stdin.read()  # until the parent is gone


if __name__ == "__main__":
    _serve()
