"""Protobuf messages with repeated parts, groups and unusual types, with and without the extension.

The expected values are those of upb, the Protobuf runtime of Google.
"""

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any
from unittest import mock

import pytest

from ingestd.cdc.base import Decoded, FormatSettings, load_data_format
from ingestd.cdc.protobuf import native_fields
from ingestd.cdc.protobuf.proto_schema import parse_protobuf
from tests.support.registered import Registered, chunk_of, framed

SCHEMA = """syntax = "proto3"; import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
message A {
  int32 id = 1; B inner = 2; google.protobuf.Timestamp at = 3; google.protobuf.StringValue text = 4;
  oneof choice { int32 left = 5; string right = 6; B deep = 7; }
  map<bool, B> named = 8; map<bool, int32> counts = 9;
  repeated google.protobuf.Timestamp times = 10;
}
message B { int32 x = 1; string y = 2; B again = 3; repeated int32 n = 4;
  oneof pick { int32 p = 5; string q = 6; } map<bool, int32> on = 7; }
"""
INNER = {"x": 0, "y": "", "again": None, "n": [], "p": None, "q": None, "on": {}}
ABSENT = dict.fromkeys(("inner", "at", "text", "left", "right", "deep"))
ROW = {"id": 0, **ABSENT, "named": "{}", "counts": [], "times": []}


@pytest.fixture(params=["native", "python"], autouse=True)
def _both_ways(request: pytest.FixtureRequest) -> Iterator[None]:
    without = mock.patch.object(native_fields, "native_module", lambda: None)
    if request.param == "native":
        yield
        return
    with without:
        yield


def decode(*bodies: str, schema: str = SCHEMA) -> Decoded:
    registry = Registered()
    registry.add(schema, "PROTOBUF")
    data_format = load_data_format("protobuf", FormatSettings(schemas=registry))
    messages = [framed(1, b"\0" + bytes.fromhex(body)) for body in bodies]
    return data_format.decode(chunk_of(messages, [None] * len(messages)), {}, {})


def rows(decoded: Decoded) -> Sequence[dict[str, Any]]:
    return [row for batch in decoded.batches for row in batch.columns.to_pylist()]


@pytest.mark.parametrize(
    ("body", "name", "expected"),
    [
        (
            "1202 0805  1205 120161 2001  1204 2202 0203",
            "inner",
            {"x": 5, "y": "a", "n": [1, 2, 3]},
        ),
        ("1204 1a02 0805  1205 1a03 120161", "inner", {"again": {**INNER, "x": 5, "y": "a"}}),
        ("1204 2805 3200", "inner", {"q": ""}),
        ("1206 3a02 0801 0801", "inner", {"x": 1, "on": {"true": 0}}),
        ("1a02 0805  1a03 10e807", "at", datetime(1970, 1, 1, 0, 0, 5, 1, UTC)),
        ("2203 0a0161  2200", "text", "a"),
        ("2805  320161", "right", "a"),
        ("2805  320161  2807", "left", 7),
        ("2805  3a020801", "deep", {"x": 1}),
        ("3a020801  2805", "left", 5),
        ("3a020801  3a0228 03", "deep", {"x": 1, "p": 3}),
        ("4206 0801 1202 0805", "named", {"true": {**INNER, "x": 5}}),
        ("4204 1202 0805", "named", {"false": {**INNER, "x": 5}}),
        ("4a04 0801 1005", "counts", [(True, 5)]),
        ("f303 0807 fb03 fc03 f403 0805", "id", 5),
    ],
)
def test_messages_are_read_as_by_upb(body: str, name: str, expected: Any) -> None:
    (row,) = rows(decode(body))
    if isinstance(expected, dict):
        expected = {**INNER, **expected} if name != "named" else expected
        row[name] = json.loads(row[name])
    assert row == {**ROW, name: expected}


@pytest.mark.parametrize("body", ["f303 08", "f303 fc03", "f403", "80808080 8001 00", "0000"])
def test_invalid_messages_are_rejected_alone(body: str) -> None:
    decoded = decode("0801", body, "0802")
    assert [row["id"] for row in rows(decoded)] == [1, 2]
    assert [(record.offset, record.reason) for record in decoded.rejected] == [
        (1, "invalid-protobuf")
    ]


def test_times_after_the_year_9999_in_lists_do_not_affect_other_records() -> None:
    decoded = decode("0801", "52070880f092cbdd08")
    assert decoded.rejected == []
    (batch,) = decoded.batches
    assert batch.columns["id"].to_pylist() == [1, 0]


@pytest.mark.parametrize(
    ("options", "field", "expected"),
    [
        ("", "", None),
        ("option features.field_presence = IMPLICIT;", "", 0),
        (
            "option features.field_presence = IMPLICIT;",
            "[features.field_presence = EXPLICIT]",
            None,
        ),
        ("option features = {field_presence: IMPLICIT};", "", 0),
        ("", "[deprecated = true, features.field_presence = IMPLICIT]", 0),
    ],
)
def test_absent_fields_of_editions_have_the_presence_of_their_features(
    options: str, field: str, expected: int | None
) -> None:
    schema = f'edition = "2023"; {options} message A {{ int32 id = 1; int32 n = 2 {field}; }}'
    (row,) = rows(decode("0801", schema=schema))
    assert row == {"id": 1, "n": expected}


def test_visibility_of_types_does_not_hide_them() -> None:
    types = parse_protobuf(
        'edition = "2024"; local enum E { X = 0; }'
        "export message A { local message N {} local l = 1; }"
    )
    assert (types.tops, types.nested["A"], [*types.enums]) == (["A"], ["A.N"], ["E"])
    assert [field.type_name for field in types.messages["A"]] == ["local"]
