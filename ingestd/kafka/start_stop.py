"""Determine from a source's modes where reading starts for the first time, and where it ends.

The modes have the names of Flink's Kafka connector. Startup modes apply only to the first start of
a source. Topics and partitions that appear later are read from their beginning, and all others
continue at their position in the tables.
"""

from collections.abc import Callable, Mapping
from typing import Protocol

from ingestd.errors import ConfigError, OffsetLostError
from ingestd.kafka.offset_ranges import TopicOffsets
from ingestd.kafka.offsets import TopicPartitions
from ingestd.kafka.properties import KafkaSource


class Cluster(Protocol):
    """The requests to a cluster by which start and end offsets are found.

    `OffsetClient` implements them. All methods raise SourceError if the brokers do not respond.
    """

    def list_topic_partitions(self) -> TopicPartitions:
        """Return the partitions of each existing topic that the source selects."""

    def beginning_offsets(self, partitions: TopicPartitions) -> TopicOffsets:
        """Return the first offset that each log still has, by topic and partition."""

    def end_offsets(self, partitions: TopicPartitions) -> TopicOffsets:
        """Return the last stable offsets; all records before them are committed or aborted."""

    def offsets_at(self, partitions: TopicPartitions, millis: int) -> TopicOffsets:
        """Return the offset of the first record at or after a time (ms since 1970) in each log.

        Partitions without such a record are left out.
        """

    def group_offsets(self, group: str, partitions: TopicPartitions) -> TopicOffsets:
        """Return the committed offsets of a consumer group, for partitions that have one."""


def first_positions(source: KafkaSource, cluster: Cluster, ends: TopicOffsets) -> TopicOffsets:
    """Return the first offsets to read by the source's startup mode.

    A topic partition without an offset in the result is read from the beginning of its log. `ends`
    are the ends of all logs. Raises ConfigError if offsets are configured for an unknown topic
    partition, or beyond the end of a log; OffsetLostError if the mode is group-offsets, the group
    has no offset in the log of a topic partition that has records, and the source's policy is to
    fail; and the errors of `cluster`.
    """
    return _FIRST[source.startup_mode](source, cluster, ends)


def last_positions(
    source: KafkaSource, cluster: Cluster, ends: TopicOffsets
) -> TopicOffsets | None:
    """Return the offsets at which reading ends by the bounded mode, None if it does not end.

    The result depends on `ends`, the current log ends, so call this function only once. Partitions
    without a specific offset end at the current end of their log; specific offsets may be beyond
    it. Raises ConfigError if offsets are configured for an unknown topic partition, and the errors
    of `cluster`.
    """
    if not source.is_bounded:
        return None
    if source.bounded_mode == "timestamp":
        return _at_time(cluster, ends, source.bounded_timestamp or 0)
    _check_there(source, "bounded", source.bounded_offsets, ends)
    return _over(ends, source.bounded_offsets)


def _from_beginning(_: KafkaSource, __: Cluster, ___: TopicOffsets) -> TopicOffsets:
    return {}


def _from_end(_: KafkaSource, __: Cluster, ends: TopicOffsets) -> TopicOffsets:
    return ends


def _from_time(source: KafkaSource, cluster: Cluster, ends: TopicOffsets) -> TopicOffsets:
    return _at_time(cluster, ends, source.startup_timestamp or 0)


def _from_group(source: KafkaSource, cluster: Cluster, ends: TopicOffsets) -> TopicOffsets:
    committed = cluster.group_offsets(source.group, _partitions(ends))
    begins = cluster.beginning_offsets(_partitions(ends))
    usable: dict[str, dict[int, int]] = {topic: {} for topic in ends}
    missing: list[str] = []
    for topic, partitions in ends.items():
        for partition, end in partitions.items():
            offset = committed.get(topic, {}).get(partition)
            if offset is not None and offset <= end:
                usable[topic][partition] = offset
            elif begins[topic][partition] < end:
                # The log was cut, or the topic was created again, since the group read it.
                beyond = "" if offset is None else f" ({offset} is beyond its end {end})"
                missing.append(f"{topic}/{partition}{beyond}")
    if missing and source.on_offset_out_of_range == "fail":
        raise OffsetLostError(
            f"source {source.name}: startup-mode is group-offsets, but group {source.group} "
            f"has no offset in the log of {', '.join(missing)}; set kafka.group.id to the intended "
            "group, or set on-offset-out-of-range to earliest or latest to start these partitions "
            "there"
        )
    return _over(ends, usable) if source.on_offset_out_of_range == "latest" else usable


def _from_offsets(source: KafkaSource, _: Cluster, ends: TopicOffsets) -> TopicOffsets:
    given = source.startup_offsets
    _check_there(source, "startup", given, ends)
    beyond = [
        f"{topic}/{partition} at {offset}, and its log ends at {ends[topic][partition]}"
        for topic, partitions in given.items()
        for partition, offset in partitions.items()
        if offset > ends[topic][partition]
    ]
    if beyond:
        raise ConfigError(
            f"sources.{source.name}: scan.startup.specific-offsets names {'; '.join(beyond)}"
        )
    return given


def _at_time(cluster: Cluster, ends: TopicOffsets, millis: int) -> TopicOffsets:
    """Return the offset of the first record at or after a time; the log end if all are older.

    `millis` are milliseconds since 1970.
    """
    offsets = cluster.offsets_at(_partitions(ends), millis)
    return {
        topic: {
            partition: min(end, offsets[topic].get(partition, end))
            for partition, end in partitions.items()
        }
        for topic, partitions in ends.items()
    }


def _check_there(source: KafkaSource, key: str, named: TopicOffsets, ends: TopicOffsets) -> None:
    missing = [
        f"{topic}/{partition}"
        for topic, partitions in named.items()
        for partition in partitions
        if partition not in ends.get(topic, {})
    ]
    if missing:
        raise ConfigError(
            f"sources.{source.name}: scan.{key}.specific-offsets names {', '.join(missing)}, which "
            f"{source.bootstrap} does not have"
        )


def _over(ends: TopicOffsets, positions: TopicOffsets) -> Mapping[str, Mapping[int, int]]:
    return {topic: {**partitions, **positions.get(topic, {})} for topic, partitions in ends.items()}


def _partitions(offsets: TopicOffsets) -> TopicPartitions:
    return {topic: tuple(partitions) for topic, partitions in offsets.items()}


_FIRST: Mapping[str, Callable[[KafkaSource, Cluster, TopicOffsets], TopicOffsets]] = {
    "earliest-offset": _from_beginning,
    "latest-offset": _from_end,
    "group-offsets": _from_group,
    "timestamp": _from_time,
    "specific-offsets": _from_offsets,
}
