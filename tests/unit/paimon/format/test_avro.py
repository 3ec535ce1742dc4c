"""Avro data files: what is written, and that it comes back."""

import io as bytes_io
import json
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from ingestd.errors import FormatError, UnsupportedError
from ingestd.paimon.casts.evolution import evolve
from ingestd.paimon.format.avro import read_file
from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.spec.avro_blocks import decode_blocks
from ingestd.paimon.spec.file_options import COMPRESSIONS
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.write.table_write import encoded_size, write_file
from tests.support.every_type import COLUMNS, ROWS
from tests.support.native_tables import native_table, rows_table

PATH = "/t/data-1.avro"


def _table(io: MemoryFileIO, columns: list[tuple[str, Any]], **options: str) -> FileStoreTable:
    return native_table("/w", columns, io=io, options={"file.format": "avro", **options})


def _written(io: MemoryFileIO, columns: list[tuple[str, Any]], rows: list[Any]) -> pa.Table:
    table = _table(io, columns)
    made = rows_table(table.schema, rows)
    write_file(io, PATH, made, table.options)
    return made


def test_every_type_comes_back() -> None:
    io = MemoryFileIO()
    columns = [pair for pair in COLUMNS if pair[0] != "row"]
    table = _table(io, columns)
    rows = rows_table(table.schema, ROWS)
    write_file(io, PATH, rows, table.options)
    found = evolve(read_file(io, PATH, None), table.schema.fields, table.schema.fields)
    # NaN is no equal of itself.
    assert found.drop(["float"]).equals(rows.drop(["float"]))


def test_nested_rows_and_maps_with_any_key_come_back() -> None:
    io = MemoryFileIO()
    row = {"type": "ROW", "fields": [
        {"id": 0, "name": "x", "type": "DECIMAL(5, 2)"},
        {"id": 0, "name": "m", "type": {"type": "MAP", "key": "DATE", "value": "TIME(3)"}},
    ]}  # fmt: skip
    columns = [("r", row), ("l", {"type": "ARRAY", "element": row}),
               ("s", {"type": "MAP", "key": "STRING", "value": row})]  # fmt: skip
    value = {"x": None, "m": [(1, 2), (-1, None)]}
    rows = _written(io, columns, [{"r": value, "l": [value, None], "s": [("k", value)]}, {}])
    fields = _table(MemoryFileIO(), columns).schema.fields
    assert evolve(read_file(io, PATH, None), fields, fields).equals(rows)


def test_records_have_the_names_and_logical_types_of_java() -> None:
    io = MemoryFileIO()
    columns = [
        ("t", "TIMESTAMP(3)"), ("z", "TIMESTAMP(6) WITH LOCAL TIME ZONE"),
        ("m", {"type": "MAP", "key": "INT", "value": "STRING"}),
    ]  # fmt: skip
    _written(io, columns, [{}])
    document = json.loads(decode_blocks(io.read_bytes(PATH)).schema)
    assert (document["name"], document["namespace"]) == (
        "record", "org.apache.paimon.avro.generated",
    )  # fmt: skip
    kinds = {field["name"]: field["type"][1] for field in document["fields"]}
    assert kinds["t"]["logicalType"] == "timestamp-millis"
    assert kinds["z"]["logicalType"] == "local-timestamp-micros"
    assert (kinds["m"]["logicalType"], kinds["m"]["items"]["name"]) == ("map", "record_m")


@pytest.mark.parametrize("name", COMPRESSIONS["avro"])
def test_chosen_compression_is_used(name: str) -> None:
    io = MemoryFileIO()
    table = _table(io, [("a", "INT")], **{"file.compression": name})
    rows = rows_table(table.schema, [{"a": n} for n in range(3000)])
    assert write_file(io, PATH, rows, table.options) == encoded_size(rows, table.options)
    assert read_file(io, PATH, None).equals(pa.table({"a": rows.column("a")}))
    assert COMPRESSIONS["avro"][name].encode() in io.read_bytes(PATH)[:400]


@pytest.mark.parametrize(
    ("column", "options", "message"),
    [
        (("a", "INT"), {"file.compression": "lz4"}, r"file\.compression.*lz4"),
        (("a b", "INT"), {}, "column 'a b'"),
        (("a", "TIMESTAMP(9)"), {}, "cannot be written to Avro"),
    ],
)
def test_what_avro_cannot_hold_is_refused_by_name(
    column: tuple[str, str], options: dict[str, str], message: str
) -> None:
    table = _table(MemoryFileIO(), [column], **options)
    with pytest.raises(UnsupportedError, match=message):
        encoded_size(rows_table(table.schema, [{}]), table.options)


def test_columns_come_in_the_order_asked_for_and_absent_ones_are_left_out() -> None:
    io = MemoryFileIO()
    _written(io, [("a", "INT"), ("b", "INT")], [{"a": 1, "b": 2}, {}])
    assert read_file(io, PATH, ["b", "z", "a"]).to_pydict() == {"b": [2, None], "a": [1, None]}
    assert read_file(io, PATH, ["z"]).num_rows == 2


@pytest.mark.parametrize("nullable", [False, True])
def test_files_of_other_writers_are_read(nullable: bool) -> None:
    out = bytes_io.BytesIO()
    fields = [{"name": "n", "type": ["int", "null"]}, {"name": "d", "type": {
        "type": "int", "logicalType": "date"}}]  # fmt: skip
    record = {"type": "record", "name": "x", "fields": fields}
    # Java writes a union at the root for rows of a nullable type.
    schema = ["null", record] if nullable else record
    fastavro.writer(out, schema, [{"n": None, "d": 5}, {"n": 3, "d": 6}], codec="deflate")
    io = MemoryFileIO()
    io.write_new(PATH, out.getvalue())
    found = read_file(io, PATH, None)
    assert found.column("n").to_pylist() == [None, 3]
    assert found.column("d").cast(pa.int32()).to_pylist() == [5, 6]


@pytest.mark.parametrize("cut", [0, 3, 60, -1, -20])
def test_damaged_file_is_a_format_error_that_names_it(cut: int) -> None:
    io = MemoryFileIO()
    _written(io, [("a", "STRING")], [{"a": f"{n}"} for n in range(99)])
    broken = f"{PATH}.broken"
    io.write_new(broken, io.read_bytes(PATH)[:cut])
    with pytest.raises(FormatError, match=broken):
        read_file(io, broken, None)
