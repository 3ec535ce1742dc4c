"""Which row of a key wins: the last that arrived, or the last in the log of its database.

A database changes rows; a topic has snapshots of it, its changes, changes sent again, and pieces in
another order. What the table must hold is computed by a few lines of Python.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ingestd.cdc.base import RecordChunk
from ingestd.ingest.settings.context import TableSettings
from ingestd.ingest.settings.ordering import Ordering
from ingestd.kafka.offset_ranges import OffsetRange
from ingestd.kafka.properties import KafkaSource
from tests.support.examples import examples
from tests.support.ingest_rig import Rig

Position = tuple[int, bool]
"""Place in the log, and whether it is of a change: a snapshot is older than what follows it."""


@dataclass(frozen=True)
class Message:
    """A row of a snapshot, or a change; `value` None deletes.

    `note` is a large value, which a change leaves out that does not touch it.
    """

    key: int
    value: int | None
    place: int
    snapshot: bool
    note: str = "n"
    leaves_out: bool = False

    @property
    def position(self) -> Position:
        return self.place, not self.snapshot

    def as_bytes(self, *, binlog: bool) -> bytes:
        """The message of Debezium's connector for MySQL, or for PostgreSQL."""
        note = "__debezium_unavailable_value" if self.leaves_out else self.note
        row = {"id": self.key, "v": self.value, "note": note}
        place = 1000 + 8 * self.place
        where = {"file": "bin.000003", "pos": place, "row": 0} if binlog else {"lsn": place}
        source = {"db": "shop", "schema": "s", "table": "t", **where}
        source |= {"snapshot": "true" if self.snapshot else "false"}
        operation = "r" if self.snapshot else "d" if self.value is None else "u"
        after = None if self.value is None else row
        before = {"id": self.key} if self.value is None else None
        return json.dumps(
            {"op": operation, "before": before, "after": after, "source": source}
        ).encode()


class KeylessRig(Rig):
    """Records without a message key."""

    def fetch(self, source: KafkaSource, wanted: OffsetRange) -> Iterator[RecordChunk]:
        for one in super().fetch(source, wanted):
            keys: list[bytes | None] = [None] * len(one.values)
            yield replace(one, keys=keys)


@st.composite
def topics(draw: st.DrawFn) -> list[Message]:
    """What a topic holds of a database's life."""
    state: dict[int, int] = {}
    changes: list[Message] = []
    found: list[Message] = []
    for index in range(draw(st.integers(3, 14))):
        key = draw(st.integers(0, 3))
        gone = key in state and draw(st.booleans())
        changes.append(Message(key, None if gone else index, index, snapshot=False))
        state.pop(key, None) if gone else state.update({key: index})
        found.append(changes[-1])
        match draw(st.integers(0, 5)):
            case 0:  # a snapshot, of what there is now
                rows = [Message(k, v, index + 1, snapshot=True) for k, v in sorted(state.items())]
                found += rows
            case 1:  # a tail that is sent again
                found += changes[-draw(st.integers(1, 5)) :]
            case 2:  # an old message that was set aside, and comes back
                found.append(draw(st.sampled_from(changes)))
            case 3:  # two pieces in another order
                cut = draw(st.integers(0, len(found)))
                found = [*found[cut:], *found[:cut]]
    return found


def wanted(messages: list[Message], ordering: Ordering) -> dict[int, int]:
    """The rows that are left: of each key the newest message, unless it deletes."""
    newest: dict[int, Message] = {}
    for message in messages:
        known = newest.get(message.key)
        by_position = ordering == "source-position"
        if known is None or not by_position or message.position >= known.position:
            newest[message.key] = message
    return {key: one.value for key, one in sorted(newest.items()) if one.value is not None}


@pytest.mark.parametrize("ordering", ["arrival", "source-position"])
@settings(max_examples=examples(30), deadline=None, suppress_health_check=list(HealthCheck))
@given(messages=topics(), batches=st.lists(st.integers(0, 20), max_size=3), binlog=st.booleans())
@example(
    messages=[Message(1, 10_000_000, 10_000_000, False), Message(1, 5, 5, False)],
    batches=[1],
    binlog=False,
)
@example(messages=[Message(1, 5, 5, False), Message(1, None, 2, False)], batches=[1], binlog=True)
def test_the_newest_row_wins_by_arrival_or_by_position(
    ordering: Ordering, messages: list[Message], batches: list[int], *, binlog: bool
) -> None:
    rig = KeylessRig(
        defaults=TableSettings(primary_keys=("id",), options={"bucket": "1"}, ordering=ordering),
        data_format="debezium-json",
    )
    cuts = sorted({min(cut, len(messages)) for cut in batches} | {len(messages)})
    start = 0
    for until in cuts:
        rig.produce(*(message.as_bytes(binlog=binlog) for message in messages[start:until]))
        rig.run()
        start = until
    rows: list[dict[str, Any]] = rig.rows("t", "id", "v")
    assert {row["id"]: row["v"] for row in rows} == wanted(messages, ordering)
    assert len(rows) == len(wanted(messages, ordering))


