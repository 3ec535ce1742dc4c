"""Requests to brokers: partitions, offsets and ids of topics, and offsets of consumer groups."""

import time
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from contextlib import closing
from typing import TypeAlias

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    OFFSET_INVALID,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # they are public
    ListOffsetsResultInfo,
    OffsetSpec,
)

from ingestd.errors import SourceError, SourceSilentError
from ingestd.kafka.admin_client import PAUSE_SECONDS, AdminConnection, Future
from ingestd.kafka.bulk_offsets import BulkOffsets
from ingestd.kafka.group import ConsumerGroup
from ingestd.kafka.log_checks import divergences, fingerprints
from ingestd.kafka.properties import KafkaSource
from ingestd.kafka.ranges import TopicOffsets

_REQUEST_SECONDS = 30.0
_MOVING = frozenset(
    {
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.OFFSET_NOT_AVAILABLE,
    }
)
"""Errors of a partition during a leader election, or just after its creation."""
_UNKNOWN = -1
_NO_TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAA"
"""The zero id that brokers without topic ids report."""
_SPECS: Mapping[int, OffsetSpec] = {
    OFFSET_BEGINNING: OffsetSpec.earliest(),  # type: ignore[no-untyped-call]  # as in the client
    OFFSET_END: OffsetSpec.latest(),  # type: ignore[no-untyped-call]  # as in the client
}
MANY_PARTITIONS = 100
"""From this number of partitions on, offsets are requested in bulk."""

TopicPartitions: TypeAlias = Mapping[str, tuple[int, ...]]


