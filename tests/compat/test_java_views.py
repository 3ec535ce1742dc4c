"""What system tables, tags, conditions and audit logs show, beside what Java shows of them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ingestd.paimon.casts.rows_json import sorted_json_lines
from ingestd.paimon.catalog.base import load_catalog
from ingestd.paimon.catalog.sys_tables import read_sys_table, sys_fields
from ingestd.paimon.spec.predicate_text import parse_predicate
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot
from ingestd.paimon.table.metadata.time_travel import branch_names, on_branch, tagged_snapshot
from ingestd.paimon.table.read.table_read import TableReader, read_table
from ingestd.paimon.table.system.system_tables import SYSTEM_TABLES, read_system_table
from tests.support.java_fixtures import NAMES, JavaFixture, unpack
from tests.support.oracle import Oracle

pytestmark = pytest.mark.compat

Unpack = Callable[[str], JavaFixture]
VIEWED = (
    "aggregation", "changelog_full_compaction", "dv_append", "dv_pk", "evolution_pk_parquet",
    "partition_special", "pk_partitioned_dynamic", "snapshots_expired_tags",
)  # fmt: skip


@pytest.fixture(scope="module")
def fixture(tmp_path_factory: pytest.TempPathFactory) -> Unpack:
    known: dict[str, JavaFixture] = {}

    def get(name: str) -> JavaFixture:
        if name not in known:
            known[name] = unpack(name, tmp_path_factory.mktemp("java"))
        return known[name]

    return get


def _comparable(lines: list[str], view: str) -> list[Any]:
    rows = [json.loads(line) for line in lines]
    if view == "aggregation_fields":
        for row in rows:
            for name in ("function", "function_options"):
                row[name] = sorted(row[name].strip("[]").split(", "))
        return rows
    if view != "schemas":
        return rows
    # Java prints options in the order of a hash table.
    texts = ("fields", "options")
    return [{**row, **{name: json.loads(row[name]) for name in texts}} for row in rows]


@pytest.mark.parametrize("name", VIEWED)
def test_system_tables_are_those_of_java(name: str, fixture: Unpack, oracle: Oracle) -> None:
    table = fixture(name).table
    snapshot = latest_snapshot(table.io, table.paths)
    for view, made in SYSTEM_TABLES.items():
        lines = sorted_json_lines(read_system_table(table, view, snapshot), made.fields)
        wanted = oracle.read_lines(fixture(name).warehouse, "db", f"t${view}")
        assert _comparable(lines, view) == _comparable(wanted, view), view


@pytest.mark.parametrize("view", ["tables", "partitions", "all_table_options"])
def test_tables_of_the_catalog_are_those_of_java(
    view: str, fixture: Unpack, oracle: Oracle
) -> None:
    warehouse = fixture("partition_special").warehouse
    catalog = load_catalog("filesystem", str(warehouse))
    lines = [
        line
        for part in read_sys_table(catalog, view)
        for line in sorted_json_lines(part, sys_fields(view))
    ]
    assert sorted(lines) == oracle.read_lines(warehouse, "sys", view)


@pytest.mark.parametrize("name", ["changelog_input", "dv_pk", "snapshots_expired_tags"])
def test_audit_logs_are_those_of_java(name: str, fixture: Unpack, oracle: Oracle) -> None:
    reader = TableReader(fixture(name).table, audit=True)
    snapshot = latest_snapshot(reader.table.io, reader.table.paths)
    assert snapshot is not None
    lines = [
        line for row in reader.rows(snapshot)
        for line in sorted_json_lines(row, reader.row_fields())
    ]  # fmt: skip
    assert sorted(lines) == sorted(oracle.read_lines(fixture(name).warehouse, "db", "t$audit_log"))


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("index_")])
def test_conditions_find_the_rows_that_java_finds(name: str, fixture: Unpack) -> None:
    table = fixture(name).table
    assert fixture(name).filters
    for condition, wanted in fixture(name).filters:
        column, value = condition.split("=", 1)
        text = f"{column} IS NULL" if value == "null" else f"{column} = '{value}'"
        predicate = parse_predicate(text, table.schema.fields)
        found = sorted_json_lines(read_table(table, predicate=predicate), table.schema.fields)
        assert [json.loads(line) for line in found] == wanted, condition


def _skipped(table: FileStoreTable, text: str) -> dict[str, int]:
    predicate = parse_predicate(text, table.schema.fields)
    snapshot = latest_snapshot(table.io, table.paths)
    assert snapshot is not None
    return dict(TableReader(table, predicate=predicate).plan(snapshot).files_skipped)


def test_indexes_and_statistics_of_java_spare_files(fixture: Unpack) -> None:
    for name in ("index_bitmap", "index_bloom_embedded", "index_bloom_sidecar"):
        table = fixture(name).table
        assert _skipped(table, "s = 'nope'") == {"file index": 3}
        assert _skipped(table, "k = 105") == {"column statistics": 2}
    assert _skipped(fixture("pk_partitioned_fixed").table, "day = '2024-02-27'") == {
        "partition": 11
    }


def test_tags_keep_their_rows(fixture: Unpack) -> None:
    name = "snapshots_expired_tags"
    table = fixture(name).table
    assert fixture(name).tags
    for tag, wanted in fixture(name).tags.items():
        snapshot = tagged_snapshot(table, tag)
        then = table.with_schema(table.schemas(snapshot.schema_id))
        lines = [
            line
            for row in TableReader(then).rows(snapshot)
            for line in sorted_json_lines(row, then.schema.fields)
        ]
        found = [json.loads(line) for line in lines]
        assert sorted(found, key=str) == sorted(wanted, key=str), tag


def test_a_branch_of_java_is_read(fixture: Unpack, tmp_path: Path) -> None:
    """A branch is a copy of a tag, which is how Java makes one."""
    made = unpack("snapshots_expired_tags", tmp_path)
    root = made.warehouse / "db.db" / "t"
    tag = json.loads((root / "tag" / "tag-t1").read_text())
    branch = root / "branch" / "branch-b"
    (branch / "snapshot").mkdir(parents=True)
    (branch / "schema").mkdir()
    (branch / "snapshot" / f"snapshot-{tag['id']}").write_text(json.dumps(tag))
    (branch / "schema" / "schema-0").write_bytes((root / "schema" / "schema-0").read_bytes())
    table = on_branch(made.table, "b")
    found = sorted_json_lines(read_table(table), table.schema.fields)
    assert [json.loads(line) for line in found] == made.tags["t1"]
    assert branch_names(table.io, table.paths) == ["b"]
