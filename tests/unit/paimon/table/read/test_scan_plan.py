from collections.abc import Mapping

import pytest

from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.predicate_text import parse_predicate
from ingestd.paimon.spec.schema_change import AddColumn, DropColumn
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot
from ingestd.paimon.table.read.scan_plan import ReadPlan
from ingestd.paimon.table.read.table_read import TableReader, read_table
from tests.support.native_tables import alter, native_table, put

COLUMNS = [("p", "INT"), ("k", "INT"), ("v", "STRING")]


def _plan(table: FileStoreTable, text: str) -> ReadPlan:
    snapshot = latest_snapshot(table.io, table.paths)
    assert snapshot is not None
    predicate = parse_predicate(text, table.schema.fields)
    return TableReader(table, predicate=predicate).plan(snapshot)


def _keyed(**options: str) -> FileStoreTable:
    """Partitions 0 and 1 in a file each with keys 0..9, and newer rows of keys 5..14 in 1."""
    table = native_table(
        "/w", COLUMNS, keys=["p", "k"], partitions=["p"], options={"bucket": "1", **options},
        io=MemoryFileIO(),
    )  # fmt: skip
    put(table, [{"p": p, "k": k, "v": "old"} for p in (0, 1) for k in range(10)])
    put(table, [{"p": 1, "k": k, "v": "new"} for k in range(5, 15)])
    return table


@pytest.mark.parametrize(
    ("text", "files", "skipped"),
    [
        ("k >= 0", 3, {}),
        # Files of manifests that are not opened are not counted.
        ("p = 0", 1, {"partition": 1}),
        ("p IN (2, 3)", 0, {}),
        ("p = 1 AND k = 0 OR p = 2", 1, {"key bounds": 2}),
        ("k = 12", 1, {"key bounds": 2}),
        ("p = 1 AND k < 3", 1, {"partition": 1, "key bounds": 1}),
        # A file without wanted values may hold the newest row of a key.
        ("v = 'old'", 3, {}),
        ("v = 'new'", 2, {"column statistics": 1}),
        ("v = 'newer'", 0, {"column statistics": 3}),
        ("v = 'old' OR k = 99", 3, {}),
    ],
)
def test_files_of_a_primary_key_table_are_left_out_for_a_reason(
    text: str, files: int, skipped: Mapping[str, int]
) -> None:
    plan = _plan(_keyed(), text)
    assert (plan.files_read, dict(plan.files_skipped)) == (files, skipped)


def test_manifests_of_other_partitions_are_not_opened() -> None:
    assert _plan(_keyed(), "p = 0").manifests_skipped == 1
    assert _plan(_keyed(), "k = 0").manifests_skipped == 0


def test_an_old_row_does_not_come_back_when_its_successor_is_not_wanted() -> None:
    table = _keyed()
    predicate = parse_predicate("v = 'old' AND p = 1", table.schema.fields)
    assert sorted(read_table(table, predicate=predicate).column("k").to_pylist()) == [0, 1, 2, 3, 4]


def test_values_that_are_merged_rule_nothing_out() -> None:
    columns = [("k", "INT"), ("n", "INT")]
    options = {"bucket": "1", "merge-engine": "aggregation", "fields.n.aggregate-function": "sum"}
    table = native_table("/w", columns, keys=["k"], options=options, io=MemoryFileIO())
    for _ in range(2):
        put(table, [{"k": 1, "n": 5}])
    assert _plan(table, "n = 10").files_read == 2
    predicate = parse_predicate("n = 10", table.schema.fields)
    assert read_table(table, predicate=predicate).to_pydict() == {"k": [1], "n": [10]}


def test_fixed_buckets_of_other_keys_are_left_out() -> None:
    table = native_table("/w", COLUMNS, keys=["k"], options={"bucket": "8"}, io=MemoryFileIO())
    put(table, [{"k": k} for k in range(200)])
    for text, most in (("k = 7", 1), ("k IN (7, 8)", 2), ("k = 7 AND v IS NULL", 1)):
        plan = _plan(table, text)
        assert 1 <= plan.files_read <= most
        assert plan.files_skipped["bucket"] >= 8 - most
        predicate = parse_predicate(text, table.schema.fields)
        assert 7 in read_table(table, predicate=predicate).column("k").to_pylist()
    assert "bucket" not in _plan(table, "k > 7").files_skipped
    assert "bucket" not in _plan(table, "k = 7 OR k = 8").files_skipped


def test_level_0_is_hidden_where_deletion_vectors_are() -> None:
    table = _keyed()
    hidden = table.with_schema(
        type(table.schema)(
            **{name: getattr(table.schema, name) for name in table.schema.__slots__}
            | {"options": {"bucket": "1", "deletion-vectors.enabled": "true"}}
        )
    )
    plan = _plan(hidden, "k >= 0")
    assert (plan.files_read, sum(plan.files_skipped.values())) == (0, 3)
    assert read_table(hidden).num_rows == 0


def test_append_files_are_judged_one_by_one() -> None:
    table = native_table("/w", COLUMNS, io=MemoryFileIO())
    for start in (0, 100, 200):
        put(table, [{"p": 0, "k": k, "v": f"v{k}"} for k in range(start, start + 10)])
    assert _plan(table, "k BETWEEN 105 AND 150").files_read == 1
    assert _plan(table, "NOT k < 200").files_read == 1
    assert _plan(table, "v LIKE 'v10%'").files_read == 2
    assert _plan(table, "v IS NULL").files_read == 0


def test_a_row_of_which_a_file_has_no_field_is_found_as_null() -> None:
    row = {"type": "ROW", "fields": [{"id": 9, "name": "x", "type": "INT"}]}
    table = native_table("/w", [("k", "INT"), ("r", row)], io=MemoryFileIO())
    put(table, [{"k": 1, "r": (1,)}])
    table = alter(table, AddColumn(("r", "y"), parse_type("INT")), DropColumn(("r", "x")))
    for text, found in (("r IS NULL", [1]), ("r IS NOT NULL", [])):
        predicate = parse_predicate(text, table.schema.fields)
        assert read_table(table, predicate=predicate).column("k").to_pylist() == found


def test_buckets_are_not_computed_of_blanks_that_orc_loses() -> None:
    options = {"bucket": "8", "file.format": "orc"}
    table = native_table("/w", [("k", "CHAR(4)")], keys=["k"], options=options, io=MemoryFileIO())
    put(table, [{"k": key.ljust(4)} for key in ("a", "b", "c", "d")])
    for key in ("a", "b", "c", "d"):
        predicate = parse_predicate(f"k = '{key}'", table.schema.fields)
        assert read_table(table, predicate=predicate).to_pydict() == {"k": [key]}
