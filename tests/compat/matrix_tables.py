"""Small tables, one a capability, that ingestd writes for all other readers to judge."""

from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.schema_change import AddColumn, DropColumn, RenameColumn, UpdateColumnType
from ingestd.paimon.table.commit.overwrite import drop_partitions
from ingestd.paimon.table.compact.table_compact import compact_table
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.partition_spec import parse_partition_spec
from ingestd.paimon.table.metadata.table_state import load_state
from ingestd.paimon.table.rewrite.postpone_move import move_postponed
from ingestd.paimon.table.system.analyze import analyze_table
from tests.support.every_type import COLUMNS, ROWS
from tests.support.merge_cases import BITMAPS_64, CELLS
from tests.support.moving_keys import Batch
from tests.support.native_tables import NOW_MS, USER, alter, native_table, put

Build = Callable[[Path], FileStoreTable]
PLAIN: list[tuple[str, Any]] = [("id", "INT"), ("v", "STRING"), ("n", "DECIMAL(20, 2)")]
PARTS: list[tuple[str, Any]] = [("dt", "DATE"), *PLAIN]
POINT = {
    "type": "ROW",
    "fields": [{"id": 50, "name": "x", "type": "INT"}, {"id": 51, "name": "y", "type": "STRING"}],
}
NESTED: list[tuple[str, Any]] = [
    ("id", "INT"),
    ("list", {"type": "ARRAY", "element": POINT}),
    ("map", {"type": "MAP", "key": "STRING", "value": {"type": "ARRAY", "element": "BIGINT"}}),
    ("row", POINT),
]
FAR = ("timestamp0", "timestamp6", "timestamp3", "ltz3", "date")
"""Columns with values that the types of other languages do not have."""
ORDINARY = [pair for pair in COLUMNS if pair[0] not in FAR]


def _rows(count: int = 20, start: int = 0, **cells: Any) -> list[dict[str, Any]]:
    return [
        {"id": n, "v": f"v{n % 4}", "n": Decimal(n) / 4, "dt": 19_000 + n % 3, **cells}
        for n in range(start, start + count)
    ]


def _simple(
    keys: bool = True, partitioned: bool = False, changes: bool = True, **options: str
) -> Build:
    def build(warehouse: Path) -> FileStoreTable:
        columns = PARTS if partitioned else PLAIN
        names = ["dt", "id"] if partitioned else ["id"]
        table = native_table(
            warehouse, columns, keys=names if keys else (),
            partitions=["dt"] if partitioned else (),
            options={name.replace("__", ".").replace("_", "-"): v for name, v in options.items()},
        )  # fmt: skip
        put(table, _rows())
        if keys and changes:
            put(table, [*_rows(6, 4, v="new"), {**_rows(1, 2)[0], "_kind": 3}])
        else:
            put(table, _rows(5, 100))
        return table

    return build


def _engine(columns: list[tuple[str, Any]], batches: Any, options: Mapping[str, str]) -> Build:
    def build(warehouse: Path) -> FileStoreTable:
        table = native_table(
            warehouse, columns, keys=["id"], options={"bucket": "1", **options}
        )  # fmt: skip
        for batch in batches:
            put(table, batch)
        return table

    return build


def _every_type(warehouse: Path) -> FileStoreTable:
    table = native_table(warehouse, ORDINARY, keys=["id"], options={"bucket": "1"})
    put(table, ROWS)
    return table


def _nested(warehouse: Path) -> FileStoreTable:
    table = native_table(warehouse, NESTED, keys=["id"], options={"bucket": "1"})
    cells = {"list": [(1, "a"), None], "map": [("k", [1, None])], "row": (5, None)}
    put(table, [{"id": 1, **cells}, {"id": 2}, {"id": 3, "list": [], "map": []}])
    return table


