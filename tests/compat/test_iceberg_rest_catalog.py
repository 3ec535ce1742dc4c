"""Tables in an Iceberg REST catalog: Iceberg's own request handlers take the updates, and pyiceberg
and Iceberg's reader in Java open the tables through it."""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from ingestd.errors import ConfigError
from ingestd.paimon.catalog.rest_auth import bearer_token
from ingestd.paimon.catalog.rest_http import RestClient
from ingestd.paimon.iceberg.iceberg_sync import repair_iceberg, sync_iceberg, update_iceberg
from ingestd.paimon.iceberg.orphan_metadata import iceberg_orphans
from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.schema_change import AddColumn, DropColumn, RenameColumn, SetOption
from ingestd.paimon.table.compact.table_compact import compact_table
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import read_snapshot
from ingestd.paimon.table.read.table_read import read_table
from ingestd.paimon.table.retention.rollback import plan_rollback, rollback
from ingestd.paimon.table.retention.tags import create_tag, delete_tags
from tests.compat.iceberg_lives import VECTORS, canonical
from tests.compat.iceberg_reader import IcebergReader, IcebergRestServer
from tests.support.native_tables import NOW_MS, alter, native_table, put
from tests.support.pypaimon import PyIceberg

pytestmark = pytest.mark.compat

COLUMNS: list[tuple[str, Any]] = [("id", "INT NOT NULL"), ("v", "STRING"), ("d", "DECIMAL(9, 2)")]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IcebergRestServer]:
    with IcebergRestServer(tmp_path_factory.mktemp("catalog")) as running:
        yield running


@pytest.fixture(scope="module")
def iceberg() -> Iterator[IcebergReader]:
    with IcebergReader() as running:
        yield running


@dataclass
class Lake:
    """A warehouse, and what readers of the catalog say of its table."""

    server: IcebergRestServer
    pyiceberg: PyIceberg
    java: IcebergReader
    warehouse: Path
    database: str

    @property
    def client(self) -> RestClient:
        return RestClient(self.server.uri, bearer_token({"token": self.server.token}))

    def options(self, **more: str) -> dict[str, str]:
        return {
            "metadata.iceberg.storage": "rest-catalog",
            "metadata.iceberg.rest.uri": self.server.uri,
            "metadata.iceberg.rest.warehouse": "lake",
            "metadata.iceberg.rest.token": self.server.token,
            "metadata.iceberg.rest.clients": "1",
            "metadata.iceberg.database": self.database,
            "bucket": "-1",
            **more,
        }

    def table(self, **how: Any) -> FileStoreTable:
        options = self.options(**how.pop("options", {}))
        return native_table(self.warehouse, COLUMNS, options=options, **how)

    def metadata(self) -> Any:
        """What the catalog has of the table; None if it does not have it."""
        found = self.client.get(f"/v1/lake/namespaces/{self.database}/tables/t")
        return None if found.missing_resource is not None else found.document["metadata"]

    def assert_shows(self, rows: list[str], tag: str | None = None) -> None:
        """Both readers see these rows."""
        settings = {"uri": self.server.uri, "token": self.server.token, "warehouse": "lake"}
        name = f"{self.database}.t"
        assert canonical(self.pyiceberg.read_in_catalog(settings, name, tag=tag)) == rows
        if tag is None:
            assert canonical(self.java.read_in_catalog(self.server, name)) == rows


@pytest.fixture
def lake(
    server: IcebergRestServer, pyiceberg: PyIceberg, iceberg: IcebergReader, tmp_path: Path
) -> Lake:
    return Lake(server, pyiceberg, iceberg, tmp_path, f"db_{uuid.uuid4().hex[:8]}")


def all_rows(table: FileStoreTable) -> list[str]:
    return canonical(read_table(table))


@pytest.mark.parametrize("version", ["2", "3"])
@pytest.mark.parametrize("partitions", [(), ("id",), ("v",)], ids=["whole", "first", "second"])
def test_readers_of_the_catalog_follow_each_commit_and_each_schema(
    version: str, partitions: tuple[str, ...], lake: Lake
) -> None:
    table = lake.table(partitions=partitions, options={"metadata.iceberg.format-version": version})
    put(table, [{"id": 1, "v": "a"}, {"id": 2, "v": "b"}])
    sync_iceberg(table)
    lake.assert_shows(all_rows(table))
    created = lake.metadata()
    assert created["default-spec-id"] == 0
    assert created["properties"]["gc.enabled"] == "false"
    for number, change in enumerate(
        (
            AddColumn("w", parse_type("INT")),
            SetOption("commit.max-retries", "9"),
            RenameColumn("d", "e"),
            DropColumn("w"),
        )
    ):
        table = alter(table, change)
        put(table, [{"id": 10 + number, "v": "c"}])
        sync_iceberg(table)
        lake.assert_shows(all_rows(table))
    known = lake.metadata()
    assert known["table-uuid"] == created["table-uuid"]
    assert [s["snapshot-id"] for s in known["snapshots"]] == [1, 2, 3, 4, 5]
    # Those of Paimon, but for the change of an option, after the empty one that Java begins with.
    assert [len(s["fields"]) for s in known["schemas"]] == [0, 3, 4, 4, 3]


