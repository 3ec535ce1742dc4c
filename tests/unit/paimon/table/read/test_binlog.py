import pyarrow as pa
import pytest

from ingestd.paimon.spec.data_types import DataField, DataType
from ingestd.paimon.table.read.binlog import binlog_fields, packed_rows, single_rows

FIELDS = (
    DataField(-1, "kind", DataType("STRING", nullable=False)),
    DataField(0, "id", DataType("INT", nullable=False)),
    DataField(1, "v", DataType("STRING")),
)


def rows(*kinds: str) -> pa.Table:
    numbers = range(len(kinds))
    return pa.table(
        {
            "kind": pa.array(kinds, pa.string()),
            "id": pa.array(numbers, pa.int32()),
            "v": pa.array([None if n == 1 else f"v{n}" for n in numbers], pa.string()),
        }
    )


def test_every_column_of_the_table_becomes_an_array() -> None:
    fields = binlog_fields(FIELDS)
    assert [str(field.type) for field in fields[:1]] == ["STRING NOT NULL"]
    assert [field.type.element for field in fields[1:]] == [DataType("INT"), DataType("STRING")]


def test_rows_alone_are_arrays_of_one() -> None:
    made = single_rows(rows("+I", "-D"), binlog_fields(FIELDS))
    assert made.to_pylist() == [
        {"kind": "+I", "id": [0], "v": ["v0"]},
        {"kind": "-D", "id": [1], "v": [None]},
    ]


@pytest.mark.parametrize(
    ("kinds", "wanted"),
    [
        (["+I", "-U", "+U", "-D"], [("+I", [0]), ("+U", [1, 2]), ("-D", [3])]),
        (["-U", "+U", "-U", "+U"], [("+U", [0, 1]), ("+U", [2, 3])]),
        (["-U", "-U", "+U", "+I"], [("-U", [0, 1]), ("+U", [2]), ("+I", [3])]),
        (["-U", "-U", "-U", "+U"], [("-U", [0, 1]), ("+U", [2, 3])]),
        (["+U", "-U"], [("+U", [0]), ("-U", [1])]),
        ([], []),
    ],
)
def test_an_update_is_one_row(kinds: list[str], wanted: list[tuple[str, list[int]]]) -> None:
    made = packed_rows(rows(*kinds), binlog_fields(FIELDS), "kind")
    assert [(row["kind"], row["id"]) for row in made.to_pylist()] == wanted


def test_parts_of_tables_are_taken_as_they_are() -> None:
    whole = rows("+I", "+I", "-U", "+U")
    parts = pa.concat_tables([whole.slice(1, 1), whole.slice(2, 2)])
    made = packed_rows(parts, binlog_fields(FIELDS), "kind")
    assert [row["id"] for row in made.to_pylist()] == [[1], [2, 3]]
