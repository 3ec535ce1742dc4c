import struct
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from ingestd.cdc.base import Decoded, FormatSettings, load_data_format
from ingestd.cdc.schema_lookup import Framing
from tests.support.registered import Registered, chunk_of, framed
from tests.support.varints import varint, zigzag

ITEM = """
syntax = "proto3";  // a comment
package shop.inv;
import "google/protobuf/timestamp.proto";
import "shop/money.proto";
option java_package = "x; y {";

message Item {
  reserved 90 to 99, 101;
  int64 id = 1;
  string label = 2 [json_name = "LABEL", deprecated = true];
  optional int32 qty = 3;
  double weight = 4; float ratio = 5; bool there = 6; bytes raw = 7;
  uint64 big = 8; uint32 wide = 9; sint32 below = 10; sint64 far_below = 11;
  fixed32 f4 = 12; fixed64 f8 = 13; sfixed32 s4 = 14; sfixed64 s8 = 15;
  Kind kind = 16;
  repeated int32 sizes = 17;
  repeated string tags = 18;
  map<string, int64> counts = 19;
  google.protobuf.Timestamp at = 20;
  .shop.Money price = 21;
  oneof choice { string left = 22; Nested right = 23; }
  repeated Nested parts = 24;
  google.protobuf.StringValue maybe = 25;
  confluent.type.Decimal amount = 26;
  google.type.Date day = 27;
  repeated Kind kinds = 28;
  map<int32, Nested> named = 29;
  google.protobuf.Duration lasting = 30;
  enum Kind { option allow_alias = true; NEW = 0; OLD = 1; AGED = 1; ODD = -2; }
  message Nested { int32 x = 1; Nested inner = 2; }
}
message Other { string name = 1; message Deep { bool on = 1; } }
service Items { rpc Get (Item) returns (Other) { option (x) = {a: "}"}; } }
"""
MONEY = """
syntax = "proto2"; package shop;
message Money { optional string unit = 1; required int64 n = 2; }
"""


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def sized(field: int, body: bytes | str) -> bytes:
    data = body.encode() if isinstance(body, str) else body
    return varint(field << 3 | 2) + varint(len(data)) + data


def fixed(field: int, form: str, value: Any) -> bytes:
    data = struct.pack("<" + form, value)
    return varint(field << 3 | (5 if len(data) == 4 else 1)) + data


FIRST = b"\0"  # message indexes: the first message


def decode(
    bodies: Sequence[bytes | None], keys: Sequence[bytes] | None = None, schema: str = ITEM
) -> Decoded:
    registry = Registered()
    registry.add(schema, "PROTOBUF", [MONEY])
    data_format = load_data_format("protobuf", FormatSettings(schemas=registry))
    values = [None if body is None else framed(1, body) for body in bodies]
    own = None if keys is None else [framed(1, key) for key in keys]
    return data_format.decode(chunk_of(values, own), {}, {})


def cell(body: bytes, name: str) -> tuple[str, Any]:
    decoded = decode([FIRST + body])
    assert decoded.rejected == []
    (batch,) = decoded.batches
    return str(batch.types[name]), batch.columns[name].to_pylist()[0]


