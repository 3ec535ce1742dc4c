from collections.abc import Mapping

import pytest

from ingestd.paimon.catalog.base import Identifier
from ingestd.paimon.catalog.hive_tables import HiveTable, new_table
from ingestd.paimon.catalog.thrift import Struct, Value, i64, structure, text, text_map
from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.schema import new_schema
from ingestd.paimon.spec.schema_apply import apply_changes
from ingestd.paimon.spec.schema_change import AddColumn, RemoveOption
from ingestd.paimon.spec.table_schema import TableSchema
from tests.support.native_tables import NOW_MS

STORAGE, PARAMETERS, ADDED_BY_A_NEWER_SERVER = 7, 9, 28
NO_OPTIONS: Mapping[str, str] = {}


def schema(options: Mapping[str, str] = NO_OPTIONS) -> TableSchema:
    columns = [("id", parse_type("INT")), ("v", parse_type("STRING"))]
    return new_schema(columns, ["id"], (), {"bucket": "1", **options}, NOW_MS)


def stored(
    table_schema: TableSchema, *, external: bool = False, sync_properties: bool = True
) -> HiveTable:
    return new_table(
        Identifier("db", "t"),
        table_schema,
        "/lake/db.db/t",
        "owner",
        1,
        external=external,
        sync_properties=sync_properties,
        in_properties=False,
    )


def properties(table: HiveTable) -> dict[str, str]:
    return dict(table.fields[PARAMETERS].content.contents)


def columns(table: HiveTable) -> tuple[Struct, ...]:
    stored_columns: tuple[Struct, ...] = table.fields[STORAGE].content[1].content.contents
    return stored_columns


def test_fields_of_newer_servers_are_sent_back() -> None:
    first = schema()
    table = stored(first)
    storage = {**table.fields[STORAGE].content, 99: text("new")}
    changed = {STORAGE: structure(storage), ADDED_BY_A_NEWER_SERVER: i64(5)}
    table = HiveTable({**table.fields, **changed})
    second = apply_changes(first, [AddColumn("w", parse_type("INT"))], NOW_MS, has_snapshots=False)
    altered = table.with_schema(second, sync_properties=True)
    assert [column[1].content for column in columns(altered)] == ["id", "v", "w"]
    assert altered.fields[ADDED_BY_A_NEWER_SERVER] == i64(5)
    assert altered.fields[STORAGE].content[99] == text("new")


def test_removed_options_are_removed_and_properties_of_others_are_kept() -> None:
    first = schema({"snapshot.time-retained": "2 h"})
    table = stored(first)
    others = text_map({**properties(table), "owner.team": "lake"})
    table = HiveTable({**table.fields, PARAMETERS: others})
    change = RemoveOption("snapshot.time-retained")
    second = apply_changes(first, [change], NOW_MS, has_snapshots=False)
    altered = table.with_schema(second, ["snapshot.time-retained"], sync_properties=True)
    expected = properties(table)
    del expected["snapshot.time-retained"]
    assert properties(altered) == expected


def test_without_sync_only_options_for_hive_are_properties() -> None:
    options = {"hive.k": "v", "partition.expiration-time": "7 d", "snapshot.time-retained": "2 h"}
    table = stored(schema(options), sync_properties=False)
    marks = {
        "table_type": "PAIMON",
        "storage_handler": "org.apache.paimon.hive.PaimonStorageHandler",
    }
    assert properties(table) == {"k": "v", "partition.expiration-time": "7 d", **marks}


def test_long_comments_of_columns_are_cut() -> None:
    change = AddColumn("w", parse_type("INT"), "é" * 300)
    table = stored(apply_changes(schema(), [change], NOW_MS, has_snapshots=False))
    assert columns(table)[-1][3].content == "é" * 256


@pytest.mark.parametrize(
    ("external", "marks", "keeps_files"),
    [
        (False, NO_OPTIONS, False),
        (True, NO_OPTIONS, True),
        (True, {"external.table.purge": "TRUE", "TRANSLATED_TO_EXTERNAL": "TRUE"}, False),
    ],
)
def test_external_tables_keep_their_files(
    external: bool, marks: Mapping[str, str], keeps_files: bool
) -> None:
    table = stored(schema(), external=external)
    marked: dict[int, Value] = {PARAMETERS: text_map({**properties(table), **marks})}
    assert HiveTable({**table.fields, **marked}).is_external == keeps_files