def _evolved(warehouse: Path) -> FileStoreTable:
    columns = [("id", "INT"), ("i", "INT"), ("gone", "STRING"), ("s", "VARCHAR(3)")]
    table = native_table(warehouse, columns, keys=["id"], options={"bucket": "1"})
    put(table, [{"id": 1, "i": 5, "gone": "x", "s": "abc"}, {"id": 2}])
    table = alter(
        table, RenameColumn("i", "renamed"), UpdateColumnType("renamed", parse_type("BIGINT")),
        UpdateColumnType("s", parse_type("STRING")), DropColumn("gone"),
        AddColumn("gone", parse_type("INT")),
    )  # fmt: skip
    put(table, [{"id": 3, "renamed": 2**40, "gone": 7, "s": "longer"}])
    return table


def _evolved_nested(warehouse: Path) -> FileStoreTable:
    table = _nested(warehouse)
    table = alter(
        table, AddColumn(("row", "z"), parse_type("DOUBLE")),
        UpdateColumnType(("row", "x"), parse_type("BIGINT")),
    )  # fmt: skip
    put(table, [{"id": 9, "row": (2**40, "q", 0.5)}])
    return table


def _dropped_partition(warehouse: Path) -> FileStoreTable:
    table = _simple(partitioned=True)(warehouse)
    drop_partitions(table, [parse_partition_spec(table, "dt=2022-01-09")], now_ms=NOW_MS)
    return table


def _postponed(warehouse: Path) -> FileStoreTable:
    table = _simple(partitioned=True, bucket="-2", postpone__default_bucket_num="2")(warehouse)
    move_postponed(table, USER, state=load_state(table), now_ms=NOW_MS)
    return table


def _moving(warehouse: Path) -> FileStoreTable:
    table = native_table(warehouse, PARTS, keys=["id"], partitions=["dt"])
    Batch(table).write(_rows()).commit()
    moved = [{**row, "dt": 19_005} for row in _rows(6, 4)]
    Batch(table).write([*moved, {**_rows(1, 2)[0], "_kind": 3}]).commit()
    return table


def _analyzed(warehouse: Path) -> FileStoreTable:
    table = _simple()(warehouse)
    analyze_table(table, now_ms=NOW_MS)
    return table


def _compacted(build: Build) -> Build:
    def compacted(warehouse: Path) -> FileStoreTable:
        table = build(warehouse)
        compact_table(table, now_ms=NOW_MS, full=True)
        put(table, _rows(3, 5, v="last"))
        compact_table(table, now_ms=NOW_MS)
        return table

    return compacted


def _external(warehouse: Path) -> FileStoreTable:
    paths = {
        "data-file.external-paths": f"file://{warehouse.absolute()}/outside",
        "data-file.external-paths.strategy": "round-robin",
    }
    return _engine(PLAIN, [_rows(), _rows(5, 3, v="new")], paths)(warehouse)


def _bitmaps(function: str, t: str) -> Build:
    batches = [[{"id": 1, "b": cell}] for cell in CELLS[t]]
    options = {"merge-engine": "aggregation", "fields.b.aggregate-function": function}
    return _engine([("id", "INT"), ("b", t)], batches, options)


def _multiset(warehouse: Path) -> FileStoreTable:
    columns = [("id", "INT"), ("bag", {"type": "MULTISET", "element": "STRING"})]
    table = native_table(warehouse, columns)
    put(table, [{"id": 1, "bag": [("a", 2), ("b", 1)]}, {"id": 2}])
    return table


