"""Offsets of many topic partitions, requested with little CPU for each.

The admin client creates a future for each partition, which takes 0.1 ms of CPU; for 10,000
partitions that is a second for each micro-batch. A consumer returns a list instead, but does not
report which partition failed. It is therefore used for many partitions only, and if it fails the
admin client repeats the request.
"""

from collections.abc import Sequence

from confluent_kafka import OFFSET_INVALID, Consumer, KafkaException, TopicPartition

from ingestd.kafka.auth_errors import refused_properties
from ingestd.kafka.consumers import LOG
from ingestd.kafka.properties import KafkaSource, admin_properties

_SECONDS = 5.0
_PROPERTIES = {"enable.auto.commit": "false", "isolation.level": "read_committed"}


class BulkOffsets:
    """A consumer that only requests offsets. Raises ConfigError for invalid properties."""

    def __init__(self, source: KafkaSource) -> None:
        properties = {**admin_properties(source), **_PROPERTIES, "group.id": source.group}
        with refused_properties(source):
            self._consumer = Consumer(properties, logger=LOG)

    def request(self, positions: Sequence[TopicPartition]) -> list[TopicPartition]:
        """Return the offset and leader epoch of each position; empty if any is not available.

        The `offset` of a position is OFFSET_BEGINNING, OFFSET_END (the last stable offset) or a
        timestamp in ms since 1970, for which the result is the first offset at or after this time,
        negative if there is none.
        """
        self._consumer.poll(0)  # serves callbacks for tokens
        try:
            found = self._consumer.offsets_for_times(list(positions), timeout=_SECONDS)
        except KafkaException:
            return []
        available = all(
            position.error is None and position.offset != OFFSET_INVALID for position in found
        )
        return found if available else []

    def close(self) -> None:
        """Close the connections."""
        self._consumer.close()
