import json
from collections.abc import Iterator
from unittest import mock

import pytest

from ingestd.cdc.avro import reader as avro_reader
from ingestd.cdc.avro.nodes import parse_avro
from ingestd.cdc.avro.reader import AvroReader
from ingestd.cdc.avro.values import MessageBytes, read_value
from ingestd.cdc.cell_budget import CellBudget
from tests.support.varints import zigzag

EMPTY = {"type": "array", "items": {"type": "fixed", "name": "F", "size": 0}}


@pytest.fixture(params=["native", "python"], autouse=True)
def implementation(request: pytest.FixtureRequest) -> Iterator[None]:
    if request.param == "native":
        yield
        return
    with mock.patch.object(avro_reader, "native_module", lambda: None):
        yield


def lengths(kind: object, counts: list[int]) -> list[int | None]:
    """Return the items of arrays of `counts` items without bytes; None for an invalid message."""
    schema = {"type": "record", "name": "T", "fields": [{"name": "x", "type": kind}]}
    messages = [zigzag(count) + b"\0" for count in counts]
    fields = AvroReader().read(messages, 0, parse_avro(json.dumps(schema)))
    values = fields.arrays["x"].to_pylist()
    return [None if bad else len(values[i]) for i, bad in enumerate(fields.bad.tolist())]


def test_items_that_take_bytes_cannot_be_more_than_these() -> None:
    assert lengths({"type": "array", "items": "boolean"}, [2]) == [None]


def test_items_without_bytes_may_be_more() -> None:
    assert lengths(EMPTY, [2000, 3]) == [2000, 3]


def test_a_text_of_negative_length_is_refused() -> None:
    schema = {"type": "array", "items": ["null", "string"]}
    field = {"type": "record", "name": "T", "fields": [{"name": "x", "type": schema}]}
    # A reader that steps back by one byte for it sees a block of one more text.
    messages = [b"\x02\x02\x01\x00\x02\x02a\x00", b"\x02\x02\x02a\x00"]
    fields = AvroReader().read(messages, 0, parse_avro(json.dumps(field)))
    assert fields.bad.tolist() == [True, False]


def test_a_value_that_is_not_requested_must_match_its_schema_too() -> None:
    columns = [{"name": "x", "type": "string"}, {"name": "y", "type": "int"}]
    node = parse_avro(json.dumps({"type": "record", "name": "T", "fields": columns}))
    fields = AvroReader().read([b"\x02\xff\x02", b"\x02a\x02"], 0, node, {"y": None})
    assert fields.bad.tolist() == [True, False]
    assert fields.arrays["y"].to_pylist() == [None, 1]


def test_the_entries_of_a_map_are_read_block_by_block() -> None:
    body = b"\x04\x02a\x02\x02b\x04" + b"\x02\x02c\x06" + b"\x00"
    data = MessageBytes(body, CellBudget(len(body)))
    node = parse_avro('{"type": "map", "values": "int"}')
    assert read_value(data, 0, node) == ([("a", 1), ("b", 2), ("c", 3)], len(body))
