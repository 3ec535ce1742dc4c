from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ingestd.paimon.format.base import BatchSize, GroupFilter, read_wanted, stream_wanted
from ingestd.paimon.format.parquet import wanted_groups
from ingestd.paimon.io.file_io import LocalFileIO
from ingestd.paimon.spec.predicate_stats import ColumnStats
from ingestd.paimon.table.write.table_write import write_file
from tests.support.native_tables import native_table, rows_table

SCHEMA = pa.schema(
    {
        "i": pa.int32(), "s": pa.string(), "d": pa.date32(), "t": pa.timestamp("us"),
        "m": pa.decimal128(9, 2), "w": pa.decimal128(30, 2), "b": pa.binary(), "x": pa.float64(),
    }
)  # fmt: skip
TYPES = {field.name: field.type for field in SCHEMA}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Three row groups of two rows; the last one is null throughout."""
    rows = [
        {"i": n, "s": f"s{n}", "d": n, "t": n, "m": Decimal(n) / 4, "w": Decimal(n), "b": b"x",
         "x": n / 2} if n < 4 else {}
        for n in range(6)
    ]  # fmt: skip
    arrays = [
        pa.array([row.get(f.name) for row in rows], pa.int32() if f.name == "d" else
                 pa.int64() if f.name == "t" else f.type).cast(f.type)
        for f in SCHEMA
    ]  # fmt: skip
    file = tmp_path / "f.parquet"
    pq.write_table(
        pa.Table.from_arrays(arrays, schema=SCHEMA), file, row_group_size=2,
        store_decimal_as_integer=True,
    )  # fmt: skip
    return file


def _stats(path: Path) -> list[dict[str, Any]]:
    seen: list[dict[str, Any]] = []

    def test(stats: Any) -> bool:
        seen.append(dict(stats))
        return True

    assert len(wanted_groups(pq.ParquetFile(path), GroupFilter(test, TYPES))) == 3
    return seen


def test_statistics_are_values_of_the_columns(path: Path) -> None:
    first, second, last = _stats(path)
    assert first["i"] == ColumnStats(0, 1, 0, 2)
    assert second["s"] == ColumnStats("s2", "s3", 0, 2)
    assert second["d"] == ColumnStats(2, 3, 0, 2)
    assert second["t"] == ColumnStats(2, 3, 0, 2)
    assert second["m"] == ColumnStats(Decimal("0.50"), Decimal("0.75"), 0, 2)
    assert second["x"] == ColumnStats(1.0, None, 0, 2)  # NaN is in no bounds, and above all
    for name in ("w", "b"):
        assert second[name] == ColumnStats(None, None, 0, 2)
    assert last["i"] == ColumnStats(None, None, 2, 2)


def test_columns_of_another_type_than_expected_are_not_known(path: Path) -> None:
    seen: list[set[str]] = []
    types = {"i": pa.int64(), "t": pa.timestamp("ms"), "s": pa.string()}
    wanted_groups(
        pq.ParquetFile(path), GroupFilter(lambda stats: not seen.append(set(stats)), types)
    )
    assert seen == [{"s"}] * 3


def test_a_column_with_a_dot_is_not_a_field_of_a_row(tmp_path: Path) -> None:
    row = {"type": "ROW", "fields": [{"id": 9, "name": "b", "type": "INT"}]}
    table = native_table(tmp_path, [("a.b", "INT"), ("a", row)])
    path = f"{tmp_path}/f.parquet"
    rows = rows_table(table.schema, [{"a.b": 1, "a": (7,)}])
    write_file(table.io, path, rows, table.options)
    seen: list[Any] = []
    types = {"a.b": pa.int32()}
    wanted_groups(pq.ParquetFile(path), GroupFilter(lambda s: not seen.append(s["a.b"]), types))
    assert seen == [ColumnStats(1, 1, 0, 1)]


def test_only_wanted_groups_are_read_and_their_places_are_reported(path: Path) -> None:
    def test(stats: Any) -> bool:
        return bool(stats["i"].low != 0)

    part = read_wanted(LocalFileIO(), str(path), ["s", "i"], GroupFilter(test, TYPES))
    assert part.rows.to_pydict() == {"s": ["s2", "s3", None, None], "i": [2, 3, None, None]}
    assert (part.ranges, part.row_count) == (((2, 2), (4, 2)), 6)
    none = read_wanted(LocalFileIO(), str(path), ["i"], GroupFilter(lambda _: False, TYPES))
    assert (none.rows.num_rows, none.rows.column_names, none.ranges) == (0, ["i"], ())
    whole = read_wanted(LocalFileIO(), str(path), None, None)
    assert (whole.rows.num_rows, whole.ranges) == (6, ((0, 6),))


def test_a_group_is_asked_for_when_its_turn_comes(path: Path) -> None:
    seen: list[Any] = []

    def test(stats: Any) -> bool:
        seen.append(stats["i"].low)
        return bool(stats["i"].low != 2)

    parts = stream_wanted(
        LocalFileIO(), str(path), ["i"], BatchSize(1 << 20), GroupFilter(test, TYPES)
    )
    count, rows = next(parts)
    assert rows is not None
    assert (count, rows.column("i").to_pylist(), seen) == (2, [0, 1], [0])
    assert next(parts) == (2, None)
    assert seen == [0, 2]
    ((_, last),) = parts
    assert last is not None
    assert (last.column("i").to_pylist(), seen) == ([None, None], [0, 2, None])


@pytest.mark.parametrize("name", ["parquet", "orc", "avro"])
def test_files_that_are_not_asked_about_are_read_whole(name: str, tmp_path: Path) -> None:
    table = native_table(tmp_path, [("i", "INT")])
    path, rows = f"{tmp_path}/f.{name}", rows_table(table.schema, [{"i": n} for n in (1, 2, 3)])
    write_file(table.io, path, rows, table.options)
    never = None if name == "parquet" else GroupFilter(lambda _: False, TYPES)
    parts = list(stream_wanted(LocalFileIO(), path, ["i"], BatchSize(1 << 20), never))
    assert [(n, None if p is None else p.column("i").to_pylist()) for n, p in parts] == [
        (3, [1, 2, 3])
    ]
