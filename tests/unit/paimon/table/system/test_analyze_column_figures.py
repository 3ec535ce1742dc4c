import pyarrow as pa

from ingestd.paimon.spec.data_types import DataField, parse_type
from ingestd.paimon.table.system import analyze
from ingestd.paimon.table.system.analyze import ColumnStatsCollector


def figures(kind: str, *parts: pa.ChunkedArray) -> dict[str, object]:
    one = ColumnStatsCollector(DataField(3, "c", parse_type(kind)))
    for part in parts:
        one.add(part)
    return one.result().document()


def column(values: list[object], kind: pa.DataType) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(values, kind)])


def test_distinct_values_of_several_parts_count_once(monkeypatch: object) -> None:
    analyze._MIN_DISTINCT, before = 4, analyze._MIN_DISTINCT
    try:
        parts = [column([n % 7, n, None], pa.int64()) for n in range(30)]
        found = figures("BIGINT", *parts)
    finally:
        analyze._MIN_DISTINCT = before
    assert (found["distinctCount"], found["nullCount"]) == (30, 30)
    assert (found["min"], found["max"]) == ("0", "29")


def test_a_nan_leaves_bounds_unknown() -> None:
    assert "min" not in figures("DOUBLE", column([1.0, float("nan")], pa.float64()))
    assert figures("DOUBLE", column([1.0, 1e20], pa.float64()))["max"] == "1.0E20"


def test_nanoseconds_are_kept() -> None:
    found = figures("TIMESTAMP(9)", column([1, 5], pa.timestamp("ns")))
    assert found["max"] == "1970-01-01 00:00:00.000000005"


def test_a_column_of_nulls_or_without_rows_has_no_bounds() -> None:
    found = figures("STRING", column([None, None], pa.string()))
    assert found == {"colId": 3, "distinctCount": 0, "nullCount": 2}
    assert figures("INT") == {
        "colId": 3, "distinctCount": 0, "nullCount": 0, "avgLen": 4, "maxLen": 4,
    }  # fmt: skip


def test_lengths_are_characters_of_texts_and_bytes_of_binaries() -> None:
    assert figures("STRING", column(["éé", "é"], pa.string()))["maxLen"] == 2
    assert figures("BYTES", column([b"123", b""], pa.binary()))["avgLen"] == 2


def test_years_that_other_readers_cannot_parse_are_left_unknown() -> None:
    year_0, year_10000 = -62_167_219_200_000, 253_402_300_800_000
    found = figures("TIMESTAMP(3)", column([year_0, 0, year_10000], pa.timestamp("ms")))
    assert found == {"colId": 3, "distinctCount": 3, "nullCount": 0, "avgLen": 8, "maxLen": 8}
