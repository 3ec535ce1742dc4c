"""Records of a chunk as Debezium events, apart."""

import json
from typing import Any

import numpy as np
import pytest

from ingestd.cdc.base import RecordChunk, SourceTable
from ingestd.cdc.debezium_envelope import BARE
from ingestd.cdc.event_records import EventRecords, in_order


def event(table: str, op: str = "c", **more: Any) -> bytes:
    source = {"db": "d", "table": table, "lsn": 5}
    return json.dumps({"op": op, "source": source, "after": {"id": 1}, **more}).encode()


def chunk(values: list[bytes | None], keys: list[bytes | None]) -> RecordChunk:
    offsets = np.arange(10, 10 + len(values))
    return RecordChunk("t", 0, offsets, offsets, keys, values, None)


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
    found = EventRecords().sort(KEYED, range(len(VALUES)))
    groups = {key[0].table: group.indices for key, group in found.groups.items()}
    assert groups == {"a": [1, 7], "b": [2]}
    assert [key[1:] for key in found.groups] == [(BARE, BARE, ("id",))] * 2
    assert found.flat == [6]
    assert found.others.control == 2
    assert [(truncate.offset, truncate.position) for truncate in found.others.truncates] == [
        (13, 5)
    ]
    assert [rejected_record.offset for rejected_record in found.others.rejected] == [15]


def test_only_some_of_the_records_may_be_taken() -> None:
    found = EventRecords().sort(KEYED, [0, 2])
    assert [group.indices for group in found.groups.values()] == [[2]]
    assert (found.others.control, found.others.rejected, found.flat) == (1, [], [])


def test_the_first_group_is_that_of_the_first_row_with_a_value() -> None:
    source = SourceTable("d", None, "a")
    assert EventRecords().first_group(KEYED) == (source, BARE, BARE, ("id",))
    assert EventRecords().first_group(chunk([None], [None])) is None
    assert EventRecords().first_group(chunk([event("a", "t"), event("a")], [None, None])) is None
    assert EventRecords().first_group(chunk([event("a")], [b"1"])) is None


@pytest.mark.parametrize(
    ("keys", "same"),
    [
        ([b'{"a":1,"b":2}', b'{"a": 1, "b" :2}'], True),
        ([b'{"a":1,"b":2}', b'{"b":1,"a":2}'], False),
        ([b'{"a":1,"b":2}', None], False),
        ([b'{"schema":{"field":"b"},"payload":{"a":1,"b":2}}'], True),
    ],
)
def test_keys_are_in_order_if_their_fields_are(keys: list[bytes | None], same: bool) -> None:
    assert in_order(keys, ("a", "b")) is same
    assert in_order(keys, ("a",))


def test_a_key_that_repeats_its_fields_is_looked_through_once() -> None:
    names = ("a", "b", "c", "d")
    repeated = b'{%b"d":1}' % (b'"a":1,"b":1,' * 20_000)
    assert not in_order([repeated], names)
    assert in_order([repeated[:-1] + b',"c":1,"d":1}'], names)