CELLS: list[tuple[str, bytes, str, Any]] = [
    ("id", number(1, -5), "BIGINT", -5),
    ("id", b"", "BIGINT", 0),
    ("label", sized(2, "é"), "STRING", "é"),
    ("label", sized(2, "a") + sized(2, "b"), "STRING", "b"),
    ("qty", b"", "INT", None),
    ("qty", number(3, 0), "INT", 0),
    ("qty", number(3, -1), "INT", -1),
    ("weight", fixed(4, "d", 0.1), "DOUBLE", 0.1),
    ("ratio", fixed(5, "f", 0.5), "FLOAT", 0.5),
    ("there", number(6, 1), "BOOLEAN", True),
    ("raw", sized(7, b"\xff\0"), "BYTES", b"\xff\0"),
    ("big", number(8, 2**64 - 1), "DECIMAL(20, 0)", Decimal(2**64 - 1)),
    ("wide", number(9, 2**32 - 1), "BIGINT", 2**32 - 1),
    ("below", varint(10 << 3) + zigzag(-(2**31)), "INT", -(2**31)),
    ("far_below", varint(11 << 3) + zigzag(-(2**63)), "BIGINT", -(2**63)),
    ("f4", fixed(12, "I", 7), "BIGINT", 7),
    ("f8", fixed(13, "Q", 2**63), "DECIMAL(20, 0)", Decimal(2**63)),
    ("s4", fixed(14, "i", -7), "INT", -7),
    ("s8", fixed(15, "q", -7), "BIGINT", -7),
    ("kind", number(16, 1), "STRING", "OLD"),
    ("kind", b"", "STRING", "NEW"),
    ("kind", number(16, -2), "STRING", "ODD"),
    ("kind", number(16, 77), "STRING", "77"),
    ("sizes", sized(17, varint(1) + varint(-1)) + number(17, 3), "ARRAY<INT>", [1, -1, 3]),
    ("sizes", b"", "ARRAY<INT>", []),
    ("tags", sized(18, "a") + sized(18, ""), "ARRAY<STRING>", ["a", ""]),
    ("kinds", sized(28, b"\0\1"), "ARRAY<STRING>", ["NEW", "OLD"]),
    (
        "counts",
        sized(19, sized(1, "k") + number(2, 4)) + sized(19, sized(1, "z")),
        "MAP<STRING NOT NULL, BIGINT>",
        [("k", 4), ("z", 0)],
    ),
    (
        "at",
        sized(20, number(1, 1) + number(2, 5999)),
        "TIMESTAMP(6) WITH LOCAL TIME ZONE",
        datetime(1970, 1, 1, 0, 0, 1, 5, UTC),
    ),
    ("price", sized(21, number(2, 4)), "STRING", '{"unit":null,"n":4}'),
    ("left", sized(22, "l"), "STRING", "l"),
    ("right", sized(23, number(1, 2)), "STRING", '{"x":2,"inner":null}'),
    ("right", b"", "STRING", None),
    ("parts", sized(24, b"") * 2, "STRING", '[{"x":0,"inner":null},{"x":0,"inner":null}]'),
    ("maybe", sized(25, sized(1, "")), "STRING", ""),
    ("maybe", sized(25, b""), "STRING", ""),
    ("maybe", b"", "STRING", None),
    ("amount", sized(26, sized(1, b"\xff\x85") + number(3, 2)), "STRING", "-1.23"),
    ("day", sized(27, number(1, 2025) + number(2, 6) + number(3, 16)), "DATE", date(2025, 6, 16)),
    ("named", sized(29, number(1, 5)), "STRING", '{"5":{"x":0,"inner":null}}'),
    ("lasting", sized(30, number(1, 2) + number(2, 1)), "BIGINT", 2_000_000_001),
    ("id", number(1, 3) + number(700, 1) + fixed(701, "d", 1.0), "BIGINT", 3),
]


@pytest.mark.parametrize(("name", "body", "kind", "wanted"), CELLS)
def test_fields_have_the_values_of_the_specification(
    name: str, body: bytes, kind: str, wanted: Any
) -> None:
    assert cell(body, name) == (kind, wanted)


def test_the_indexes_say_which_message_of_the_file_it_is() -> None:
    second = zigzag(1) + zigzag(1)
    deep = zigzag(2) + zigzag(1) + zigzag(0)
    explicit = zigzag(1) + zigzag(0)
    decoded = decode(
        [second + sized(1, "x"), deep + number(1, 1), explicit + number(1, 1), FIRST + number(1, 2)]
    )
    assert [(b.offset.tolist(), b.columns.column_names[0]) for b in decoded.batches] == [
        ([0], "name"),
        ([1], "on"),
        ([2], "id"),
        ([3], "id"),
    ]
    absent = decode([zigzag(1) + zigzag(9), zigzag(-1), zigzag(2) + zigzag(1)])
    assert [rejected_record.reason for rejected_record in absent.rejected] == [
        "invalid-schema",
        "invalid-protobuf",
        "invalid-protobuf",
    ]