def test_missed_snapshots_are_added_and_expired_ones_removed(lake: Lake) -> None:
    table = lake.table()
    put(table, [{"id": 1}])
    sync_iceberg(table)
    away = {**table.schema.options, "metadata.iceberg.rest.uri": "http://127.0.0.1:1"}
    for number in (2, 3):
        put(table, [{"id": number}])
        assert not update_iceberg(table.with_schema(replace(table.schema, options=away)))
    assert lake.metadata()["current-snapshot-id"] == 1
    assert not repair_iceberg(table).restarted
    lake.assert_shows(all_rows(table))
    assert [s["snapshot-id"] for s in lake.metadata()["snapshots"]] == [1, 2, 3]
    fewer = dict.fromkeys(("snapshot.num-retained.min", "snapshot.num-retained.max"), "1")
    table = alter(table, *(SetOption(*item) for item in fewer.items()))
    put(table, [{"id": 4}])
    sync_iceberg(table)
    assert [s["snapshot-id"] for s in lake.metadata()["snapshots"]] == [4]
    lake.assert_shows(all_rows(table))
    assert iceberg_orphans(table, 2**53) == ()


def test_tags_are_those_of_the_table(lake: Lake) -> None:
    table = lake.table()
    first = put(table, [{"id": 1}]).snapshot
    assert first is not None
    shown = all_rows(table)
    create_tag(table, "one", first, now_ms=NOW_MS)
    sync_iceberg(table, tags=True)
    lake.assert_shows(shown, tag="one")
    delete_tags(table, "one")
    sync_iceberg(table, tags=True)
    assert lake.metadata()["refs"].keys() == {"main"}


def test_a_table_that_was_rolled_back_begins_again(lake: Lake) -> None:
    table = lake.table()
    for number in range(1, 5):
        put(table, [{"id": number}])
        sync_iceberg(table)
    rollback(table, plan_rollback(table, read_snapshot(table.io, table.paths, 2)))
    sync_iceberg(table)
    lake.assert_shows(all_rows(table))
    before = lake.metadata()["table-uuid"]
    put(table, [{"id": 9}])
    sync_iceberg(table)
    lake.assert_shows(all_rows(table))
    assert lake.metadata()["table-uuid"] == before


def test_compacted_rows_of_a_table_with_a_key_and_deletion_vectors_are_shown(lake: Lake) -> None:
    more = {k: v for k, v in VECTORS.items() if k != "metadata.iceberg.storage"}
    table = lake.table(keys=("id",), options={**more, "bucket": "1"})
    put(table, [{"id": number, "v": "a"} for number in range(400)])
    compact_table(table, now_ms=NOW_MS, full=True)
    put(table, [{"id": 7, "v": "b"}])
    compact_table(table, now_ms=NOW_MS)
    sync_iceberg(table)
    lake.assert_shows(all_rows(table))


def test_a_table_of_another_kind_keeps_its_name(lake: Lake, tmp_path: Path) -> None:
    client, tables = lake.client, f"/v1/lake/namespaces/{lake.database}/tables"
    client.post("/v1/lake/namespaces", {"namespace": [lake.database]})
    column = {"id": 1, "name": "x", "required": False, "type": "int"}
    schema = {"type": "struct", "schema-id": 0, "fields": [column]}
    client.post(tables, {"name": "t", "schema": schema})
    before = lake.metadata()
    table = lake.table()
    put(table, [{"id": 1}])
    with pytest.raises(ConfigError, match=r"drop it there, or set 'metadata\.iceberg\.database'"):
        sync_iceberg(table)
    assert lake.metadata() == before
    client.delete(f"{tables}/t")
    put(table, [{"id": 2}])
    sync_iceberg(table)
    made = lake.metadata()
    other = replace(lake, warehouse=tmp_path / "other").table()
    put(other, [{"id": 3}])
    assert not update_iceberg(other)
    assert lake.metadata() == made
