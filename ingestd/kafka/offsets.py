"""Requests to brokers: partitions, offsets and ids of topics, and offsets of consumer groups."""

import time
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from contextlib import closing
from typing import TypeAlias

from confluent_kafka import (
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
from ingestd.kafka.consumer_group import ConsumerGroup
from ingestd.kafka.log_checks import divergences, fingerprints
from ingestd.kafka.offset_ranges import TopicOffsets
from ingestd.kafka.properties import KafkaSource

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
_EARLIEST = OffsetSpec.earliest()  # type: ignore[no-untyped-call]  # untyped in the client
_LATEST = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # untyped in the client

TopicPartitions: TypeAlias = Mapping[str, tuple[int, ...]]


class OffsetClient:
    """A client for requests to the cluster of one source; responses are not cached.

    Each request raises SourceSilentError if the brokers do not respond within `request_seconds`,
    and SourceError if it fails or if they reject the client. Raises ConfigError for invalid
    properties, and SourceError if no token could be fetched.
    """

    def __init__(self, source: KafkaSource, *, request_seconds: float = _REQUEST_SECONDS) -> None:
        self.source = source
        self._admin = AdminConnection(source, request_seconds)
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

    def existing_topics(self) -> AbstractSet[str]:
        """Return the names of all topics that the client may see."""
        return frozenset(self._admin.metadata().topics)

    def beginning_offsets(self, partitions: TopicPartitions) -> TopicOffsets:
        """Return the first offset that each log still has, by topic and partition."""
        return self._offsets(partitions, _EARLIEST)

    def end_offsets(self, partitions: TopicPartitions) -> TopicOffsets:
        """Return the last stable offsets; all records before them are committed or aborted."""
        return self._offsets(partitions, _LATEST)

    def offsets_at(self, partitions: TopicPartitions, millis: int) -> TopicOffsets:
        """Return the offset of the first record at or after a time (ms since 1970) in each log.

        Partitions without such a record are left out.
        """
        spec = OffsetSpec.for_timestamp(millis)
        offsets = self._offsets(partitions, spec)
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
        """Return the topic ids of the existing topics among `topics`, by name.

        A topic that was deleted and created again has another id. If the brokers have no topic ids,
        every id is the zero id.
        """
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
        """Return, by name, a key that identifies the logs of each existing topic among `topics`.

        A key is the topic id, or `CLUSTER/TOPIC` if the brokers have no topic ids.
        """
        ids = self.topic_ids(topics)
        missing = {topic for topic, topic_id in ids.items() if topic_id == _NO_TOPIC_ID}
        cluster = self.cluster_id() if missing else ""
        return {topic: f"{cluster}/{topic}" if topic in missing else ids[topic] for topic in ids}

    def leader_epochs(self, ends: TopicOffsets) -> TopicOffsets:
        """Return the leader epochs that brokers reported with the last `end_offsets`.

        The result has the partitions of `ends`; an epoch is -1 if none was reported.
        """
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
        """Return the offset from which a log differs from the records that were read, by log.

        `positions` maps (topic, partition) to the (offset, leader epoch) up to which the partition
        was read. Only topic partitions that diverge are in the result, with -1 if the log does not
        have the epoch.
        """
        return divergences(self.source, positions, self._admin.seconds) if positions else {}

    def fingerprints(self, offsets: Mapping[tuple[str, int], int]) -> Mapping[tuple[str, int], int]:
        """Return the checksum of the record just before each offset, if the log has this record.

        An offset has no entry in the result if the log has no record just before it, or no longer
        has this record.
        """
        return fingerprints(self.source, offsets, self._admin.seconds) if offsets else {}

    def cluster_id(self) -> str:
        """Return the id of the cluster."""
        future = self._admin.client.describe_cluster(request_timeout=self._admin.seconds)
        cluster_id: str = self._admin.result("the cluster", future).cluster_id
        return cluster_id

    def commit_group_offsets(self, group: str, offsets: TopicOffsets) -> None:
        """Commit offsets for a consumer group, from which lag tools read the progress."""
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
        """Close the connections; the client must not be used afterwards."""
        while self._groups:
            self._groups.popitem()[1].close()
        self._admin.close()

    def _offsets(self, partitions: TopicPartitions, spec: OffsetSpec) -> TopicOffsets:
        pending = {
            TopicPartition(topic, partition): spec
            for topic in partitions
            for partition in partitions[topic]
        }
        if not pending:
            return {topic: {} for topic in partitions}
        offsets: dict[str, dict[int, int]] = {topic: {} for topic in partitions}
        deadline = time.monotonic() + self._admin.seconds
        while pending:
            futures = self._admin.client.list_offsets(
                pending,
                isolation_level=IsolationLevel.READ_COMMITTED,
                request_timeout=self._admin.seconds,
            )
            for topic_partition, future in futures.items():
                offset = self._offset(topic_partition, future, patient=time.monotonic() <= deadline)
                if offset is not None:
                    offsets[topic_partition.topic][topic_partition.partition] = offset.offset
                    if spec is _LATEST:
                        epoch = _UNKNOWN if offset.leader_epoch is None else offset.leader_epoch
                        self._epochs[topic_partition.topic, topic_partition.partition] = epoch
                    del pending[topic_partition]
            if pending:
                time.sleep(PAUSE_SECONDS)
        return offsets

    def _offset(
        self,
        topic_partition: TopicPartition,
        future: Future[ListOffsetsResultInfo],
        *,
        patient: bool,
    ) -> ListOffsetsResultInfo | None:
        """Return the requested offset; None if the request failed but a retry may succeed.

        If `patient` is not set, such a failure raises an error instead.
        """
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
            raise self._admin.no_response_error(what, lost)
        return None


def _is_caused_by(error: SourceError, codes: AbstractSet[int]) -> bool:
    """Return whether the error was caused by a KafkaException with one of these codes."""
    cause = error.__cause__
    return isinstance(cause, KafkaException) and cause.args[0].code() in codes