class OffsetClient:
    """A client for requests to the cluster of one source; responses are not cached.

    Each request raises SourceSilentError if the brokers do not respond within `request_seconds`,
    and SourceError if they reject the client. Raises ConfigError for invalid properties.
    """

    def __init__(self, source: KafkaSource, *, request_seconds: float = _REQUEST_SECONDS) -> None:
        self.source = source
        self._admin = AdminConnection(source, request_seconds)
        self._bulk: BulkOffsets | None = None
        self._groups: dict[str, ConsumerGroup] = {}
        self._epochs: dict[tuple[str, int], int] = {}

    def list_topic_partitions(self) -> TopicPartitions:
        """Return the partitions of each existing topic that the source selects."""
        metadata = self._admin.metadata()
        return {
            topic: tuple(sorted(metadata.topics[topic].partitions))
            for topic in self.source.selected(metadata.topics)
            if metadata.topics[topic].partitions
        }

    def beginning_offsets(self, partitions: TopicPartitions) -> TopicOffsets:
        """Return the first offset that each log still has, by topic and partition."""
        return self._offsets(partitions, OFFSET_BEGINNING)

    def end_offsets(self, partitions: TopicPartitions) -> TopicOffsets:
        """Return the last stable offsets; all records before them are committed or aborted."""
        return self._offsets(partitions, OFFSET_END)

    def offsets_at(self, partitions: TopicPartitions, millis: int) -> TopicOffsets:
        """Return the offset of the first record at or after a time (ms since 1970).

        Partitions without such a record are left out.
        """
        offsets = self._offsets(partitions, millis)
        return {
            topic: {partition: offset for partition, offset in by_partition.items() if offset >= 0}
            for topic, by_partition in offsets.items()
        }

    def group_offsets(self, group: str, partitions: TopicPartitions) -> TopicOffsets:
        """Return the committed offsets of a consumer group, for partitions that have one."""
        topic_partitions = [
            TopicPartition(topic, partition)
            for topic in partitions
            for partition in partitions[topic]
        ]
        offsets: dict[str, dict[int, int]] = {topic: {} for topic in partitions}
        if not topic_partitions:
            return offsets
        with closing(ConsumerGroup(self.source, group, self._admin.seconds)) as consumer_group:
            for committed in consumer_group.committed(topic_partitions):
                if committed.offset >= 0:
                    offsets[committed.topic][committed.partition] = committed.offset
        return offsets

    def topic_ids(self, topics: Iterable[str]) -> Mapping[str, str]:
        """Return the ids of those topics that exist; a recreated topic has another id."""
        names = sorted(topics)
        if not names:
            return {}
        descriptions = self._admin.client.describe_topics(
            TopicCollection(names), request_timeout=self._admin.seconds
        )
        ids: dict[str, str] = {}
        for topic, future in descriptions.items():
            try:
                ids[topic] = str(self._admin.result(f"topic {topic}", future).topic_id)
            except SourceError as error:
                if not _is_caused_by(error, {KafkaError.UNKNOWN_TOPIC_OR_PART}):
                    raise
        return ids

    def topic_keys(self, topics: Iterable[str]) -> Mapping[str, str]:
        """Return the log keys of those topics that exist.

        A key is the topic id, or `CLUSTER/TOPIC` if the brokers have no topic ids.
        """
        ids = self.topic_ids(topics)
        missing = {topic for topic, topic_id in ids.items() if topic_id == _NO_TOPIC_ID}
        cluster = self.cluster_id() if missing else ""
        return {topic: f"{cluster}/{topic}" if topic in missing else ids[topic] for topic in ids}

    def leader_epochs(self, ends: TopicOffsets) -> TopicOffsets:
        """Return the leader epochs that brokers reported with `ends`, -1 if they reported none."""
        return {
            topic: {
                partition: self._epochs.get((topic, partition), _UNKNOWN)
                for partition in partitions
            }
            for topic, partitions in ends.items()
        }

    def divergences(
        self, positions: Mapping[tuple[str, int], tuple[int, int]]
    ) -> Mapping[tuple[str, int], int]:
        """Return where logs diverge from the (offset, leader epoch) pairs that were reached.

        The result contains only diverging logs, with -1 if a log does not know the epoch: then it
        is a different log.
        """
        return divergences(self.source, positions, self._admin.seconds) if positions else {}

    def fingerprints(self, offsets: Mapping[tuple[str, int], int]) -> Mapping[tuple[str, int], int]:
        """Return the checksum of the record just before each offset, if the log has the record."""
        return fingerprints(self.source, offsets, self._admin.seconds) if offsets else {}

    def cluster_id(self) -> str:
        """Return the id of the cluster."""
        future = self._admin.client.describe_cluster(request_timeout=self._admin.seconds)
        cluster_id: str = self._admin.result("the cluster", future).cluster_id
        return cluster_id

    def commit_group_offsets(self, group: str, offsets: TopicOffsets) -> None:
        """Commit offsets for a consumer group; only lag tools read them."""
        committed = [
            TopicPartition(topic, partition, offset)
            for topic, partitions in offsets.items()
            for partition, offset in partitions.items()
        ]
        if committed:
            if group not in self._groups:
                self._groups[group] = ConsumerGroup(self.source, group, self._admin.seconds)
            self._groups[group].commit(committed)

    def close(self) -> None:
        """Close the connections; no request is possible afterwards."""
        while self._groups:
            self._groups.popitem()[1].close()
        if self._bulk is not None:
            self._bulk.close()
            self._bulk = None
        self._admin.close()

    def _offsets(self, partitions: TopicPartitions, position: int) -> TopicOffsets:
        """Return offsets by topic and partition; `position` is as in `BulkOffsets.request`."""
        pending = {
            TopicPartition(topic, partition)
            for topic in partitions
            for partition in partitions[topic]
        }
        offsets: dict[str, dict[int, int]] = {topic: {} for topic in partitions}
        if len(pending) >= MANY_PARTITIONS:
            for response in self._request_bulk(pending, position):
                offsets[response.topic][response.partition] = response.offset
                self._note_epoch(response, position, response.leader_epoch)
                pending.remove(response)
        deadline = time.monotonic() + self._admin.seconds
        while pending:
            futures = self._admin.client.list_offsets(
                dict.fromkeys(pending, _spec(position)),
                isolation_level=IsolationLevel.READ_COMMITTED,
                request_timeout=self._admin.seconds,
            )
            for topic_partition, future in futures.items():
                offset = self._offset(topic_partition, future, patient=time.monotonic() <= deadline)
                if offset is not None:
                    offsets[topic_partition.topic][topic_partition.partition] = offset.offset
                    self._note_epoch(topic_partition, position, offset.leader_epoch)
                    pending.remove(topic_partition)
            if pending:
                time.sleep(PAUSE_SECONDS)
        return offsets

    def _request_bulk(
        self, topic_partitions: Iterable[TopicPartition], position: int
    ) -> list[TopicPartition]:
        if self._bulk is None:
            self._bulk = BulkOffsets(self.source)
        return self._bulk.request(
            [TopicPartition(each.topic, each.partition, position) for each in topic_partitions]
        )

    def _note_epoch(
        self, topic_partition: TopicPartition, position: int, epoch: int | None
    ) -> None:
        if position == OFFSET_END:
            key = (topic_partition.topic, topic_partition.partition)
            self._epochs[key] = _UNKNOWN if epoch is None else epoch

    def _offset(
        self,
        topic_partition: TopicPartition,
        future: Future[ListOffsetsResultInfo],
        *,
        patient: bool,
    ) -> ListOffsetsResultInfo | None:
        """Return the requested offset; None if a retry may succeed and `patient` allows it."""
        what = f"offsets of {topic_partition.topic}/{topic_partition.partition}"
        try:
            result: ListOffsetsResultInfo = self._admin.result(what, future)
        except SourceError as error:
            if patient and (isinstance(error, SourceSilentError) or _is_caused_by(error, _MOVING)):
                return None
            raise
        if result.offset != OFFSET_INVALID:
            return result
        # The client reports a connection that was lost during the request only in these words.
        if not patient:
            lost = KafkaException(KafkaError(KafkaError._TRANSPORT))
            raise self._admin.unanswered(what, lost)
        return None


def _spec(position: int) -> OffsetSpec:
    return _SPECS.get(position) or OffsetSpec.for_timestamp(position)


def _is_caused_by(error: SourceError, codes: AbstractSet[int]) -> bool:
    """Return whether a broker error with one of these codes caused the error."""
    cause = error.__cause__
    return isinstance(cause, KafkaException) and cause.args[0].code() in codes