def test_keys_are_messages_too() -> None:
    key = zigzag(1) + zigzag(1) + sized(1, "k")
    decoded = decode([FIRST + number(1, 4), None], [key, key])
    assert [(b.primary_keys, b.row_kind.tolist()) for b in decoded.batches] == [
        (("name",), [0]),
        (("name",), [3]),
    ]
    assert decoded.batches[1].columns.to_pydict() == {"name": ["k"]}


@pytest.mark.parametrize(
    "body",
    [
        b"\x08",
        b"\x08" + b"\xff" * 11,
        b"\x12\x05abc",
        b"\x12\x02\xc3\x28",
        b"\x0b",
        b"\x00\x00",
        b"\x0a\x00",
        sized(23, sized(2, b"")[:-1]),
        b"\x25\0\0",
    ],
)
def test_a_broken_message_costs_no_other(body: bytes) -> None:
    decoded = decode([FIRST + number(1, 1), FIRST + body, FIRST + number(1, 3)])
    assert [b.offset.tolist() for b in decoded.batches] == [[0, 2]]
    assert [
        (rejected_record.offset, rejected_record.reason) for rejected_record in decoded.rejected
    ] == [(1, "invalid-protobuf")]


def test_nesting_has_an_end() -> None:
    body = b""
    for _ in range(500):
        body = sized(2, body)
    decoded = decode([FIRST + sized(23, body)])
    assert "nested too deeply" in decoded.rejected[0].message


def test_a_value_that_does_not_fit_costs_its_record_only() -> None:
    bad = sized(27, number(1, 2025) + number(2, 13) + number(3, 1))
    huge = sized(26, sized(1, b"\1") + number(3, 2**31 - 1))
    decoded = decode([FIRST + bad, FIRST + number(1, 1), FIRST + huge])
    assert [b.offset.tolist() for b in decoded.batches] == [[1]]
    assert [
        (rejected_record.offset, rejected_record.stage) for rejected_record in decoded.rejected
    ] == [(0, "cast"), (2, "cast")]


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ("message A ( x )", "in place of"),
        ("message A { optional group G = 1 { } }", "group"),
        ("message A { int32 x = ; }", "cannot be read"),
        ("message A {", "cannot be read"),
        ("", "no message"),
    ],
)
def test_schemas_that_cannot_be_read_are_named(schema: str, said: str) -> None:
    (one,) = decode([FIRST], schema=schema).rejected
    assert one.reason == "invalid-schema" and said in one.message


def test_in_proto2_what_is_absent_is_null() -> None:
    decoded = decode([FIRST], schema="message A { optional int32 x = 1 [default = 5]; }")
    assert decoded.batches[0].columns.to_pydict() == {"x": [None]}


def test_numbers_that_json_lacks_are_texts_in_json_and_floats_have_few_digits() -> None:
    schema = "message A { B b = 1; repeated B bs = 2; } message B { double x = 1; float y = 2; }"
    nan, infinity = (fixed(1, "d", x) for x in (float("nan"), float("-inf")))
    body = sized(1, nan + fixed(2, "f", 0.1)) + sized(2, infinity)
    decoded = decode([FIRST + body], schema=schema)
    assert decoded.batches[0].columns.to_pylist() == [
        {"b": '{"x":"NaN","y":0.1}', "bs": '[{"x":"-Infinity","y":null}]'}
    ]


def test_a_guid_in_the_header_brings_the_indexes_with_it() -> None:
    registry = Registered()
    number_ = registry.add(ITEM, "PROTOBUF", [MONEY])
    guid = bytes(range(16))
    registry._schemas[guid.hex()] = registry._schemas[number_]
    settings = FormatSettings(schemas=registry, framing=Framing("header"))
    header = b"\1" + guid + zigzag(1) + zigzag(1)
    chunk = chunk_of([sized(1, "n")], headers=[[("__value_schema_id", header)]])
    decoded = load_data_format("protobuf", settings).decode(chunk, {}, {})
    assert decoded.batches[0].columns.to_pydict() == {"name": ["n"]}
