"""Read records of a source's topics outside of the offset ranges of a batch."""

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
    """Reads the logs of the topics of all sources, outside of a batch.

    Methods raise SourceError if the brokers do not respond or reject the client, LogChangedError if
    a log no longer has a range, and ConfigError for invalid properties.
    """

    def ranges(self, source: KafkaSource, topic: str) -> list[OffsetRange]:
        """Return, for each partition of a topic, the range from its first offset to its end.

        Returns [] if the topic does not exist.
        """
        ...

    def read(
        self, source: KafkaSource, offset_range: OffsetRange, *, headers: bool
    ) -> Iterator[RecordChunk]:
        """Yield the records of a range in chunks, in order of offset.

        Reading ends without an error at the first record that cannot be read. With `headers`,
        chunks have the headers of records.
        """
        ...


@dataclass(frozen=True, slots=True)
class KafkaRecordLog:
    """Reads the logs of the topics of all sources from brokers; `bounds` limit a chunk."""

    bounds: Bounds

    def ranges(self, source: KafkaSource, topic: str) -> list[OffsetRange]:
        """Return, for each partition of a topic, the range from its first offset to its end.

        Returns [] if the topic does not exist or the source does not select it. Raises SourceError
        if the brokers do not respond or reject the client, ConfigError for invalid properties.
        """
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

        With `headers`, chunks have the headers of records. Reading ends without an error at the
        first record that cannot be read. Raises LogChangedError if the log no longer has the range,
        SourceError if the brokers do not respond or reject the client, and ConfigError for invalid
        properties.
        """
        return fetch_readable(source, [offset_range], self.bounds, _end_there, headers=headers)


def _end_there(unreadable: Unreadable) -> None:
    """Ignore the unreadable rest of a range, so that reading ends there."""
