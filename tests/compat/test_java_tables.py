"""Tables that Java Paimon wrote, read and verified here."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from ingestd.paimon.casts.rows_json import json_lines, sorted_json_lines
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot, read_snapshot
from ingestd.paimon.table.read.incremental_read import change_fields, iter_changelog
from ingestd.paimon.table.read.point_read import PointReader
from ingestd.paimon.table.read.table_read import read_table
from ingestd.paimon.table.verify.table_verify import verify
from tests.support.java_fixtures import CHANGING, NAMES, JavaFixture, unpack
from tests.support.oracle import Oracle

pytestmark = pytest.mark.compat

Unpack = Callable[[str], JavaFixture]


@pytest.fixture(scope="module")
def fixture(tmp_path_factory: pytest.TempPathFactory) -> Unpack:
    known: dict[str, JavaFixture] = {}

    def get(name: str) -> JavaFixture:
        if name not in known:
            known[name] = unpack(name, tmp_path_factory.mktemp("java"))
        return known[name]

    return get


def test_there_are_fixtures() -> None:
    assert len(NAMES) >= 61
    assert len(CHANGING) >= 18


@pytest.mark.parametrize("name", NAMES)
def test_newest_rows_are_what_java_reads(name: str, fixture: Unpack) -> None:
    table = fixture(name).table
    lines = sorted_json_lines(read_table(table), table.schema.fields)
    found = fixture(name).settled([json.loads(line) for line in lines])
    assert found == fixture(name).settled(fixture(name).rows)


@pytest.mark.parametrize("name", NAMES)
def test_each_key_has_the_row_that_java_reads(name: str, fixture: Unpack) -> None:
    table = fixture(name).table
    names = table.schema.primary_keys
    if not names:
        pytest.skip("an append table has no keys")
    keys, snapshot = read_table(table, columns=names), latest_snapshot(table.io, table.paths)
    fields = table.schema.fields
    expected = fixture(name).settled(fixture(name).rows)
    for start, count in ((0, keys.num_rows), (keys.num_rows // 2, 1)):
        wanted = keys.slice(start, count)
        parts = [sorted_json_lines(p, fields) for p in PointReader(table, snapshot, wanted).rows()]
        rows = [json.loads(line) for line in sorted(line for part in parts for line in part)]
        assert len(rows) == wanted.num_rows
        assert all(row in expected for row in fixture(name).settled(rows))


def test_java_looks_up_the_same_rows(fixture: Unpack, oracle: Oracle, tmp_path: Path) -> None:
    for name in ("pk_partitioned_fixed", "evolution_pk_parquet", "changelog_lookup"):
        table = fixture(name).table
        names, snapshot = table.schema.primary_keys, latest_snapshot(table.io, table.paths)
        keys = read_table(table, columns=names)
        some = keys.take(list(range(0, keys.num_rows, 3)))
        lines = [
            line
            for part in PointReader(table, snapshot, some).rows()
            for line in sorted_json_lines(part, table.schema.fields)
        ]
        typed = [json.loads(line) for line in json_lines(some, table.schema.select(names))]
        found = oracle.get(fixture(name).warehouse, "db", "t", typed, tmp_path)
        assert sorted(lines) == sorted(
            json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in found
        ), name


@pytest.mark.parametrize("name", NAMES)
def test_every_older_snapshot_is_what_java_reads(name: str, fixture: Unpack) -> None:
    for snapshot_id, expected in fixture(name).snapshots.items():
        newest = fixture(name).table
        snapshot = read_snapshot(newest.io, newest.paths, snapshot_id)
        table = newest.at_schema(snapshot.schema_id)
        rows = read_table(table, snapshot_id=snapshot_id)
        lines = sorted_json_lines(rows, table.schema.fields)
        found = fixture(name).settled([json.loads(line) for line in lines])
        assert found == fixture(name).settled(expected), snapshot_id


@pytest.mark.parametrize("name", CHANGING)
def test_changelog_is_what_a_java_streaming_reader_is_given(name: str, fixture: Unpack) -> None:
    table = fixture(name).table
    lines = [
        line for part in iter_changelog(table) for line in json_lines(part, change_fields(table))
    ]
    found = fixture(name).settled([json.loads(line) for line in lines])
    assert found == fixture(name).settled(fixture(name).changelog) != []


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_found_wrong_with_it(name: str, fixture: Unpack) -> None:
    assert verify(fixture(name).table) == []


@pytest.mark.parametrize("name", NAMES)
def test_printed_rows_are_those_of_java_byte_for_byte(
    name: str, fixture: Unpack, oracle: Oracle, tmp_path: Path
) -> None:
    table = fixture(name).table
    lines = sorted_json_lines(read_table(table), table.schema.fields)
    assert lines == oracle.read_lines(fixture(name).warehouse, "db", "t")
