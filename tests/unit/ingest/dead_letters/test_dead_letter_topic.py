"""Dead letters as messages, and which cluster they go to."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from ingestd.cdc.base import RecordChunk, RejectedRecord
from ingestd.ingest.dead_letters import dead_letter_topic
from ingestd.ingest.dead_letters.dead_letter import DeadLetter, dead_letter_rows
from ingestd.ingest.dead_letters.dead_letter_topic import dead_letter_messages, send_dead_letters
from ingestd.ingest.settings.context import SourceSettings
from ingestd.kafka.producer import Outgoing
from ingestd.kafka.properties import KafkaSource
from tests.support.ingest_rig import DEAD_LETTERS, Rig
from tests.support.json_changes import Change, JsonChanges, record


def rejected(offset: int, timestamp: int = 1000) -> RejectedRecord:
    return RejectedRecord("t", 3, offset, timestamp, "decode", "not_json", "wäs", b"k", b"\xff\x00")


def test_a_letter_is_the_record_with_the_rest_in_headers() -> None:
    rows = dead_letter_rows("job", "src", [DeadLetter(rejected(9), "lake.orders")])
    (one,) = dead_letter_messages(rows)
    assert (one.key, one.value, one.partition) == (b"k", b"\xff\x00", None)
    assert dict(one.headers) == {
        "ingestd.source": b"src",
        "ingestd.topic": b"t",
        "ingestd.partition": b"3",
        "ingestd.offset": b"9",
        "ingestd.timestamp": b"1000",
        "ingestd.stage": b"decode",
        "ingestd.reason": b"not_json",
        "ingestd.message": "wäs".encode(),
        "ingestd.job": b"job",
        "ingestd.table": b"lake.orders",
    }


def test_headers_of_the_record_come_first() -> None:
    headers: list[list[tuple[str, bytes | None]] | None] = [[("a", b"1"), ("b", None)]]
    offsets = np.array([9], np.int64)
    chunk = RecordChunk("t", 3, offsets, offsets, [b"k"], [b"v"], headers)
    rows = dead_letter_rows("job", "src", [DeadLetter(rejected(9))], chunk)
    (one,) = dead_letter_messages(rows)
    assert one.headers[:3] == (("a", b"1"), ("b", None), ("ingestd.source", b"src"))


def test_what_is_not_known_has_no_header() -> None:
    (one,) = dead_letter_messages(dead_letter_rows("job", "src", [DeadLetter(rejected(9, -1))]))
    assert {"ingestd.timestamp", "ingestd.table"}.isdisjoint(name for name, _ in one.headers)


@pytest.fixture
def produced(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, Outgoing]]:
    """What would have been sent: source, topic, message."""
    sent: list[tuple[str, str, Outgoing]] = []

    def produce(source: KafkaSource, topic: str, messages: Iterable[Outgoing]) -> int:
        found = [(source.name, topic, message) for message in messages]
        sent.extend(found)
        return len(found)

    monkeypatch.setattr(dead_letter_topic, "produce", produce)
    return sent


def test_each_letter_goes_to_the_cluster_that_its_record_came_from(
    produced: list[tuple[str, str, Outgoing]],
) -> None:
    sources = {name: SourceSettings(KafkaSource(name, ("t",)), "json") for name in ("a", "b")}
    context: Any = Rig().context(dead_letter_topic="dead")
    object.__setattr__(context, "sources", sources)
    parts = [dead_letter_rows("job", name, [DeadLetter(rejected(1))]) for name in ("b", "a", "b")]
    assert send_dead_letters(context, parts) == 3
    assert [(source, topic) for source, topic, _ in produced] == [
        ("a", "dead"), ("b", "dead"), ("b", "dead"),
    ]  # fmt: skip


def test_with_a_topic_nothing_is_written_to_the_table(
    json_changes: JsonChanges, produced: list[tuple[str, str, Outgoing]]
) -> None:
    rig = Rig(overrides={"dead_letter_topic": "dead"})
    rig.produce(record(Change({"id": 1})), b"not json", record(Change({"id": 2})))
    result = rig.run()
    assert DEAD_LETTERS not in result.messages
    assert [row["id"] for row in rig.rows("orders")] == [1, 2]
    assert [one.value for _, _, one in produced] == [b"not json"]
    assert result.counts.rejected.total() == 1
