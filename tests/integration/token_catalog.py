"""A REST catalog that hands out credentials per table, in front of a real S3 server.

    with TokenCatalog(s3, {"orders": "bucket-of-orders"}, seconds=4) as server:
        catalog = load_catalog("rest", "lake", server.options)

It decides where tables are: each in a bucket of its own. Every token is a new account of the S3
server, which deletes it when the token expires. Paimon's own server knows neither of both.
"""

import json
import threading
import time
import urllib.parse
import uuid
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler
from typing import Any

from ingestd.paimon.catalog.base import Catalog, Identifier, load_catalog
from ingestd.paimon.catalog.rest_messages import schema_document, schema_of
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from tests.support.http_serving import HttpServing
from tests.support.s3_server import S3Server

PREFIX = "/v1/lake"


class TokenCatalog(HttpServing):
    """`buckets` of tables by name; `failures` are statuses that the next requests get instead.

    With `owners`, all tokens of a table are the account that owns its bucket. The paths of tables
    have the scheme `scheme`, and tokens the names of its options.
    """

    token = "planted-catalog-token-9f3"
    scheme = "s3"

    def __init__(
        self, s3: S3Server, buckets: Mapping[str, str], *, seconds: float, owners: bool = False
    ) -> None:
        self.s3, self.buckets, self.seconds = s3, buckets, seconds
        self.given: list[tuple[str, str, str]] = []
        self.failures: list[int] = []
        self.asked: list[str] = []
        self.external = False
        self._ids: dict[str, str] = {}
        self._owners: dict[str, tuple[str, str]] = {}
        self._lock = threading.RLock()
        for table, bucket in buckets.items():
            key = f"owner-{uuid.uuid4().hex[:8]}"
            s3.create_account(key, f"secret-{key}", "user")
            s3.create_bucket(bucket, key)
            if owners:
                self._owners[table] = (key, f"secret-{key}")
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def _answer(self) -> None:
                data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                given = self.headers.get("Authorization")
                status, document = outer.answer(
                    self.command, self.path, json.loads(data) if data else {}, given
                )
                body = json.dumps(document).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = do_DELETE = _answer  # noqa: N815  (names of the base class)

            def log_message(self, *_: Any) -> None:
                """Nothing: tests are quiet."""

        super().__init__(Handler)

    @property
    def options(self) -> dict[str, str]:
        """What a catalog needs to reach it, and the store, whose keys it does not get."""
        own = {name: value for name, value in self.s3.options.items() if "key" not in name}
        return {**own, "uri": self.endpoint, "token": self.token}

    def table(self, name: str, database: str = "shop") -> FileStoreTable:
        """A table as the server sees it, with the keys of the store itself."""
        return self._home(name).get_table(Identifier(database, name))

    def alter(self, name: str, changes: Any, database: str = "shop") -> None:
        """Publish a schema beside all clients."""
        self._home(name).alter_table(Identifier(database, name), changes, 0)

    def answer(
        self, method: str, target: str, document: Any, authorization: str | None
    ) -> tuple[int, Any]:
        """The status and the document for a request."""
        path = urllib.parse.unquote_plus(target.partition("?")[0])
        self.asked.append(f"{method} {path}")
        if self.failures:
            return self.failures.pop(0), {"message": "as the test wants it"}
        if authorization != f"Bearer {self.token}":
            return 401, {"message": "no such token"}
        if path == "/v1/config":
            return 200, {"defaults": {"prefix": "lake", "data-token.enabled": "true"}}
        parts = path.removeprefix(f"{PREFIX}/databases").strip("/").split("/")
        with self._lock:
            match (method, *filter(None, parts)):
                case (_, database, "tables", name, *rest) if name in self._ids:
                    return self._answer_table(method, database, name, rest, document)
                case (_, _, "tables", name, *_):
                    return 404, {"resourceType": "TABLE", "message": f"no table {name}"}
                case ("GET", _, "tables"):
                    return 200, {"tables": sorted(self._ids)}
                case ("POST", database, "tables"):
                    return self._create(database, document)
        return 200, {"options": {}}

    def _answer_table(
        self, method: str, database: str, name: str, rest: list[str], document: Any
    ) -> tuple[int, Any]:
        match (method, *rest):
            case ("GET",):
                return 200, self._table_document(database, name)
            case ("GET", "token"):
                return 200, self._token(name)
            case ("POST", "commit"):
                return 200, {"success": self._commit(database, name, document)}
        return 501, {"message": f"{method} {rest}"}

    def _create(self, database: str, document: Any) -> tuple[int, Any]:
        name = document["identifier"]["object"]
        if name in self._ids:
            return 409, {"resourceType": "TABLE"}
        schema = schema_of({"schemaId": 0, "schema": document["schema"]}, name)
        self._home(name).create_table(Identifier(database, name), schema)
        self._ids[name] = uuid.uuid4().hex
        return 200, {}

    def _table_document(self, database: str, name: str) -> Any:
        table = self.table(name, database)
        return {
            "id": self._ids[name],
            "name": name,
            "path": table.path.replace("s3:", f"{self.scheme}:"),
            "isExternal": self.external,
            "schemaId": table.schema.id,
            "schema": schema_document(table.schema),
        }

    def _token(self, name: str) -> Any:
        if name in self._owners:
            key, secret = self._owners[name]
        else:
            key = f"{name}-{uuid.uuid4().hex[:12]}"
            secret = f"planted-{uuid.uuid4().hex}"
            self.s3.create_account(key, secret, "admin")
            removal = threading.Timer(self.seconds, self.s3.delete_account, (key,))
            removal.daemon = True
            removal.start()
        expires_at = int((time.time() + self.seconds) * 1000)
        self.given.append((name, key, secret))
        token = {"fs.s3a.access.key": key, "fs.s3a.secret.key": secret, "io-cache.enabled": "true"}
        if self.scheme == "oss":
            token = {"fs.oss.accessKeyId": key, "fs.oss.accessKeySecret": secret}
        return {"token": token, "expiresAtMillis": expires_at}

    def _commit(self, database: str, name: str, document: Any) -> bool:
        table = self.table(name, database)
        snapshot = document["snapshot"]
        assert document["tableId"] == self._ids[name]
        path = table.paths.snapshot(snapshot["id"])
        return table.io.try_write_atomic(path, json.dumps(snapshot).encode())

    def _home(self, name: str) -> Catalog:
        bucket = self.buckets.get(name, self.s3.bucket)
        return load_catalog("filesystem", f"s3://{bucket}/managed", self.s3.options)
