"""Commands on tables of a REST catalog: the server decides what is committed and forgotten."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ingestd.paimon.catalog.base import Catalog, Identifier, load_catalog
from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.schema import new_schema
from ingestd.paimon.table.verify.table_verify import verify
from tests.support.command_line import run_command
from tests.support.native_tables import NOW_MS, put
from tests.support.rest_server import RestServer

pytestmark = pytest.mark.compat

TABLE = Identifier("db", "t")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestServer]:
    with RestServer(tmp_path_factory.mktemp("lake")) as running:
        yield running


@pytest.fixture
def catalog(server: RestServer) -> Catalog:
    opened = load_catalog("rest", server.warehouse, server.options)
    schema = new_schema([("id", parse_type("INT"))], ["id"], (), {"bucket": "1"}, NOW_MS)
    opened.create_table(TABLE, schema)
    for number in range(4):
        put(opened.get_table(TABLE), [{"id": number}])
    return opened


def test_commands_work_through_the_server(
    server: RestServer, catalog: Catalog, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text(server.token)
    given = ("--metastore", "rest", "--uri", server.uri, "--catalog-option", f"token-file={token}")

    def shown(*command: object) -> Any:
        done = run_command(capsys, *command, *given, "--json")
        assert done.code == 0, done.err
        return json.loads(
            f"[{','.join(done.out.splitlines())}]" if command[0] == "read" else done.out
        )

    lake = server.warehouse
    assert [one["table"] for one in shown("tables", lake)] == ["db.t"]
    assert [one["id"] for one in shown("read", lake, "db.t")] == [0, 1, 2, 3]
    assert shown("truncate", lake, "db.t", "--yes")["snapshot"] == 5
    assert shown("read", lake, "db.t") == []
    assert shown("rollback", lake, "db.t", "--snapshot", 3, "--yes")["deleted_snapshots"] == [4, 5]
    assert [one["id"] for one in shown("read", lake, "db.t")] == [0, 1, 2]
    put(catalog.get_table(TABLE), [{"id": 9}])
    assert [one["id"] for one in shown("read", lake, "db.t")] == [0, 1, 2, 9]
    assert shown("expire", "snapshots", lake, "db.t", "--retain-max", 1)["snapshots"] == [1, 2, 3]
    assert shown("remove-orphans", lake, "db.t", "--older-than", "0 ms", "--yes")["files"]
    assert verify(catalog.get_table(TABLE)) == []
    assert run_command(capsys, "rollback", lake, "db.t", "--snapshot", 2, *given).code == 2
