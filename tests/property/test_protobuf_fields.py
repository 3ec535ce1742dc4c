"""Protobuf messages are decoded by the native extension as they are in Python."""

import struct
from unittest import mock

from hypothesis import given, settings
from hypothesis import strategies as st

from ingestd.cdc.base import Decoded, FormatSettings, load_data_format
from ingestd.cdc.protobuf import native_fields
from tests.support.examples import examples
from tests.support.registered import Registered, chunk_of, framed
from tests.support.varints import varint

SCHEMA = """syntax = "proto3"; import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto"; import "google/protobuf/duration.proto";
message A {
  int32 i32 = 1; int64 i64 = 2; uint32 u32 = 3; uint64 u64 = 4; sint32 s32 = 5; sint64 s64 = 6;
  bool b = 7; fixed32 f32 = 8; fixed64 f64 = 9; sfixed32 sf32 = 10; sfixed64 sf64 = 11;
  float f = 12; double d = 13; string s = 14; bytes raw = 15; Kind kind = 16;
  optional int32 oi = 17; optional string os = 18; optional Kind ok = 19;
  repeated int32 ri = 20; repeated string rs = 21; repeated Kind rk = 22; repeated fixed64 rf = 23;
  repeated double rd = 24; map<string, int32> m = 25; B b1 = 26; repeated B bs = 27;
  google.protobuf.Timestamp at = 28; google.protobuf.Duration took = 29;
  google.protobuf.StringValue sv = 30; google.protobuf.UInt64Value uv = 31;
  oneof c { int32 left = 32; string right = 33; B deep = 36; }
  repeated bool rb = 34; repeated google.protobuf.Timestamp ats = 35;
  map<bool, B> mb = 37;
}
enum Kind { NEW = 0; OLD = 1; GONE = -1; }
message B { int32 x = 1; string y = 2; }
message Simple { int64 id = 1; string name = 2; repeated int32 n = 3; }
"""
NUMBERS = st.integers(0, 300) | st.sampled_from([2**31, 2**32 - 1, 2**63, 2**64 - 1])


def sized(body: bytes) -> bytes:
    return varint(len(body)) + body


INNER = st.lists(
    st.tuples(st.integers(1, 3), NUMBERS).map(lambda it: varint(it[0] << 3) + varint(it[1])),
    max_size=3,
).map(b"".join)
BODIES = st.one_of(
    st.text(max_size=5).map(str.encode),
    st.binary(max_size=9),
    INNER,
    st.lists(NUMBERS.map(varint), max_size=4).map(b"".join),
    st.floats().map(lambda number: struct.pack("<d", number)),
)
VALUES = {
    0: NUMBERS.map(varint),
    1: st.binary(min_size=8, max_size=8),
    2: BODIES.map(sized),
    5: st.binary(min_size=4, max_size=4),
}
WIRES = {1: [8, 9, 11, 13], 5: [8, 10, 12], 2: [14, 15, 18, *range(20, 32), 33, 34, 35, 36, 37]}
EXPECTED = {
    number: next((wire for wire, numbers in WIRES.items() if number in numbers), 0)
    for number in range(1, 38)
} | {8: 5, 9: 1, 11: 1, 13: 1}


@st.composite
def fields(draw: st.DrawFn) -> bytes:
    """A field, mostly with its own wire type."""
    number = draw(st.integers(1, 39))
    wire = EXPECTED.get(number, 0)
    if draw(st.integers(0, 19)) == 0:
        wire = draw(st.sampled_from([0, 1, 2, 3, 5]))
    value = draw(VALUES[wire]) if wire in VALUES else b""
    if wire == 3:
        value = draw(st.sampled_from([varint(1), b""])) + varint(number << 3 | 4)
    return varint(number << 3 | wire) + value


@st.composite
def messages(draw: st.DrawFn) -> bytes:
    """A message, sometimes cut off."""
    body = b"".join(draw(st.lists(fields(), max_size=8)))
    if draw(st.integers(0, 9)) == 0:
        body = body[: draw(st.integers(0, len(body)))]
    index = draw(st.sampled_from([b"\0", b"\0", b"\0", b"\2\4"]))
    return framed(1, index + body)


def decode(values: list[bytes]) -> Decoded:
    registry = Registered()
    registry.add(SCHEMA, "PROTOBUF")
    data_format = load_data_format("protobuf", FormatSettings(schemas=registry))
    return data_format.decode(chunk_of([*values], [None] * len(values)), {}, {})


@given(st.lists(messages(), min_size=1, max_size=12))
@settings(max_examples=examples(60), deadline=None)
def test_native_and_python_agree(values: list[bytes]) -> None:
    native = decode(values)
    with mock.patch.object(native_fields, "native_module", lambda: None):
        python = decode(values)
    assert native.rejected == python.rejected
    for batch, expected in zip(native.batches, python.batches, strict=True):
        batch.columns.validate(full=True)
        assert batch.columns.schema == expected.columns.schema
        assert repr(batch.columns.to_pylist()) == repr(expected.columns.to_pylist())
        assert batch.offset.tolist() == expected.offset.tolist()


def test_fields_are_read_natively() -> None:
    body = b"\0" + b"\x08\x05" + b"\x72\x01a" + b"\xa2\x01\x02\1\2" + b"\xe2\x01\x04\x08\1\x10\7"
    with mock.patch("ingestd.cdc.protobuf.wire.MessageReader.read", return_value={}) as read:
        read.return_value = dict.fromkeys(("m", "b1", "bs", "ats", "deep", "mb"))
        (batch,) = decode([framed(1, body)]).batches
    (row,) = batch.columns.to_pylist()
    assert [(row["i32"], row["s"], row["ri"], row["kind"])] == [(5, "a", [1, 2], "NEW")]
    assert read.call_args.args[1] == b""
