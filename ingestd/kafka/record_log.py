"""Read records of a source again, outside of the offset ranges of a batch."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Protocol

from ingestd.cdc.base import RecordChunk
from ingestd.kafka.fetch import Bounds
from ingestd.kafka.isolated_fetch import Unreadable, fetch_readable
from ingestd.kafka.offset_ranges import OffsetRange
from ingestd.kafka.offsets import OffsetClient
from ingestd.kafka.properties import KafkaSource


class RecordLog(Protocol):
    """Reads the logs of the topics of all sources, outside of a batch."""

    def ranges(self, source: KafkaSource, topic: str) -> list[OffsetRange]:
        """Return the offsets that the log of each partition of a topic has now."""
        ...

    def read(
        self, source: KafkaSource, offset_range: OffsetRange, *, headers: bool
    ) -> Iterator[RecordChunk]:
        """Yield the records of a range in chunks, in order of offset.

        If a record cannot be read, it is the end of the range.
        """
        ...


@dataclass(frozen=True, slots=True)
class KafkaRecordLog:
    """The Kafka logs of all sources, read through brokers; `bounds` limit a chunk.

    Methods raise the errors of `OffsetClient` and `fetch_readable`.
    """

    bounds: Bounds

    def ranges(self, source: KafkaSource, topic: str) -> list[OffsetRange]:
        """Return the offsets that the log of each partition of a topic has now."""
        with closing(OffsetClient(source)) as client:
            partitions = {topic: client.list_topic_partitions().get(topic, ())}
            begins = client.beginning_offsets(partitions)[topic]
            ends = client.end_offsets(partitions)[topic]
        return [
            OffsetRange(source.name, topic, partition, begins[partition], ends[partition])
            for partition in partitions[topic]
        ]

    def read(
        self, source: KafkaSource, offset_range: OffsetRange, *, headers: bool
    ) -> Iterator[RecordChunk]:
        """Yield the records of a range in chunks, in order of offset.

        If a record cannot be read, it is the end of the range.
        """
        return fetch_readable(source, [offset_range], self.bounds, _end_there, headers=headers)


def _end_there(unreadable: Unreadable) -> None:
    """Accept that a range cannot be read to its end."""
