"""What the brokers know about topics: partitions, offsets, ids; and group offsets for lag tools."""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol, TypeVar

from confluent_kafka import (
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # OffsetSpec is public
    AdminClient,
    OffsetSpec,
)

from ingestd.errors import ConfigError, SourceError
from ingestd.kafka.consumers import LOG
from ingestd.kafka.properties import KafkaSource, admin_properties
from ingestd.kafka.ranges import TopicOffsets

_REQUEST_SECONDS = 30.0
_PAUSE_SECONDS = 0.1
_MOVING = frozenset(
    {
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.OFFSET_NOT_AVAILABLE,
    }
)
"""What brokers say of partitions whose leader changes, and of those that were created just now."""
_EARLIEST = OffsetSpec.earliest()  # type: ignore[no-untyped-call]  # untyped in the client
_LATEST = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # untyped in the client

_T = TypeVar("_T")
_R = TypeVar("_R", covariant=True)
TopicPartitions = Mapping[str, tuple[int, ...]]


class _Future(Protocol[_R]):
    def result(self, timeout: float) -> _R: ...


class OffsetClient:
    """Questions to the cluster of one source; every answer is fresh.

    Each question raises SourceError when the brokers do not answer within `request_seconds`.
    """

    def __init__(self, source: KafkaSource, *, request_seconds: float = _REQUEST_SECONDS) -> None:
        self.source = source
        self._seconds = request_seconds
        try:
            self._admin = AdminClient({**admin_properties(source)}, logger=LOG)
        except (KafkaException, ValueError, TypeError) as error:
            raise ConfigError(f"sources.{source.name}.kafka: {error}") from error

    def list_topic_partitions(self) -> TopicPartitions:
        """Partitions of the topics that the source selects and that exist."""
        metadata = self._asked("topics", lambda: self._admin.list_topics(timeout=self._seconds))
        return {
            topic: tuple(sorted(metadata.topics[topic].partitions))
            for topic in self.source.selected(metadata.topics)
            if metadata.topics[topic].partitions
        }

    def beginning_offsets(self, partitions: TopicPartitions) -> TopicOffsets:
        """The first offset that the log still has, by topic and partition."""
        return self._offsets(partitions, _EARLIEST)

    def end_offsets(self, partitions: TopicPartitions) -> TopicOffsets:
        """The last stable offset (before it everything is committed or aborted)."""
        return self._offsets(partitions, _LATEST)

    def offsets_at(self, partitions: TopicPartitions, millis: int) -> TopicOffsets:
        """Of each partition the first offset whose record is not older; none where all are."""
        spec = OffsetSpec.for_timestamp(millis)
        found = self._offsets(partitions, spec)
        return {
            topic: {partition: offset for partition, offset in by_partition.items() if offset >= 0}
            for topic, by_partition in found.items()
        }

    def group_offsets(self, group: str, partitions: TopicPartitions) -> TopicOffsets:
        """The next offsets of a consumer group, of the partitions where it has one."""
        places = [TopicPartition(topic, one) for topic in partitions for one in partitions[topic]]
        offsets: dict[str, dict[int, int]] = {topic: {} for topic in partitions}
        if not places:
            return offsets
        request = [ConsumerGroupTopicPartitions(group, places)]
        futures = self._admin.list_consumer_group_offsets(request, request_timeout=self._seconds)
        for future in futures.values():
            for place in self._result(f"group {group}", future).topic_partitions:
                if place.error is not None:
                    raise self._unanswered(f"group {group}", KafkaException(place.error))
                if place.offset >= 0:
                    offsets[place.topic][place.partition] = place.offset
        return offsets

    def topic_ids(self, topics: Iterable[str]) -> Mapping[str, str]:
        """The ids of those topics that exist: one created anew under an old name has another."""
        names = sorted(topics)
        if not names:
            return {}
        found = self._admin.describe_topics(TopicCollection(names), request_timeout=self._seconds)
        ids: dict[str, str] = {}
        for topic, future in found.items():
            try:
                ids[topic] = str(future.result(self._seconds).topic_id)
            except KafkaException as error:
                if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                    raise self._unanswered(f"topic {topic}", error) from error
            except TimeoutError as error:
                raise self._unanswered(f"topic {topic}", error) from error
        return ids

    def cluster_id(self) -> str:
        """The id of the cluster."""
        future = self._admin.describe_cluster(request_timeout=self._seconds)
        cluster_id: str = self._result("the cluster", future).cluster_id
        return cluster_id

    def commit_group_offsets(self, group: str, offsets: TopicOffsets) -> None:
        """Write offsets of a consumer group: a hint for lag tools."""
        places = [
            TopicPartition(topic, partition, offset)
            for topic, partitions in offsets.items()
            for partition, offset in partitions.items()
        ]
        if places:
            request = [ConsumerGroupTopicPartitions(group, places)]
            futures = self._admin.alter_consumer_group_offsets(
                request, request_timeout=self._seconds
            )
            for future in futures.values():
                self._result(f"group {group}", future)

    def _offsets(self, partitions: TopicPartitions, spec: OffsetSpec) -> TopicOffsets:
        places = {
            TopicPartition(topic, one): spec for topic in partitions for one in partitions[topic]
        }
        if not places:
            return {topic: {} for topic in partitions}
        offsets: dict[str, dict[int, int]] = {topic: {} for topic in partitions}
        deadline = time.monotonic() + self._seconds
        while places:
            futures = self._admin.list_offsets(
                places,
                isolation_level=IsolationLevel.READ_COMMITTED,
                request_timeout=self._seconds,
            )
            for place, future in futures.items():
                what = f"offsets of {place.topic}/{place.partition}"
                try:
                    offset = self._result(what, future).offset
                except SourceError as error:
                    if time.monotonic() > deadline or not _is_moving(error.__cause__):
                        raise
                else:
                    offsets[place.topic][place.partition] = offset
                    del places[place]
            if places:
                time.sleep(_PAUSE_SECONDS)
        return offsets

    def _result(self, what: str, future: _Future[_T]) -> _T:
        return self._asked(what, lambda: future.result(self._seconds))

    def _asked(self, what: str, ask: Callable[[], _T]) -> _T:
        try:
            return ask()
        except (KafkaException, TimeoutError) as error:
            raise self._unanswered(what, error) from error

    def _unanswered(self, what: str, error: Exception) -> SourceError:
        reason = str(error.args[0].str()) if isinstance(error, KafkaException) else "no answer"
        return SourceError(
            f"source {self.source.name}: {self.source.bootstrap} did not tell about {what}: "
            f"{reason}; is it the right address, and is the broker up?"
        )


def _is_moving(error: BaseException | None) -> bool:
    return isinstance(error, KafkaException) and error.args[0].code() in _MOVING
