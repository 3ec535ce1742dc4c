from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest import mock

import pytest

from ingestd.daemon.console import table_details
from ingestd.daemon.console.table_details import DetailsReader, read_details
from ingestd.daemon.http_server import table_page
from ingestd.daemon.status import Status
from ingestd.errors import StorageError
from ingestd.ingest.batch_events import OpenedTable
from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.schema_change import AddColumn
from ingestd.paimon.table.compact.table_compact import compact_table
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from tests.support.native_tables import NOW_MS, alter, native_table, put
from tests.unit.daemon.console.test_views import Outline


@pytest.fixture
def table(tmp_path: Path) -> FileStoreTable:
    table = native_table(
        tmp_path, [("k", "INT"), ("v", "STRING")], keys=["k"], options={"bucket": "1"}
    )
    put(table, [{"k": 1, "v": "a"}, {"k": 2, "v": "b"}])
    compact_table(table, now_ms=NOW_MS, full=True)
    put(table, [{"k": 3, "v": "c"}])
    return alter(table, AddColumn("w<", parse_type("BIGINT")))


def test_a_table_is_shown_as_the_warehouse_has_it(table: FileStoreTable) -> None:
    details = read_details(table)
    assert [snapshot.id for snapshot in details.snapshots] == [3, 2, 1]
    assert [(level.level, level.files, level.rows) for level in details.levels] == [
        (0, 1, 1),
        (5, 1, 2),
    ]
    assert [(number, what) for number, _, what in details.schema_changes] == [
        (1, "added w< BIGINT")
    ]


def test_the_page_reads_once_in_ten_seconds_and_survives_an_outage(table: FileStoreTable) -> None:
    name = table.name
    status = Status("shop", "1", ["s"])
    status.tables_opened({name: OpenedTable(table.schema, 3, 1.0)})
    now = SimpleNamespace(seconds=0.0)
    catalog = mock.Mock(get_table=mock.Mock(return_value=table))
    reader = DetailsReader(cast("Any", None), lambda: now.seconds)
    with mock.patch.object(table_details, "open_catalog", return_value=catalog):
        for _ in range(2):
            page = Outline(table_page(name, status, reader).body.decode())
            assert page.open == []
            assert {"w<", "added w< BIGINT", "COMPACT", "key"} <= {*page.of("th"), *page.of("td")}
        assert catalog.get_table.call_count == 1
        now.seconds = 11.0
        catalog.get_table.side_effect = StorageError("s3://lake: no response")
        page = Outline(table_page(name, status, reader).body.decode())
        assert "s3://lake: no response" in page.of("li")
        assert table_page("ods.<other>", status, reader).code == 404
    assert catalog.get_table.call_count == 2
