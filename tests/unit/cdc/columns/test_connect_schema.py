"""Columns of Connect schemas: the types they become and the values they give."""

import json
import math
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pytest

from ingestd.cdc.base import Decoded, load_data_format
from ingestd.cdc.columns.connect_schema import ConnectSchemaError, row_schema, struct_columns
from ingestd.paimon.spec.data_types import DataType, parse_type
from tests.support.change_events import TABLE, chunk, event, field, key, wrapped, wrapped_key

DECIMAL = "org.apache.kafka.connect.data.Decimal"
TIME = "io.debezium.time."
CONNECT = "org.apache.kafka.connect.data."


def naive(*parts: int) -> datetime:
    """A moment without a zone."""
    return datetime(*parts, tzinfo=UTC).replace(tzinfo=None)  # type: ignore[arg-type,misc]


MOMENT = naive(2024, 2, 29, 12, 34, 56, 789012)


def decimal(scale: int, precision: int | None = None) -> dict[str, Any]:
    parameters = {"scale": str(scale)}
    if precision is not None:
        parameters["connect.decimal.precision"] = str(precision)
    return field("v", "bytes", DECIMAL, parameters=parameters)


def array(items: dict[str, Any]) -> dict[str, Any]:
    return field("v", "array", items={k: v for k, v in items.items() if k != "field"})


VARIABLE = field("v", "struct", "io.debezium.data.VariableScaleDecimal", fields=[])
CASES: list[tuple[dict[str, Any], Any, str, Any]] = [
    (field("v", "boolean"), True, "BOOLEAN", True),
    (field("v", "int8"), -128, "TINYINT", -128),
    (field("v", "int16"), 32767, "SMALLINT", 32767),
    (field("v", "int32"), -(2**31), "INT", -(2**31)),
    (field("v", "int64"), 2**63 - 1, "BIGINT", 2**63 - 1),
    (field("v", "float"), 1.5, "FLOAT", 1.5),
    (field("v", "float"), "-Infinity", "FLOAT", -math.inf),
    (field("v", "double"), 0.1, "DOUBLE", 0.1),
    (field("v", "double"), 3, "DOUBLE", 3.0),
    (field("v", "string"), "ä\u0000", "STRING", "ä\u0000"),
    (field("v", "bytes"), "/wAB", "BYTES", b"\xff\x00\x01"),
    (field("v", "int32", TIME + "Date"), -719162, "DATE", date(1, 1, 1)),
    (field("v", "int32", CONNECT + "Date"), 0, "DATE", date(1970, 1, 1)),
    (field("v", "int32", TIME + "Time"), 3723456, "TIME(3)", time(1, 2, 3, 456000)),
    (field("v", "int32", CONNECT + "Time"), 0, "TIME(3)", time(0)),
    (field("v", "int64", TIME + "MicroTime"), 86400000000, "BIGINT", 86400000000),
    (field("v", "int64", TIME + "NanoTime"), 1, "BIGINT", 1),
    (field("v", "int64", TIME + "Timestamp"), -1, "TIMESTAMP(3)", None),
    (field("v", "int64", CONNECT + "Timestamp"), 0, "TIMESTAMP(3)", naive(1970, 1, 1)),
    (field("v", "int64", TIME + "MicroTimestamp"), 1709210096789012, "TIMESTAMP(6)", MOMENT),
    (field("v", "int64", TIME + "NanoTimestamp"), 2**63 - 1, "BIGINT", 2**63 - 1),
    (field("v", "string", TIME + "ZonedTimestamp"), "2024-02-29T12:34:56.789012Z",
     "TIMESTAMP(6) WITH LOCAL TIME ZONE", MOMENT.replace(tzinfo=UTC)),
    (field("v", "string", TIME + "ZonedTime"), "23:02:03.456Z", "STRING", "23:02:03.456Z"),
    (field("v", "string", TIME + "IsoDate"), "1582-10-15Z", "DATE", date(1582, 10, 15)),
    (field("v", "string", TIME + "IsoTimestamp"), "2024-02-29T12:34:56.789012Z", "TIMESTAMP(6)",
     MOMENT),
    (field("v", "int32", TIME + "Year"), 2155, "INT", 2155),
    (field("v", "int64", TIME + "MicroDuration"), 2**63 - 1, "BIGINT", 2**63 - 1),
    (field("v", "string", TIME + "Interval"), "P0Y1M", "STRING", "P0Y1M"),
    (decimal(2, 12), "E5niMCU=", "DECIMAL(12, 2)", Decimal("841861161.33")),
    (decimal(2, 12), "/w==", "DECIMAL(12, 2)", Decimal("-0.01")),
    (decimal(2, 12), "", "DECIMAL(12, 2)", Decimal("0.00")),
    (decimal(2, 12), 1.25, "DECIMAL(12, 2)", Decimal("1.25")),
    (decimal(2), "AeJA", "DECIMAL(38, 2)", Decimal("1234.56")),
    (decimal(-2, 3), "AQ==", "DECIMAL(5, 0)", Decimal("100")),
    (decimal(5, 2), "Yw==", "DECIMAL(5, 5)", Decimal("0.00099")),
    (decimal(2, 40), "/w==", "STRING", "-0.01"),
    (decimal(10, 38), "SztMqFqGxHoJiiI//////w==", "DECIMAL(38, 10)",
     Decimal("9999999999999999999999999999.9999999999")),
    (VARIABLE, {"scale": 3, "value": "MDk="}, "STRING", "12.345"),
    (VARIABLE, {"scale": -2, "value": "AQ=="}, "STRING", "100"),
    (VARIABLE, {"scale": 12, "value": "AQ=="}, "STRING", "0.000000000001"),
    (VARIABLE, 1.50, "STRING", "1.5"),
    (field("v", "bytes", "io.debezium.data.Bits", parameters={"length": "12"}), "/w8=", "BYTES",
     b"\x0f\xff"),
    (field("v", "bytes", "io.debezium.data.Bits", parameters={"length": "12"}), "", "BYTES",
     b"\x00\x00"),
    (field("v", "bytes", "io.debezium.data.Bits", parameters={"length": "2147483647"}), "AgE=",
     "BYTES", b"\x01\x02"),
    (field("v", "bytes", "io.debezium.data.Bits", parameters={"length": "1"}), "AQ==", "BOOLEAN",
     True),
    (field("v", "string", "io.debezium.data.Json"), '{"a": 1,  "b":null}', "STRING",
     '{"a": 1,  "b":null}'),
    (field("v", "struct", "io.debezium.data.geometry.Point", fields=[]), {"x": 1.5, "srid": None},
     "STRING", '{"x": 1.5, "srid": null}'),
    (array(field("", "int32")), [1, None], "ARRAY<INT>", [1, None]),
    (array(field("", "double")), [1.5, "NaN"], "ARRAY<DOUBLE>", None),
    (array(field("", "string", TIME + "ZonedTimestamp")), ["1970-01-01T00:00:00Z", None],
     "ARRAY<TIMESTAMP(6) WITH LOCAL TIME ZONE>", [datetime(1970, 1, 1, tzinfo=UTC), None]),
    (array(decimal(2, 10)), ["bg==", None], "ARRAY<DECIMAL(10, 2)>", [Decimal("1.10"), None]),
    (array(VARIABLE), [{"scale": 1, "value": "AQ=="}], "ARRAY<STRING>", ["0.1"]),
    (array(array(field("", "int32"))), [[1], []], "STRING", "[[1], []]"),
    (field("v", "map", keys={"type": "string"}, values={"type": "string", "optional": True}),
     {"k": "v", "n": None}, "MAP<STRING NOT NULL, STRING>", [("k", "v"), ("n", None)]),
    (field("v", "map", keys={"type": "int32"}, values={"type": "string"}), [[1, "a"]], "STRING",
     '[[1, "a"]]'),
]  # fmt: skip


