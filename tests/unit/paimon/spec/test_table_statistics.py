import pytest

from ingestd.errors import FormatError
from ingestd.paimon.spec.table_statistics import (
    ColumnStatistics,
    TableStatistics,
    encode_statistics,
    parse_statistics,
)

WHOLE = TableStatistics(
    snapshot_id=2,
    schema_id=0,
    merged_record_count=10,
    merged_record_size=1000,
    columns=(
        ColumnStatistics(
            name="a", id=0, distinct_count=1, min="1", max="2", null_count=0, avg_len=4, max_len=4
        ),
        ColumnStatistics(name="b", id=1),
    ),
)


def test_statistics_read_back() -> None:
    assert parse_statistics(encode_statistics(WHOLE), "f") == WHOLE
    bare = TableStatistics(
        snapshot_id=1, schema_id=0, merged_record_count=None, merged_record_size=None
    )
    assert parse_statistics(encode_statistics(bare), "f") == bare


def test_the_file_of_java_is_understood() -> None:
    data = b"""{"snapshotId" : 3, "schemaId" : 1, "mergedRecordCount" : 5, "unknown" : 1,
    "colStats" : {"orderId" : {"colId" : 0, "distinctCount" : 5, "min" : "111", "max" : "555",
    "nullCount" : 0, "avgLen" : 8, "maxLen" : 8}}}"""
    found = parse_statistics(data, "f")
    assert (found.merged_record_count, found.merged_record_size) == (5, None)
    assert (found.columns[0].name, found.columns[0].max) == ("orderId", "555")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{}",
        b'{"snapshotId": "x", "schemaId": 1}',
        b'{"snapshotId": 1, "schemaId": 1, "colStats": {"a": {}}}',
    ],
)
def test_a_damaged_file_is_named(data: bytes) -> None:
    with pytest.raises(FormatError, match="stat-x"):
        parse_statistics(data, "stat-x")
