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
from ingestd.kafka.properties import KafkaSource
from ingestd.kafka.ranges import OffsetRange
from tests.support.ingest_rig import Rig

Position = tuple[int, bool]
"""Place in the log, and whether it is of a change: a snapshot is older than what follows it."""


@dataclass(frozen=True)
class Message:
    """A row of a snapshot, or a change; `value` None deletes."""

    key: int
    value: int | None
    place: int
    snapshot: bool

    @property
    def position(self) -> Position:
        return self.place, not self.snapshot

    def as_bytes(self, *, binlog: bool) -> bytes:
        """The message of Debezium's connector for MySQL, or for PostgreSQL."""
        row = {"id": self.key, "v": self.value}
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
    for place in range(draw(st.integers(3, 14))):
        key = draw(st.integers(0, 3))
        gone = key in state and draw(st.booleans())
        changes.append(Message(key, None if gone else place, place, snapshot=False))
        state.pop(key, None) if gone else state.update({key: place})
        found.append(changes[-1])
        match draw(st.integers(0, 5)):
            case 0:  # a snapshot, of what there is now
                rows = [Message(k, v, place + 1, snapshot=True) for k, v in sorted(state.items())]
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
    for one in messages:
        known = newest.get(one.key)
        by_position = ordering == "source-position"
        if known is None or not by_position or one.position >= known.position:
            newest[one.key] = one
    return {key: one.value for key, one in sorted(newest.items()) if one.value is not None}


@pytest.mark.parametrize("ordering", ["arrival", "source-position"])
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
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
        rig.produce(*(one.as_bytes(binlog=binlog) for one in messages[start:until]))
        rig.run()
        start = until
    rows: list[dict[str, Any]] = rig.rows("t", "id", "v")
    assert {row["id"]: row["v"] for row in rows} == wanted(messages, ordering)
    assert len(rows) == len(wanted(messages, ordering))


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
    assert [(one.offset, one.reason) for one in result.rejected] == [(1, "unknown_position")]
    incremental = unknown.replace(b'"u"', b'"r"').replace(b'"false"', b'"incremental"')
    rig.produce(
        incremental.replace(b'"id": 1', b'"id": 2'), incremental.replace(b'"v": 1', b'"v": 7')
    )
    assert rig.run().rejected == ()
    assert [(row["id"], row["v"]) for row in rig.rows("t")] == [(1, 1), (2, 1)], "oldest of all"
