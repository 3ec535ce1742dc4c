"""The catalog with a server, where its answers are not those of a plain day.

Its plain days are judged by Paimon's own server, in tests/compat.
"""

from typing import Any

import pytest

from ingestd.errors import ConfigError, SchemaConflictError, StorageError, UnsupportedError
from ingestd.paimon.catalog.base import (
    Catalog,
    DatabaseNotEmptyError,
    Identifier,
    TableExistsError,
    TableNotFoundError,
    load_catalog,
)
from ingestd.paimon.catalog.rest_messages import schema_document
from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.schema import new_schema
from ingestd.paimon.spec.schema_change import AddColumn
from tests.support.scripted_http import Reply, ScriptedServer, Step

ORDERS = Identifier("shop", "orders")
SCHEMA = new_schema([("id", parse_type("INT"))], ["id"], [], {"bucket": "1"}, 0)
TABLE = {
    "id": "uuid",
    "path": "file:/lake/shop.db/orders",
    "schemaId": 0,
    "schema": schema_document(SCHEMA),
}
MISSING = Reply(404, {"resourceType": "TABLE", "message": "gone"})
NO_DATABASE = Reply(404, {"resourceType": "DATABASE", "message": "no database"})


def opened(server: ScriptedServer, *script: Step, config: Any = None, **options: str) -> Catalog:
    server.script[:] = [Reply(200, config or {"defaults": {"prefix": "p"}}), *script]
    return load_catalog("rest", "lake", {"uri": server.uri, **options})


@pytest.fixture
def server() -> Any:
    with ScriptedServer([]) as running:
        yield running


def test_the_server_settles_the_prefix_and_headers(server: ScriptedServer) -> None:
    config = {
        "defaults": {"prefix": "a/b", "header.X-A": "theirs", "header.X-B": "theirs"},
        "overrides": {"header.X-C": "theirs"},
    }
    given = {"header.X-B": "ours", "header.X-C": "ours", "warehouse": "instance"}
    catalog = opened(server, Reply(200, {"databases": ["b", "a"]}), config=config, **given)
    assert catalog.list_databases() == ["a", "b"]
    assert server.asked[0].path == "/v1/config?warehouse=instance"
    assert server.asked[1].path == "/v1/a%2Fb/databases"
    headers = server.asked[1].headers
    assert (headers["x-a"], headers["x-b"], headers["x-c"]) == ("theirs", "ours", "theirs")


def test_a_server_whose_names_have_no_capitals_is_refused(server: ScriptedServer) -> None:
    with pytest.raises(UnsupportedError, match="case-sensitive"):
        opened(server, config={"overrides": {"case-sensitive": "false"}})


def test_an_unknown_warehouse_and_a_missing_address_are_reported() -> None:
    script = [Reply(404, {"message": "no lake"})]
    unknown = pytest.raises(ConfigError, match="no warehouse 'lake': no lake")
    with ScriptedServer(script) as server, unknown:
        load_catalog("rest", "lake", {"uri": server.uri})
    with pytest.raises(ConfigError, match="'uri'"):
        load_catalog("rest", "lake")


def test_a_table_is_what_the_server_says_it_is(server: ScriptedServer) -> None:
    table = opened(server, Reply(200, TABLE)).get_table(ORDERS)
    assert (table.path, table.name) == ("/lake/shop.db/orders", "shop.orders")
    assert table.schema == SCHEMA
    assert table.snapshot_commit is not None
    assert server.asked[1].path == "/v1/p/databases/shop/tables/orders"


def test_a_table_that_lies_where_we_cannot_go_is_refused(server: ScriptedServer) -> None:
    for path, problem in (("cosn://bucket/t", "cosn"), (None, "no path")):
        with pytest.raises(UnsupportedError, match=problem):
            opened(server, Reply(200, {**TABLE, "path": path})).get_table(ORDERS)


def test_a_missing_table_comes_with_the_nearest_name(server: ScriptedServer) -> None:
    catalog = opened(server, MISSING, Reply(200, {"tables": ["order"]}))
    with pytest.raises(TableNotFoundError, match="did you mean 'order'"):
        catalog.get_table(ORDERS)


def test_a_missing_database_is_created_with_its_first_table(server: ScriptedServer) -> None:
    catalog = opened(server, NO_DATABASE, Reply(200), Reply(200), Reply(200, TABLE))
    assert catalog.create_table(ORDERS, SCHEMA).schema == SCHEMA
    assert [(one.method, one.path) for one in server.asked[1:]] == [
        ("POST", "/v1/p/databases/shop/tables"),
        ("POST", "/v1/p/databases"),
        ("POST", "/v1/p/databases/shop/tables"),
        ("GET", "/v1/p/databases/shop/tables/orders"),
    ]
    assert server.asked[1].document["identifier"] == {"database": "shop", "object": "orders"}


def test_a_table_that_is_there_is_an_error_or_the_answer(server: ScriptedServer) -> None:
    with pytest.raises(TableExistsError):
        opened(server, Reply(409)).create_table(ORDERS, SCHEMA)
    catalog = opened(server, Reply(409), Reply(200, TABLE))
    assert catalog.create_table(ORDERS, SCHEMA, ignore_if_exists=True).schema == SCHEMA


def test_changes_that_cannot_be_are_refused_here_or_there(server: ScriptedServer) -> None:
    with pytest.raises(SchemaConflictError):
        opened(server, Reply(200, TABLE)).alter_table(
            ORDERS, [AddColumn("id", parse_type("INT"))], 0
        )
    refused = Reply(409, {"resourceType": "COLUMN", "message": "there is a column v"})
    with pytest.raises(SchemaConflictError, match="there is a column v"):
        opened(server, Reply(200, TABLE), refused).alter_table(
            ORDERS, [AddColumn("v", parse_type("INT"))], 0
        )
    assert opened(server, Reply(200, TABLE)).alter_table(ORDERS, [], 0).schema == SCHEMA


def test_a_rename_whose_answer_was_lost_is_looked_after(server: ScriptedServer) -> None:
    target = Identifier("shop", "new")
    opened(server, None, MISSING, Reply(200, TABLE)).rename_table(ORDERS, target)
    with pytest.raises(StorageError):
        opened(server, None, Reply(200, TABLE)).rename_table(ORDERS, target)
    with pytest.raises(TableExistsError):
        opened(server, Reply(409)).rename_table(ORDERS, target)


def test_a_database_with_tables_is_kept_unless_told(server: ScriptedServer) -> None:
    with pytest.raises(DatabaseNotEmptyError, match="orders"):
        opened(server, Reply(200, {"tables": ["orders"]})).drop_database("shop")
    opened(server, Reply(200, {"tables": ["orders"]}), Reply(200)).drop_database(
        "shop", cascade=True
    )
    assert server.asked[-1].method == "DELETE"


def test_missing_databases_are_distinguished_from_refusals(server: ScriptedServer) -> None:
    with pytest.raises(TableNotFoundError, match="no database 'shop'"):
        opened(server, NO_DATABASE, Reply(200, {"databases": ["b"]})).list_tables("shop")
    with pytest.raises(ConfigError, match="403"):
        opened(server, Reply(403)).list_tables("shop")
