"""Values that an update of the key left out, and whose records are not in the log any more."""

from dataclasses import replace
from pathlib import Path

from ingestd.kafka.offset_ranges import OffsetRange
from ingestd.kafka.properties import KafkaSource
from tests.property.test_key_changes import Messages, moved_with_late, run, values


def test_records_that_expire_while_a_batch_runs_have_no_values(tmp_path: Path) -> None:
    pipeline, _ = moved_with_late(tmp_path, partition=7)

    class Expired(Messages):
        def ranges(self, source: KafkaSource, topic: str) -> list[OffsetRange]:
            return [replace(log, start=log.until) for log in super().ranges(source, topic)]

    pipeline.kafka = Expired(topics=pipeline.kafka.topics)
    run(pipeline)
    assert values(pipeline) == [None]
    assert pipeline.unknown == 1
