"""Records of a chunk as Debezium's events, grouped."""

import json
from typing import Any

import numpy as np
import pytest

from ingestd.cdc.base import FormatSettings, RecordChunk, SourceTable
from ingestd.cdc.formats.debezium_json import DebeziumDialect, new_format
from ingestd.cdc.json.messages import NO_ENVELOPE, Messages
from ingestd.cdc.json.normalized_events import sort_records


def event(table: str, op: str = "c", **more: Any) -> bytes:
    source = {"db": "d", "table": table, "lsn": 5}
    return json.dumps({"op": op, "source": source, "after": {"id": 1}, **more}).encode()


def chunk(values: list[bytes | None], keys: list[bytes | None]) -> RecordChunk:
    offsets = np.arange(10, 10 + len(values))
    return RecordChunk("t", 0, offsets, offsets, keys, values, None)


def with_keys(keys: list[bytes] | None) -> Messages:
    values = [b"{}"] * len(keys or ())
    return Messages(values, keys, np.arange(len(values)))


VALUES: list[bytes | None] = [
    None,
    event("a"),
    event("b"),
    event("a", "t"),
    event("a", "m"),
    b"{",
    b'{"id":1,"__op":"c"}',
    event("a", "u"),
]
KEYED = chunk(VALUES, [b'{"id":1}'] * len(VALUES))


def test_records_are_apart_by_table_and_by_what_they_are() -> None:
    found = sort_records(DebeziumDialect(), KEYED, range(len(VALUES)))
    groups = {key.normalizer.source.table: group.indices for key, group in found.groups.items()}
    assert groups == {"a": [1, 7], "b": [2], "t": [6]}
    assert [key.normalizer.is_normalized for key in found.groups] == [True, True, False]
    assert [key.normalizer.envelope for key in found.groups] == [NO_ENVELOPE] * 3
    assert [key[1:] for key in found.groups] == [(NO_ENVELOPE, ("id",))] * 3
    assert found.control == 2
    assert [(truncate.offset, truncate.position) for truncate in found.truncates] == [(13, 5)]
    assert list(found.bad) == [5]


def test_the_bytes_of_events_are_kept() -> None:
    found = sort_records(DebeziumDialect(), KEYED, [1, 7])
    assert [group.values for group in found.groups.values()] == [[VALUES[1], VALUES[7]]]


def test_only_some_of_the_records_may_be_taken() -> None:
    found = sort_records(DebeziumDialect(), KEYED, [0, 2])
    assert [group.indices for group in found.groups.values()] == [[2]]
    assert (found.control, found.bad) == (1, {})


def test_a_uniform_chunk_is_of_the_table_of_its_first_record_with_a_value() -> None:
    decoder = new_format(FormatSettings())
    decoded = decoder.decode(chunk([None, event("a")], [None, b'{"id":1}']), {}, {})
    (batch,) = decoded.batches
    assert (batch.source, batch.primary_keys) == (SourceTable("d", None, "a"), ("id",))
    assert (batch.offset.tolist(), decoded.control) == ([11], 1)


@pytest.mark.parametrize(
    ("keys", "same"),
    [
        ([b'{"a":1,"b":2}', b'{"a": 1, "b" :2}'], True),
        ([b'{"a":1,"b":2}', b'{"b":1,"a":2}'], False),
        ([b'{"schema":{"field":"b"},"payload":{"a":1,"b":2}}'], True),
    ],
)
def test_keys_are_in_order_if_their_fields_are(keys: list[bytes], same: bool) -> None:
    assert with_keys(keys).has_keys_in_order(("a", "b")) is same
    assert with_keys(keys).has_keys_in_order(("a",))


def test_messages_without_keys_have_none_out_of_order() -> None:
    assert with_keys(None).has_keys_in_order(("a", "b"))


def test_a_key_that_repeats_its_fields_is_looked_through_once() -> None:
    names = ("a", "b", "c", "d")
    repeated = b'{%b"d":1}' % (b'"a":1,"b":1,' * 20_000)
    assert not with_keys([repeated]).has_keys_in_order(names)
    ordered = repeated[:-1] + b',"c":1,"d":1}'
    assert with_keys([ordered]).has_keys_in_order(names)
