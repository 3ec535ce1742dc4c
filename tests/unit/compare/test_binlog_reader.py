"""A connector of MariaDB or MySQL has passed a position when a later change is in the topics."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from ingestd.cdc.base import RecordChunk
from ingestd.compare import mysql
from ingestd.compare.binlog_reader import BinlogReader, parse_gtids
from ingestd.compare.catch_up import ConnectorState
from ingestd.compare.dialect import SqlDialect
from ingestd.errors import SourceError
from ingestd.kafka.offset_ranges import OffsetRange
from ingestd.kafka.properties import KafkaSource


@pytest.mark.parametrize(
    ("text", "last"),
    [
        ("", {}),
        ("0-1-35,3-2-7", {"0": 35, "3": 7}),
        ("aa-bb:1-7:9,\ncc:5", {"aa-bb": 9, "cc": 5}),
        ("aa:1-3:tag:1-8:12", {"aa": 3, "aa:tag": 12}),
    ],
)
def test_the_last_number_of_each_origin_is_parsed(text: str, last: Mapping[str, int]) -> None:
    assert parse_gtids(text) == last


@dataclass
class World:
    """A server, the topics `orders` and `items`, and their newest messages."""

    version: str = "11.4.5-MariaDB"
    gtids: str = "0-1-35"
    file: tuple[str, int] | None = ("bin.000004", 700)
    threads: Sequence[str] = ("Query", "Binlog Dump")
    sees_all: int = 1
    messages: list[bytes | None] = field(default_factory=list)
    reads: list[OffsetRange] = field(default_factory=list)

    @property
    def dialect(self) -> SqlDialect:
        return mysql

    def query(self, sql: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        if sql.startswith("SELECT version"):
            return [(self.version, 1)]
        if sql.startswith("SELECT @@gtid"):
            assert ("current_pos" in sql) == ("MariaDB" in self.version)
            return [(self.gtids,)]
        if sql == "SHOW PROCESSLIST":
            return [(1, "u", "h", None, command, 0, "", None) for command in self.threads]
        if sql.startswith("SHOW"):
            if self.file is None:
                raise SourceError("Access denied")
            return [(*self.file, "", "")]
        return [(self.sees_all,)]

    def close(self) -> None: ...

    def list_topic_partitions(self) -> dict[str, tuple[int, ...]]:
        return {"orders": (0,)}

    def topic_keys(self, topics: list[str]) -> dict[str, str]:
        return dict.fromkeys(topics, "key")

    def cluster_id(self) -> str:
        return "cluster"

    def end_offsets(self, partitions: Any) -> dict[str, dict[int, int]]:
        return {"orders": {0: len(self.messages)}}

    def beginning_offsets(self, partitions: Any) -> dict[str, dict[int, int]]:
        return {"orders": {0: 0}}

    def leader_epochs(self, ends: Any) -> dict[str, dict[int, int]]:
        return {"orders": {0: 0}}

    def ranges(self, source: KafkaSource, topic: str) -> list[OffsetRange]:
        raise AssertionError("the offsets are those of the clusters")

    def read(
        self, source: KafkaSource, offset_range: OffsetRange, *, headers: bool
    ) -> Iterator[RecordChunk]:
        self.reads.append(offset_range)
        values = self.messages[offset_range.start : offset_range.until]
        offsets = np.arange(offset_range.start, offset_range.until)
        yield RecordChunk("orders", 0, offsets, offsets, [None] * len(values), values, None)

    def state(self) -> ConnectorState:
        clusters: Any = {"shop": self}
        sources: Any = {"shop": None}
        reader = BinlogReader(self, sources, clusters, self)
        state = reader.state_at(reader.source_position())
        assert state is not None
        assert reader.state_at(reader.source_position()) == state
        assert len(self.reads) == bool(self.messages), "unchanged topics are not read again"
        return state


def message(*, envelope: bool = False, **source: Any) -> bytes:
    event = {"op": "u", "source": {"server_id": 1, "snapshot": "false", **source}}
    return json.dumps({"schema": {}, "payload": event} if envelope else event).encode()


AT = {"file": "bin.000004", "pos": 700}


@pytest.mark.parametrize(
    ("newest", "world", "passed"),
    [
        (message(gtid="0-1-36"), {}, True),
        (message(gtid="0-1-36", envelope=True), {}, True),
        (message(gtid="0-1-35", **AT), {}, False),
        (message(gtid="0-1-36", snapshot="true"), {}, False),
        (message(gtid="0-1-36", snapshot="incremental"), {}, False),
        (message(gtid="7-1-99", file="bin.000009", pos=1), {}, False),
        (message(**AT), {}, True),
        (message(file="bin.000004", pos=699), {}, False),
        (message(file="bin.000003", pos=900), {}, False),
        (message(**AT, server_id=2), {}, False),
        (message(**AT), {"file": None}, False),
        (message(gtid="aa:9", **AT), {"version": "8.4.2", "gtids": "aa:1-8"}, True),
        (message(gtid="aa:8", **AT), {"version": "8.4.2", "gtids": "aa:1-8"}, False),
        (b"not JSON", {}, False),
        (b'{"id": 1}', {}, False),
        (b'{"source": 1}', {}, False),
        (None, {}, False),
    ],
)
def test_a_later_change_in_the_topics_shows_that_the_connector_has_passed(
    newest: bytes | None, world: dict[str, Any], passed: bool
) -> None:
    assert World(messages=[newest], **world).state().has_passed == passed


def test_a_connector_is_active_if_a_thread_sends_the_log_or_threads_are_not_visible() -> None:
    assert World().state().is_active
    assert not World(threads=["Query"]).state().is_active
    assert World(threads=["Query"], sees_all=0).state().is_active
    assert World(threads=["Binlog Dump GTID"]).state().is_active
