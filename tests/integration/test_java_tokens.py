"""Credentials of a real S3 server that Paimon's own REST catalog server hands out.

Java's server and client find the objects among the files of the S3 server, because Paimon's client
of S3 is not among the archives of the tests; the credentials and requests for them are Java's.
"""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ingestd.errors import StorageError
from ingestd.paimon.catalog.base import Catalog, Identifier, load_catalog
from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.schema import new_schema
from tests.support.native_tables import NOW_MS, put
from tests.support.oracle import Oracle, OracleError
from tests.support.rest_server import RestServer, s3_files
from tests.support.s3_server import S3Server, built, can_be_had, running_s3
from tests.support.stored_rows import stored_rows

pytestmark = [
    pytest.mark.integration,
    pytest.mark.compat,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not can_be_had(), reason="the S3 server is built with go"),
]
ORDERS = Identifier("shop", "orders")
BUCKET = "of-java"


@pytest.fixture
def s3(tmp_path: Path) -> Iterator[S3Server]:
    with running_s3(built(), tmp_path) as server:
        server.create_account("owner", "secret-owner", "user")
        server.create_bucket(BUCKET, "owner")
        yield server


class Server(RestServer):
    """With a name that Java's client sends as its server reads it."""

    warehouse = "lake"


@pytest.fixture
def server(s3: S3Server, tmp_path: Path) -> Iterator[RestServer]:
    folder = tmp_path / "managed"
    objects = s3.folder.parent / BUCKET / folder.relative_to("/")
    objects.mkdir(parents=True)
    folder.symlink_to(objects)
    with Server(f"s3://{BUCKET}{folder}", data_tokens=True) as running:
        yield running


@pytest.fixture
def catalog(s3: S3Server, server: RestServer) -> Catalog:
    store = {name: value for name, value in s3.options.items() if "key" not in name}
    return load_catalog("rest", server.warehouse, {**store, **server.options})


def in_seconds(seconds: float) -> int:
    return int((time.time() + seconds) * 1000)


def test_javas_server_hands_out_credentials_and_javas_client_reads_and_writes_with_them(
    s3: S3Server, server: RestServer, catalog: Catalog, tmp_path: Path
) -> None:
    server.give_token(ORDERS, "owner", "secret-owner", in_seconds(3600))
    columns = [("id", parse_type("INT"))]
    table = catalog.create_table(ORDERS, new_schema(columns, ["id"], [], {"bucket": "1"}, NOW_MS))
    put(table, [{"id": 1}])
    put(table, [{"id": 2}])
    assert table.path == f"s3://{BUCKET}{tmp_path}/managed/shop.db/orders"
    given = {"metastore": "rest", "warehouse": server.warehouse, "cache-enabled": "false"}
    theirs = json.dumps({**given, **server.options, "token.provider": "bear"})
    with Oracle(more=s3_files()) as java:
        rows = java.read(theirs, "shop", "orders")
        assert rows == [{"id": 1}, {"id": 2}]
        java.append(theirs, "shop", "orders", [{"id": 3}], tmp_path)
        put(catalog.get_table(ORDERS), [{"id": 4}])
        assert [row["id"] for row in java.read(theirs, "shop", "orders")] == [1, 2, 3, 4]
        assert sorted(row["id"] for row in stored_rows(table)) == [1, 2, 3, 4]
        without = json.dumps({**given, **server.options, "token.provider": "bear",
                              "data-token.enabled": "false"})  # fmt: skip
        with pytest.raises(OracleError):
            java.read(without, "shop", "orders")


def test_a_token_of_javas_server_is_replaced_by_the_next(
    s3: S3Server, server: RestServer, catalog: Catalog
) -> None:
    server.give_token(ORDERS, "owner", "secret-owner", in_seconds(4))
    columns = [("id", parse_type("INT"))]
    table = catalog.create_table(ORDERS, new_schema(columns, ["id"], [], {"bucket": "1"}, NOW_MS))
    put(table, [{"id": 1}])
    s3.create_account("second", "secret-second", "admin")
    server.give_token(ORDERS, "second", "secret-second", in_seconds(3600))
    time.sleep(4)
    s3.delete_account("owner")
    put(table, [{"id": 2}])
    assert sorted(row["id"] for row in stored_rows(table)) == [1, 2]
    s3.delete_account("second")
    with pytest.raises(StorageError, match="403"):
        put(table, [{"id": 3}])
