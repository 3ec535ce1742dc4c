"""The state of the logs of a pipeline at startup, as reported by the brokers, by topic key.

A batch checks the topic keys of its records again (`TopicKeyCheck`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from ingestd.errors import ConfigError, LogChangedError
from ingestd.ingest.tables.log_positions import UNKNOWN, TopicName
from ingestd.kafka.offset_ranges import OffsetRange, TopicOffsets
from ingestd.kafka.start_stop import Cluster


class LogPartition(NamedTuple):
    """A log: the topic key, which `LogCluster.topic_keys` returns, and the partition of the topic.

    A topic that was deleted and created again has another key.
    """

    key: str
    partition: int


class LogCluster(Cluster, Protocol):
    """Requests to the brokers of one source at startup; implemented by `OffsetClient`.

    All methods raise SourceError if the brokers do not respond.
    """

    def topic_keys(self, topics: list[str]) -> Mapping[str, str]:
        """Return the topic keys of the existing topics among `topics`, by name.

        A key is the topic id, or `CLUSTER/TOPIC` if the brokers have no topic ids.
        """

    def cluster_id(self) -> str:
        """Return the id of the Kafka cluster."""

    def leader_epochs(self, ends: TopicOffsets) -> TopicOffsets:
        """Return the leader epochs that brokers reported with the last `end_offsets`.

        The result has the partitions of `ends`; an epoch is -1 if none was reported.
        """

    def divergences(
        self, positions: Mapping[tuple[str, int], tuple[int, int]]
    ) -> Mapping[tuple[str, int], int]:
        """Return the offset from which a log differs from the records that were read, by log.

        `positions` maps (topic, partition) to the (offset, leader epoch) up to which the partition
        was read. Only topic partitions that diverge are in the result, with -1 if the log does not
        have the epoch.
        """

    def fingerprints(self, offsets: Mapping[tuple[str, int], int]) -> Mapping[tuple[str, int], int]:
        """Return the checksum of the record just before each offset, if the log has this record.

        An offset has no entry in the result if the log has no record before it, or no longer has
        this record.
        """

    def close(self) -> None:
        """Close the connections."""


@dataclass(frozen=True, slots=True)
class LogState:
    """The current state of a log: its first offset, its end offset, and the leader epoch.

    `end` is exclusive; `epoch` is -1 if the brokers do not report it.
    """

    begin: int
    end: int
    epoch: int = UNKNOWN


@dataclass(frozen=True, slots=True)
class Logs:
    """The state of the logs of all sources.

    `states` has the state of each log, `keys` the topic key by (source, topic), and `names` the
    topic name by topic key.
    """

    states: Mapping[LogPartition, LogState] = field(default_factory=dict)
    keys: Mapping[tuple[str, str], str] = field(default_factory=dict)
    names: Mapping[str, TopicName] = field(default_factory=dict)

    def name_of(self, log: LogPartition) -> tuple[str, int]:
        """Return the topic and the partition by which the brokers of its source know a log.

        Raises KeyError if the log does not exist on the brokers.
        """
        return self.names[log.key].topic, log.partition


def ask_logs(clusters: Mapping[str, LogCluster]) -> Logs:
    """Request the state of the logs from the brokers of all sources; `clusters` is by source.

    Raises SourceError if brokers do not respond, ConfigError if two sources read the same topic,
    and LogChangedError if a topic is deleted or recreated during the requests.
    """
    states: dict[LogPartition, LogState] = {}
    keys: dict[tuple[str, str], str] = {}
    names: dict[str, TopicName] = {}
    for source, cluster in clusters.items():
        partitions = cluster.list_topic_partitions()
        topic_keys = cluster.topic_keys(sorted(partitions))
        existing = {topic: numbers for topic, numbers in partitions.items() if topic in topic_keys}
        cluster_id = cluster.cluster_id() if existing else ""
        ends = cluster.end_offsets(existing)
        begins, epochs = cluster.beginning_offsets(existing), cluster.leader_epochs(ends)
        _check_unchanged(source, cluster, {topic: topic_keys[topic] for topic in existing})
        for topic, numbers in existing.items():
            key = topic_keys[topic]
            if key in names:
                raise ConfigError(
                    f"topic {topic} is read by source {names[key].source} and by source {source}: "
                    "each of its records would be written twice; remove it from the 'topics' of "
                    "one of them, or name it in 'topic-exclude' where a 'topic-pattern' matches it"
                )
            keys[source, topic] = key
            names[key] = TopicName(topic, source, cluster_id)
            for partition in numbers:
                epoch = epochs.get(topic, {}).get(partition, UNKNOWN)
                states[LogPartition(key, partition)] = LogState(
                    begins[topic][partition], ends[topic][partition], epoch
                )
    return Logs(states, keys, names)


def _check_unchanged(source: str, cluster: LogCluster, keys: Mapping[str, str]) -> None:
    """Raise LogChangedError if a topic was deleted or recreated since the keys were requested."""
    now = cluster.topic_keys(sorted(keys)) if keys else {}
    changed = sorted(topic for topic, key in keys.items() if now.get(topic) != key)
    if changed:
        raise LogChangedError(
            f"source {source}: topics {', '.join(changed)} were deleted or created again while "
            "their offsets were requested"
        )


class TopicKeyCheck:
    """The topic keys of topics, recorded when a topic is first read, and checked in each batch.

    A topic key is described at `LogPartition`. If a topic was deleted and created again, its
    offsets refer to other records, so a batch must not start with one topic key and be committed
    with another. `keys` has the topic keys that are known already, by source and topic, and
    `clusters` maps sources to their brokers.
    """

    def __init__(
        self, keys: Mapping[tuple[str, str], str], clusters: Mapping[str, LogCluster]
    ) -> None:
        self._clusters = clusters
        self.keys = dict(keys)

    def learn(self, ranges: list[OffsetRange]) -> None:
        """Record the topic keys of topics that no batch has read before.

        Raises LogChangedError if such a topic was deleted, and SourceError if brokers do not
        respond.
        """
        new = {(range_.source, range_.topic) for range_ in ranges} - self.keys.keys()
        for source_topic, key in self._ask(new).items():
            self.keys[source_topic] = key
        gone = new - self.keys.keys()
        if gone:
            source, topic = min(gone)
            raise LogChangedError(f"source {source}: topic {topic} was deleted")

    def check(self, ranges: list[OffsetRange]) -> None:
        """Raise LogChangedError if a topic has been recreated since it was first read.

        All topics of `ranges` must have a recorded topic key. A topic that was only deleted is not
        reported. Raises SourceError if brokers do not respond.
        """
        source_topics = {(range_.source, range_.topic) for range_ in ranges}
        for (source, topic), key in self._ask(source_topics).items():
            if self.keys[source, topic] != key:
                raise LogChangedError(
                    f"source {source}: topic {topic} was deleted and created again while it "
                    f"was read (its key was {self.keys[source, topic]}, now it is {key}); nothing "
                    "of the batch is written"
                )

    def _ask(self, source_topics: set[tuple[str, str]]) -> dict[tuple[str, str], str]:
        by_source: dict[str, list[str]] = {}
        for source, topic in sorted(source_topics):
            by_source.setdefault(source, []).append(topic)
        return {
            (source, topic): key
            for source, topics in by_source.items()
            for topic, key in self._clusters[source].topic_keys(topics).items()
        }
