"""Checking snapshots, hints and manifests of a table."""

from dataclasses import replace
from typing import Any

import pytest

from ingestd.errors import ConfigError, UnsupportedError
from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.spec.manifest import encode_manifest, encode_manifest_list
from ingestd.paimon.spec.snapshot import encode_snapshot
from ingestd.paimon.table.metadata.file_store_scan import read_manifest, read_manifest_list
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import read_snapshot
from ingestd.paimon.table.verify.table_verify import verify
from tests.support.native_tables import native_table, put


@pytest.fixture
def table() -> FileStoreTable:
    columns = [("p", "INT"), ("id", "INT"), ("v", "STRING")]
    made = native_table("/w", columns, keys=["p", "id"], partitions=["p"], io=MemoryFileIO())
    for number in range(3):
        put(made, [{"p": n % 2, "id": n, "v": str(number)} for n in range(number, 8)])
    return made


def _codes(table: FileStoreTable, **given: Any) -> set[tuple[str, str]]:
    return {(finding.severity, finding.code) for finding in verify(table, **given)}


def _overwrite(table: FileStoreTable, path: str, data: bytes) -> None:
    table.io.overwrite(path, data)


def _change_snapshot(table: FileStoreTable, number: int, **changes: Any) -> None:
    snapshot = replace(read_snapshot(table.io, table.paths, number), **changes)
    _overwrite(table, table.paths.snapshot(number), encode_snapshot(snapshot))


def test_nothing_is_wrong_with_a_table_written_here(table: FileStoreTable) -> None:
    assert verify(table) == []
    assert verify(table, 1) == []


def test_nothing_is_wrong_with_an_empty_table() -> None:
    assert verify(native_table("/w", [("a", "INT")], io=MemoryFileIO())) == []


def test_a_snapshot_that_does_not_exist_is_the_callers_mistake(table: FileStoreTable) -> None:
    with pytest.raises(ConfigError, match="no snapshot 9"):
        verify(table, 9)


def test_a_table_that_cannot_be_read_is_refused() -> None:
    options = {"bucket": "1", "pk-clustering-override": "true"}
    table = native_table("/w", [("a", "INT")], keys=["a"], options=options, io=MemoryFileIO())
    with pytest.raises(UnsupportedError, match="pk-clustering-override"):
        verify(table)


def test_a_gap_between_snapshots_is_found(table: FileStoreTable) -> None:
    table.io.delete_quietly(table.paths.snapshot(2))
    assert _codes(table) == {("error", "snapshot-gap")}


def test_a_torn_snapshot_is_found_by_its_name(table: FileStoreTable) -> None:
    _overwrite(table, table.paths.snapshot(2), b'{"id":')
    (finding,) = verify(table)
    assert (finding.code, finding.where) == ("unreadable", "snapshot-2")


def test_a_snapshot_under_another_number_is_found(table: FileStoreTable) -> None:
    _change_snapshot(table, 2, id=7)
    (finding,) = verify(table)
    assert (finding.code, finding.where) == ("unreadable", "snapshot-2")
    assert "contains snapshot 7" in finding.message


@pytest.mark.parametrize("field", ["total_record_count", "delta_record_count"])
def test_wrong_record_counts_are_found(table: FileStoreTable, field: str) -> None:
    _change_snapshot(table, 3, **{field: 1})
    assert _codes(table) == {("error", "record-count")}


def test_identifiers_that_go_back_are_unusual(table: FileStoreTable) -> None:
    _change_snapshot(table, 3, commit_identifier=1)
    assert _codes(table) == {("warning", "commit-identifier")}


@pytest.mark.parametrize("hint", ["LATEST", "EARLIEST"])
def test_stale_hints_are_unusual(table: FileStoreTable, hint: str) -> None:
    _overwrite(table, f"{table.paths.snapshot_dir}/{hint}", b"2")
    (finding,) = verify(table)
    assert (finding.severity, finding.code, finding.where) == ("warning", "hint", hint)


def test_a_missing_schema_is_found(table: FileStoreTable) -> None:
    _change_snapshot(table, 3, schema_id=5)
    assert _codes(table) == {("error", "schema")}


def test_a_missing_manifest_list_is_found(table: FileStoreTable) -> None:
    name = read_snapshot(table.io, table.paths, 3).base_manifest_list
    table.io.delete_quietly(table.paths.manifest(name))
    assert {finding.where for finding in verify(table)} >= {name}


def test_a_manifest_list_of_another_size_than_promised_is_found(table: FileStoreTable) -> None:
    _change_snapshot(table, 3, base_manifest_list_size=1)
    assert _codes(table) == {("error", "file-size")}


def test_a_torn_manifest_is_found_by_its_name(table: FileStoreTable) -> None:
    name = _delta_manifest(table)
    _overwrite(table, table.paths.manifest(name), b"Obj\x01")
    assert ("unreadable", name) in {(finding.code, finding.where) for finding in verify(table)}


def _delta_manifest(table: FileStoreTable) -> str:
    snapshot = read_snapshot(table.io, table.paths, 3)
    (meta,) = read_manifest_list(table.io, table.paths, snapshot.delta_manifest_list)
    return meta.file_name


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"num_added_files": 9}, "manifest-count"),
        ({"min_bucket": 1}, "manifest-range"),
        ({"max_level": -1}, "manifest-range"),
        ({"file_size": 1}, "file-size"),
    ],
)
def test_what_a_manifest_list_says_wrongly_is_found(
    table: FileStoreTable, changes: dict[str, int], code: str
) -> None:
    name = read_snapshot(table.io, table.paths, 3).delta_manifest_list
    (meta,) = read_manifest_list(table.io, table.paths, name)
    data = encode_manifest_list([replace(meta, **changes)])
    _overwrite(table, table.paths.manifest(name), data)
    _change_snapshot(table, 3, delta_manifest_list_size=len(data))
    assert _codes(table) == {("error", code)}


def test_partitions_outside_of_the_bounds_of_a_manifest_are_found(table: FileStoreTable) -> None:
    name = read_snapshot(table.io, table.paths, 3).delta_manifest_list
    (meta,) = read_manifest_list(table.io, table.paths, name)
    stats = replace(meta.partition_stats, max_values=meta.partition_stats.min_values)
    data = encode_manifest_list([replace(meta, partition_stats=stats)])
    _overwrite(table, table.paths.manifest(name), data)
    _change_snapshot(table, 3, delta_manifest_list_size=len(data))
    assert _codes(table) == {("error", "stats")}


@pytest.mark.parametrize(("kind", "code"), [(0, "double-add"), (1, "delete-unknown")])
def test_files_added_twice_or_deleted_without_need_are_found(
    table: FileStoreTable, kind: int, code: str
) -> None:
    name = _delta_manifest(table)
    entries = read_manifest(table.io, table.paths, name)
    other = replace(entries[0], kind=type(entries[0].kind)(kind))
    if kind:
        other = replace(other, file=replace(other.file, level=3))
    _overwrite(table, table.paths.manifest(name), encode_manifest([*entries, other]))
    assert ("error", code) in _codes(table)