@st.composite
def lives(draw: st.DrawFn) -> tuple[list[list[Message]], dict[int, tuple[int | None, str]]]:
    """Messages in batches, and the rows that the database has in the end.

    Changes are in order, and any that were sent before are sent again between them.
    """
    state: dict[int, Message] = {}
    sent: list[Message] = []
    batches: list[list[Message]] = [[]]
    for index in range(draw(st.integers(3, 16))):
        key = draw(st.integers(0, 2))
        old = state.get(key)
        match draw(st.integers(0, 3)) if old else 0:
            case 0 | 1:
                one = Message(key, index, index, snapshot=False, note=f"n{index}")
            case 2:
                assert old is not None
                one = Message(key, index, index, snapshot=False, note=old.note, leaves_out=True)
            case _:
                one = Message(key, None, index, snapshot=False)
        state[key] = one
        if one.value is None:
            del state[key]
        again = draw(st.lists(st.sampled_from(sent), max_size=3)) if sent else []
        sent.append(one)
        if draw(st.integers(0, 4)) == 0:
            rows = [replace(row, place=index + 1, snapshot=True) for row in state.values()]
            sent += [replace(row, leaves_out=False) for row in rows]
            again += sent[-len(rows) :] if rows else []
        batches[-1] += [*again, one] if draw(st.booleans()) else [one, *again]
        if draw(st.booleans()):
            batches.append([])
    return batches, {key: (one.value, one.note) for key, one in state.items()}


@settings(max_examples=examples(30), deadline=None, suppress_health_check=list(HealthCheck))
@given(life=lives(), bucket=st.sampled_from(["1", "-1"]), binlog=st.booleans(), data=st.data())
@example(  # a value is left out after an old row of its key was sent again
    life=(
        [
            [Message(1, 0, 0, snapshot=False, note="a"), Message(1, 1, 1, False, note="b")],
            [
                Message(1, 0, 0, snapshot=False, note="a"),
                Message(1, 2, 2, snapshot=False, leaves_out=True),
            ],
        ],
        {1: (2, "b")},
    ),
    bucket="1",
    binlog=False,
    data=None,
)
def test_what_is_sent_again_changes_nothing_where_positions_decide(
    life: tuple[list[list[Message]], dict[int, tuple[int | None, str]]],
    bucket: str,
    data: st.DataObject | None,
    *,
    binlog: bool,
) -> None:
    batches, rows = life
    rig = KeylessRig(
        defaults=TableSettings(
            primary_keys=("id",), options={"bucket": bucket}, ordering="source-position"
        ),
        data_format="debezium-json",
        slots=2,
    )
    seen: set[Message] = set()
    for batch in batches:
        for one in batch:
            # What is new keeps to one partition; what was sent before may be anywhere.
            anywhere = data is not None and one in seen
            partition = data.draw(st.integers(0, 1)) if data and anywhere else 0
            rig.produce(one.as_bytes(binlog=binlog), partition=partition)
            seen.add(one)
        if batch:
            rig.run()
    found = {row["id"]: (row["v"], row["note"]) for row in rig.rows("t", "id", "v", "note")}
    assert found == rows


def test_a_change_without_a_position_is_a_dead_letter_where_positions_decide() -> None:
    rig = KeylessRig(
        defaults=TableSettings(
            primary_keys=("id",), options={"bucket": "1"}, ordering="source-position"
        ),
        data_format="debezium-json",
    )
    known = Message(1, 1, 1, snapshot=False).as_bytes(binlog=False)
    unknown = known.replace(b'"lsn": 1008', b'"lsn": null')
    assert unknown != known
    rig.produce(known, unknown)
    result = rig.run()
    assert [
        (rejected_record.offset, rejected_record.reason) for rejected_record in result.rejected
    ] == [(1, "unknown-position")]
    incremental = unknown.replace(b'"u"', b'"r"').replace(b'"false"', b'"incremental"')
    rig.produce(
        incremental.replace(b'"id": 1', b'"id": 2'), incremental.replace(b'"v": 1', b'"v": 7')
    )
    assert rig.run().rejected == ()
    assert [(row["id"], row["v"]) for row in rig.rows("t")] == [(1, 1), (2, 1)], "oldest of all"


def test_a_table_that_orders_its_rows_otherwise_costs_its_own_records_only() -> None:
    arrival = TableSettings(primary_keys=("id",), options={"bucket": "1"})
    rig = KeylessRig(defaults=arrival, data_format="debezium-json")
    row = Message(1, 1, 1, snapshot=False).as_bytes(binlog=False)
    rig.produce(row)
    rig.run()
    rig.defaults = replace(arrival, ordering="source-position")
    newer = Message(1, 2, 2, snapshot=False).as_bytes(binlog=False)
    rig.produce(newer, newer.replace(b'"table": "t"', b'"table": "other"'))
    [letter] = rig.run().rejected
    assert (letter.offset, letter.reason) == (1, "other-ordering")
    assert "set ordering to 'arrival'" in letter.message
    assert [(row["id"], row["v"]) for row in rig.rows("t")] == [(1, 1)]
    assert [(row["id"], row["v"]) for row in rig.rows("other")] == [(1, 2)]
