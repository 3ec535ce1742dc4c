"""Dead letters of accepted losses."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from ingestd.ingest.recovery import start
from ingestd.ingest.recovery.logs import LogPartition
from ingestd.ingest.recovery.losses import Loss
from ingestd.ingest.settings.context import SourceSettings
from ingestd.ingest.tables.log_positions import Position, TopicName
from ingestd.kafka.producer import Outgoing
from ingestd.kafka.properties import KafkaSource
from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.table.metadata.table_state import load_state
from tests.support.native_tables import native_table
from tests.support.registries import pipeline_of


def test_each_source_gets_the_letters_of_its_own_losses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: dict[str, list[bytes | None]] = {}

    def produce(kafka: KafkaSource, topic: str, messages: Iterable[Outgoing]) -> None:
        assert topic == "letters"
        sent[kafka.name] = [dict(message.headers)["ingestd.topic"] for message in messages]

    monkeypatch.setattr(start, "produce", produce)
    sources = {
        name: SourceSettings(KafkaSource(name, (), topic_pattern=".*"), "debezium-json")
        for name in ("east", "west")
    }
    settings = pipeline_of(tmp_path, sources=sources, dead_letter_topic="letters")
    table = native_table("/w", [("id", "INT")], io=MemoryFileIO())
    letters = [
        (
            source,
            Loss(
                TopicName(topic, source),
                LogPartition(topic, 0),
                5,
                9,
                "t",
                "offset-gap",
                Position(9),
            ),
        )
        for source, topic in (("east", "a"), ("west", "b"), ("west", "c"))
    ]
    pairs = [(source, loss.dead_letter()) for source, loss in letters]
    assert start.write_dead_letters(settings, table, load_state(table), pairs) == []
    assert sent == {"east": [b"a"], "west": [b"b", b"c"]}
