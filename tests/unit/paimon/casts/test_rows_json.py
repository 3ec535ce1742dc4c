"""Rows as canonical JSON lines."""

import json

import pyarrow as pa

from ingestd.paimon.casts.rows_json import json_lines, sort_lines, sorted_json_lines
from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.spec.data_types import DataField, DataType, parse_type
from tests.support.every_type import COLUMNS, ROWS
from tests.support.native_tables import native_table, rows_table


def _line(text: str, column: pa.Array) -> list[str]:
    return json_lines(pa.table({"c": column}), [DataField(0, "c", parse_type(text))])


def test_every_line_is_json_with_the_columns_in_order() -> None:
    table = native_table("/w", COLUMNS, io=MemoryFileIO())
    lines = json_lines(rows_table(table.schema, ROWS), table.schema.fields)
    documents = [json.loads(line) for line in lines]
    assert [document["id"] for document in documents] == [row["id"] for row in ROWS]
    assert all(list(document) == [name for name, _ in COLUMNS] for document in documents)


def test_strings_are_escaped_as_jackson_does() -> None:
    text = '"\\/\b\f\n\r\t\x01\x1f\x7f\u2028é𝄞'
    assert _line("STRING", pa.array([text, "plain", None])) == [
        '{"c":"\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001F\x7f\u2028é𝄞"}',
        '{"c":"plain"}',
        '{"c":null}',
    ]


def test_column_names_are_escaped_too() -> None:
    fields = [DataField(0, 'a"b', DataType("INT"))]
    assert json_lines(pa.table({'a"b': pa.array([1], pa.int32())}), fields) == ['{"a\\"b":1}']


def test_numbers_are_printed_as_java_prints_doubles() -> None:
    column = pa.array([0.1, -0.0, 0.0, float("nan"), float("-inf"), 1e7, None], pa.float32())
    assert [line[5:-1] for line in _line("FLOAT", column)] == [
        "0.10000000149011612", "-0.0", "0.0", '"NaN"', '"-Infinity"', "1.0E7", "null",
    ]  # fmt: skip


def test_binary_is_hex() -> None:
    assert _line("BYTES", pa.array([b"\x00\xff", b"", None])) == [
        '{"c":"00ff"}', '{"c":""}', '{"c":null}',
    ]  # fmt: skip


def test_maps_are_pairs_ordered_by_the_text_of_the_key() -> None:
    t = DataType("MAP", key=DataType("INT"), value=DataType("STRING"))
    column = pa.array([[(9, "x"), (10, None)], [], None], pa.map_(pa.int32(), pa.string()))
    lines = json_lines(pa.table({"c": column}), [DataField(0, "c", t)])
    assert lines == ['{"c":[[10,null],[9,"x"]]}', '{"c":[]}', '{"c":null}']


def test_slices_of_nested_columns_show_their_own_rows() -> None:
    t = DataType("ARRAY", element=DataType("STRING"))
    column = pa.array([["a"], ["b", None], None, ["d"]])
    lines = json_lines(pa.table({"c": column}).slice(1, 2), [DataField(0, "c", t)])
    assert lines == ['{"c":["b",null]}', '{"c":null}']


def test_rows_are_objects_and_a_null_row_is_null() -> None:
    t = DataType("ROW", fields=(DataField(1, "x", DataType("INT")),))
    column = pa.array([{"x": 1}, {"x": None}, None], pa.struct([("x", pa.int32())]))
    lines = json_lines(pa.table({"c": column}), [DataField(0, "c", t)])
    assert lines == ['{"c":{"x":1}}', '{"c":{"x":null}}', '{"c":null}']


def test_lines_are_ordered_by_utf16_code_units() -> None:
    assert sort_lines(["\ue000", "𝄞", "z", "A"]) == ["A", "z", "𝄞", "\ue000"]


def test_sorted_lines_are_the_lines_sorted() -> None:
    rows = pa.table({"c": pa.array([10, 9], pa.int32())})
    fields = [DataField(0, "c", DataType("INT"))]
    assert sorted_json_lines(rows, fields) == ['{"c":10}', '{"c":9}']


def test_no_rows_are_no_lines() -> None:
    fields = [DataField(0, "c", DataType("INT"))]
    assert json_lines(pa.table({"c": pa.array([], pa.int32())}), fields) == []