def decode(column: dict[str, Any], value: Any, declared: str | None = None) -> Decoded:
    columns = [column]
    values = [wrapped(event("c", {"v": v}), columns) for v in (value, None)]
    types = {} if declared is None else {TABLE: {"v": parse_type(declared)}}
    return load_data_format("debezium-json").decode(chunk(values), {}, types)


@pytest.mark.parametrize(("column", "value", "data_type", "wanted"), CASES)
def test_column_becomes_its_type(
    column: dict[str, Any], value: Any, data_type: str, wanted: Any
) -> None:
    decoded = decode(column, value)
    assert decoded.rejected == []
    [batch] = decoded.batches
    assert str(batch.types["v"]) == data_type
    cells = batch.columns.column("v")
    assert cells[1].as_py() is None
    if wanted is not None:
        assert cells[0].as_py() == wanted


@pytest.mark.parametrize(
    ("column", "value", "number"),
    [
        (field("v", "string", TIME + "ZonedTimestamp"), "infinity", 9223372036825200000),
        (field("v", "string", TIME + "ZonedTimestamp"), "-infinity", -9223372036832400000),
        (field("v", "int64", TIME + "MicroTimestamp"), 9223372036825200000, 9223372036825200000),
        (field("v", "int64", TIME + "Timestamp"), -1, -1),
        (field("v", "string", TIME + "ZonedTimestamp"), "-0043-03-15T00:00:00Z", None),
    ],
)
def test_timestamps_keep_the_whole_range(
    column: dict[str, Any], value: Any, number: int | None
) -> None:
    decoded = decode(column, value)
    assert decoded.rejected == []
    cell = decoded.batches[0].columns.column("v").combine_chunks().view("int64")[0].as_py()
    assert cell == number or (number is None and cell < -62135596800000000)


