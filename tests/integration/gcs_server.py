"""fake-gcs-server, a process that keeps generations of objects as Google's store does.

It knows the JSON interface for uploads and copies alone, and our client asks by the XML interface;
`XmlFront` precedes it and says the same in the other words. What the XML interface calls the
parts of an upload are objects that the JSON interface composes into one. The server is built from
its Go module, once into the user's cache.
"""

import json
import re
import shutil
import subprocess
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import parse_qs, quote, unquote, urlsplit
from urllib.request import Request, urlopen

from ingestd.dev.jars import cache_folder
from tests.support.daemon import free_port
from tests.support.http_serving import HttpServing
from tests.support.made_once import built_by_go

VERSION = "v1.56.1"
_PROGRAM = "github.com/fsouza/fake-gcs-server"
_BUILD_SECONDS = 900
_START_SECONDS = 180
BUCKET = "lake"
_CONDITION = "x-goog-if-generation-match"
_COPY = "x-goog-copy-source"
_PARTS = ".parts"
"""Where parts of uploads wait; no listing of a table's directories shows it."""
_HOP_BY_HOP = {"content-length", "connection", "transfer-encoding"}


@dataclass(frozen=True)
class GcsServer:
    """A running one, whose bucket is there and empty; paths of its files begin with `root`."""

    key_file: Path

    @property
    def root(self) -> str:
        """A path of the bucket."""
        return f"gs://{BUCKET}"

    @property
    def options(self) -> dict[str, str]:
        """Paimon's options for it."""
        return {"fs.gs.auth.service.account.json.keyfile": str(self.key_file)}

    @property
    def environment(self) -> dict[str, str]:
        """Nothing: the key names the endpoint."""
        return {}


def can_be_had() -> bool:
    """Whether the server is in the cache or can be built here."""
    return _program().exists() or shutil.which("go") is not None


def built() -> Path:
    """Its program, from the cache or built into it; SubprocessError when it cannot be."""
    return built_by_go(_program(), f"{_PROGRAM}@{VERSION}", _BUILD_SECONDS)


@contextmanager
def running_gcs(program: Path, folder: Path) -> Iterator[GcsServer]:
    """The server as long as the block runs."""
    (folder / "objects" / BUCKET).mkdir(parents=True)
    port = free_port()
    host = "127.0.0.1"
    address = ["-scheme", "http", "-host", host, "-port", str(port)]
    address += ["-public-host", f"{host}:{port}"]
    store = ["-backend", "memory", "-data", str(folder / "objects")]
    with (folder / "gcs.log").open("wb") as log:
        process = subprocess.Popen([str(program), *address, *store], stdout=log, stderr=log)
    try:
        target = f"http://127.0.0.1:{port}"
        _wait(target, process)
        with XmlFront(target) as front:
            key = {"gcs_base_url": front.endpoint, "disable_oauth": True}
            file = folder / "key.json"
            anonymous = {"client_email": "", "private_key": "", "private_key_id": ""}
            file.write_text(json.dumps({**key, **anonymous}))
            yield GcsServer(file)
    finally:
        process.kill()
        process.wait(120)


class XmlFront(HttpServing):
    """Says puts, copies and uploads in parts in the JSON interface; all else goes through."""

    def __init__(self, target: str) -> None:
        super().__init__(type("Handler", (_Handler,), {"target": target}))


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    target = ""

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        query = parse_qs(urlsplit(self.path).query)
        path = self.path
        if "partNumber" in query:
            path = f"/{BUCKET}/{_part(query['uploadId'][0], query['partNumber'][0])}"
        status, _, told = _ask(_in_json(self.target, path, self.headers, body))
        found = json.loads(told) if status == HTTPStatus.OK else {}
        made = found.get("resource", found)
        generation = str(made.get("generation", ""))
        self._answer(status, {"ETag": '"e"', "x-goog-generation": generation}, b"")

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        query = parse_qs(urlsplit(self.path).query, keep_blank_values=True)
        if "uploads" in query:
            return self._answer(200, {}, _xml("InitiateMultipartUpload", UploadId=uuid.uuid4().hex))
        upload, numbers = query["uploadId"][0], re.findall(r"<PartNumber>(\d+)<", body)
        sources = [{"name": _part(upload, number)} for number in numbers]
        bucket, name = _place(urlsplit(self.path).path)
        way = f"{self.target}/storage/v1/b/{bucket}/o"
        composed = json.dumps({"sourceObjects": sources, "destination": {}}).encode()
        place = f"{way}/{quote(name, '')}/compose"
        status, _, told = _ask(Request(place, composed, method="POST"))
        for source in sources:
            _ask(Request(f"{way}/{quote(source['name'], '')}", method="DELETE"))
        made = _xml("CompleteMultipartUpload", Bucket=bucket, Key=name, ETag="e")
        return self._answer(status, {}, made if status == HTTPStatus.OK else told)

    def do_GET(self) -> None:
        ranged = {name: self.headers[name] for name in ("Range",) if name in self.headers}
        path, _, query = self.path.partition("?")
        place = f"{self.target}{quote(unquote(path))}" + (f"?{query}" if query else "")
        self._answer(*_ask(Request(place, headers=ranged, method=self.command)))

    do_HEAD = do_GET  # noqa: N815  (name of the base class)
    do_DELETE = do_GET  # noqa: N815

    def _answer(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            if name.lower() not in _HOP_BY_HOP:
                self.send_header(name, value)
        told = headers.get("Content-Length") if self.command == "HEAD" else None
        self.send_header("Content-Length", told or str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Nothing: tests are quiet."""


def _in_json(target: str, path: str, headers: Any, body: bytes) -> Request:
    """The request that the JSON interface has for a put or a copy."""
    bucket, name = _place(urlsplit(path).path)
    if _COPY in headers:
        source, old = _place("/" + headers[_COPY].lstrip("/"))
        way = f"{source}/o/{quote(old, '')}/rewriteTo/b/{bucket}/o/{quote(name, '')}"
        return Request(f"{target}/storage/v1/b/{way}", b"{}", method="POST")
    query = f"uploadType=media&name={quote(name, '')}"
    if _CONDITION in headers:
        query += f"&ifGenerationMatch={headers[_CONDITION]}"
    plain = {"Content-Type": "application/octet-stream"}
    return Request(f"{target}/upload/storage/v1/b/{bucket}/o?{query}", body, plain, method="POST")


def _part(upload: str, number: str) -> str:
    return f"{_PARTS}/{upload}/{number}"


def _xml(what: str, **fields: str) -> bytes:
    inside = "".join(f"<{name}>{text}</{name}>" for name, text in fields.items())
    return f"<{what}Result>{inside}</{what}Result>".encode()


def _place(path: str) -> tuple[str, str]:
    bucket, _, name = path.removeprefix("/").partition("/")
    return bucket, unquote(name)


def _ask(request: Request) -> tuple[int, Mapping[str, str], bytes]:
    try:
        with urlopen(request, timeout=60) as answer:
            return answer.status, dict(answer.headers), answer.read()
    except HTTPError as error:
        return error.code, {}, error.read()


def _program() -> Path:
    return cache_folder() / "gcs" / VERSION / "fake-gcs-server"


def _wait(target: str, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + _START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        try:
            urlopen(f"{target}/storage/v1/b/{BUCKET}", timeout=30).close()
            return
        except OSError:
            time.sleep(0.1)
    raise AssertionError(f"no server at {target}")
