import json

import pyarrow as pa
import pytest

from ingestd.cdc.avro.cursor import AvroCursor
from ingestd.cdc.avro.nodes import parse_avro
from ingestd.cdc.avro.reader import read_fields

NULLS = {"type": "array", "items": "null"}
EMPTY = {"type": "array", "items": {"type": "fixed", "name": "F", "size": 0}}
RECORDS = {
    "type": "array",
    "items": {"type": "record", "name": "R", "fields": [{"name": "n", "type": "null"}]},
}


def zigzag(number: int) -> bytes:
    left, out = number << 1, b""
    while left > 0x7F:
        out, left = out + bytes([left & 0x7F | 0x80]), left >> 7
    return out + bytes([left])


def lengths(kind: object, counts: list[int]) -> list[int | None]:
    """Items of arrays of so many items that take no bytes; None where a message is bad."""
    schema = {"type": "record", "name": "T", "fields": [{"name": "x", "type": kind}]}
    cursor = AvroCursor([zigzag(count) + b"\0" for count in counts])
    found: pa.Array = read_fields(cursor, parse_avro(json.dumps(schema)), {"x": None})["x"]
    cursor.finish()
    values = found.to_pylist()
    return [None if bad else len(values[i]) for i, bad in enumerate(cursor.bad.tolist())]


@pytest.mark.parametrize("kind", [NULLS, EMPTY, RECORDS], ids=["null", "fixed", "record"])
@pytest.mark.parametrize("messages", [1, 40], ids=["one by one", "together"])
def test_items_that_take_no_bytes_are_read_up_to_a_bound(kind: object, messages: int) -> None:
    assert lengths(kind, [1000, 2] * messages) == [1000, 2] * messages
    assert lengths(kind, [1001, 3] * messages) == [None, 3] * messages


def test_items_that_take_bytes_cannot_be_more_than_these() -> None:
    assert lengths({"type": "array", "items": "boolean"}, [2]) == [None]