@pytest.mark.parametrize(
    ("column", "value", "declared", "wanted"),
    [
        (decimal(2, 12), "E5niMCU=", "STRING", "841861161.33"),
        (decimal(2, 12), "E5niMCU=", "DOUBLE", 841861161.33),
        (decimal(2, 12), "AeJA", "DECIMAL(20, 4)", Decimal("1234.5600")),
        (field("v", "int64", TIME + "MicroTime"), 3723456789, "TIME(6)", time(1, 2, 3, 456000)),
        (field("v", "int64", TIME + "NanoTime"), 3723456789000, "TIME(3)", time(1, 2, 3, 456000)),
        (field("v", "int64", TIME + "MicroTimestamp"), -1, "TIMESTAMP(3)",
         naive(1969, 12, 31, 23, 59, 59, 999000)),
        (field("v", "int64", TIME + "Timestamp"), 1, "TIMESTAMP(6)",
         naive(1970, 1, 1, 0, 0, 0, 1000)),
        (field("v", "int64", TIME + "NanoTimestamp"), 1_000_999, "TIMESTAMP(6)",
         naive(1970, 1, 1, 0, 0, 0, 1000)),
        (field("v", "string", TIME + "ZonedTimestamp"), "infinity", "STRING", "infinity"),
        (field("v", "string", TIME + "ZonedTimestamp"), "1970-01-01T00:00:01Z", "TIMESTAMP(6)",
         naive(1970, 1, 1, 0, 0, 1)),
        (field("v", "int32"), 7, "BIGINT", 7),
        (field("v", "int32"), 7, "DECIMAL(10, 2)", Decimal("7.00")),
        (VARIABLE, {"scale": 3, "value": "MDk="}, "DECIMAL(10, 4)", Decimal("12.3450")),
        (field("v", "bytes"), "/wAB", "STRING", "/wAB"),
        (field("v", "string"), "2024-02-29", "DATE", date(2024, 2, 29)),
    ],
)  # fmt: skip
def test_declared_type_wins(column: dict[str, Any], value: Any, declared: str, wanted: Any) -> None:
    decoded = decode(column, value, declared)
    assert decoded.rejected == []
    [batch] = decoded.batches
    assert batch.types["v"] == parse_type(declared)
    assert batch.columns.column("v").to_pylist() == [wanted, None]


def test_declared_type_that_is_too_narrow_costs_the_record() -> None:
    decoded = decode(field("v", "int64"), 2**40, "INT")
    assert [(bad.offset, bad.reason) for bad in decoded.rejected] == [(0, "out-of-range")]


@pytest.mark.parametrize("kind", ["int8", "int16"])
def test_small_integer_keys_start_wide(kind: str) -> None:
    columns = [field("id", kind), field("v", kind)]
    decoded = load_data_format("debezium-json").decode(
        chunk(
            [wrapped(event("c", {"id": 1, "v": 2}), columns)],
            [wrapped_key(key(id=1), columns[:1])],
        ),
        {},
        {},
    )
    [batch] = decoded.batches
    assert batch.types["id"] == DataType("INT")
    assert batch.types["v"].root in {"TINYINT", "SMALLINT"}
    assert all(data_type.nullable for data_type in batch.types.values())


def test_absent_field_takes_the_default_of_its_schema() -> None:
    columns = [field("id", "int32"), field("n", "int32", default=7), field("s", "string")]
    value = wrapped(event("c", {"id": 1}), columns)
    other = wrapped(event("c", {"id": 2, "n": None, "s": "x"}), columns)
    decoded = load_data_format("debezium-json").decode(chunk([value, other]), {}, {})
    assert decoded.batches[0].columns.to_pylist() == [
        {"id": 1, "n": 7, "s": None},
        {"id": 2, "n": None, "s": "x"},
    ]


def test_schema_without_rows_has_no_columns() -> None:
    assert row_schema({"type": "struct", "fields": [field("ts_ms", "int64")]}) is None


@pytest.mark.parametrize(
    "column", [{"type": "int32"}, {"field": "a"}, {"field": "a", "type": "int99"}, 7]
)
def test_broken_schema_is_an_error(column: Any) -> None:
    with pytest.raises(ConnectSchemaError):
        struct_columns(json.loads(json.dumps({"type": "struct", "fields": [column]})))