_COUNTS: list[tuple[str, Any]] = [("id", "INT"), ("n", "BIGINT"), ("t", "STRING"), ("g", "INT")]
_BATCHES = (
    [{"id": 1, "n": 1, "t": "a", "g": 5}, {"id": 2, "n": 2, "g": 1}],
    [{"id": 1, "n": 10, "g": 4}, {"id": 2, "t": "b", "g": 9}, {"id": 3, "n": 7}],
)
CAPABILITIES: Mapping[str, Build] = {
    "append table": _simple(keys=False),
    "append table with a bucket key": _simple(keys=False, bucket="3", bucket_key="id"),
    "append table with partitions": _simple(keys=False, partitioned=True),
    "primary key, fixed buckets": _simple(bucket="2"),
    "primary key, bucket function mod": _simple(bucket="2", bucket_function__type="mod"),
    "primary key, bucket function hive": _simple(bucket="3", bucket_function__type="hive"),
    "primary key, postponed buckets, moved": _postponed,
    "keys that move between partitions": _moving,
    "hash indexes beside the data files": _simple(
        partitioned=True, index_file_in_data_file_dir="true"
    ),
    "primary key, dynamic buckets": _simple(dynamic_bucket__target_row_num="6"),
    "primary key, dynamic buckets, partitions": _simple(partitioned=True),
    "every primitive type": _every_type,
    "nested types": _nested,
    "MULTISET": _multiset,
    **{f"file format {name}": _simple(bucket="1", file__format=name) for name in ("orc", "avro")},
    **{
        f"file compression {name}": _simple(bucket="1", file__compression=name)
        for name in ("none", "snappy", "lz4", "gzip")
    },
    "statistics mode none": _simple(bucket="1", metadata__stats_mode="none"),
    "statistics mode full": _simple(bucket="1", metadata__stats_mode="full"),
    "bloom filter file index": _simple(keys=False, file_index__bloom_filter__columns="v"),
    "bitmap file index": _simple(keys=False, file_index__bitmap__columns="v"),
    "bsi file index": _simple(keys=False, file_index__bsi__columns="id"),
    "range-bitmap file index": _simple(keys=False, file_index__range_bitmap__columns="id"),
    "thin data files": _simple(bucket="1", data_file__thin_mode="true"),
    "data files in another directory": _simple(bucket="1", data_file__path_directory="data"),
    "data files in an external path": _external,
    "row tracking": _simple(keys=False, row_tracking__enabled="true"),
    "record-level expiry": _simple(
        bucket="1", record_level__expire_time="36500 d", record_level__time_field="id"
    ),
    "deletion vectors": _compacted(_simple(bucket="1", deletion_vectors__enabled="true")),
    "deletion vectors of 64 bits": _compacted(
        _simple(bucket="1", deletion_vectors__enabled="true", deletion_vectors__bitmap64="true")
    ),
    "merge engine partial-update": _engine(_COUNTS, _BATCHES, {"merge-engine": "partial-update"}),
    "partial-update with sequence groups": _engine(
        _COUNTS, _BATCHES, {"merge-engine": "partial-update", "fields.g.sequence-group": "n,t"}
    ),
    "merge engine aggregation": _engine(
        _COUNTS, _BATCHES,
        {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum",
         "fields.t.aggregate-function": "listagg", "fields.g.aggregate-function": "max"},
    ),
    "bitmaps of 32 bits (rbm32)": _bitmaps("rbm32", "BYTES"),
    "bitmaps of 64 bits (rbm64)": _bitmaps("rbm64", BITMAPS_64),
    "sequence.field": _engine(_COUNTS, _BATCHES, {"sequence.field": "g"}),
    "sequence.field descending": _engine(
        _COUNTS, _BATCHES, {"sequence.field": "g", "sequence.field.sort-order": "descending"}
    ),
    "rowkind.field": _engine(
        [("id", "INT"), ("op", "STRING")],
        [[{"id": 1, "op": "+I"}, {"id": 2, "op": "+I"}], [{"id": 2, "op": "-D"}]],
        {"rowkind.field": "op"},
    ),
    "ignore-delete": _engine(
        PLAIN, [_rows(4), [{"id": 1, "_kind": 3}]], {"ignore-delete": "true"}
    ),
    "schema changes": _evolved,
    "schema changes inside a ROW": _evolved_nested,
    "dropped partition": _dropped_partition,
    "ANALYZE statistics": _analyzed,
}  # fmt: skip
