"""Compare the covered offsets of tables with the logs on the brokers, without any change."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Literal, Protocol

from ingestd.ingest.recovery.logs import LogCluster, LogPartition, Logs
from ingestd.ingest.recovery.losses import (
    TO_BE,
    Coverage,
    Loss,
    furthest_positions,
    lost_ranges,
    lost_topics,
    rerouted_ranges,
)
from ingestd.ingest.settings.pipeline_settings import PipelineSettings
from ingestd.ingest.tables.log_positions import (
    UNKNOWN,
    Position,
    TopicName,
    fingerprint_at,
    record_offset_of,
)
from ingestd.ingest.tables.managed_table import ManagedTable
from ingestd.ingest.tables.progress import PipelineProgress
from ingestd.kafka.properties import OutOfRangePolicy

_Positions = Mapping[LogPartition, Position]


class OpenTables(Protocol):
    """The tables and the progress of a pipeline; implemented by `TableRegistry`."""

    @property
    def tables(self) -> Mapping[str, ManagedTable]:
        """The open tables of the pipeline by identifier, "database.table"."""

    @property
    def progress(self) -> PipelineProgress:
        """The progress of the pipeline, merged from all progress records and the claims file."""


@dataclass(frozen=True, slots=True)
class LogComparison:
    """The result of comparing the logs on the brokers with the positions of the tables.

    `divergences` maps a log to the offset from which it differs from the records that were read.
    `replaced` are logs whose last covered record is a different one, or whose leader epochs are all
    older than the leader epoch of the position. `confirmed` maps a log to how it was confirmed: by
    its last covered record, or only by leader epochs. For all other logs, only offsets were
    compared.
    """

    divergences: Mapping[LogPartition, int] = field(default_factory=dict)
    replaced: frozenset[LogPartition] = frozenset()
    confirmed: Mapping[LogPartition, Literal["record", "epoch"]] = field(default_factory=dict)


def routing_hash(settings: PipelineSettings) -> str:
    """Return a checksum of the routing configuration, which detects that routing has changed.

    Another order of `table-mapping` counts as a change.
    """
    return sha256(repr(settings.routing).encode()).hexdigest()[:16]


def policies_of(settings: PipelineSettings) -> dict[str, OutOfRangePolicy]:
    """Return the policy of each source for offsets that are out of range."""
    return {name: source.kafka.on_offset_out_of_range for name, source in settings.sources.items()}


def coverage_of(opened: OpenTables) -> Coverage:
    """Return the offsets covered by each open table that has a progress record.

    The result also has the offsets that tables which are created later will cover.
    """
    tables = {
        name: table.covered for name, table in opened.tables.items() if table.progress is not None
    }
    return Coverage(tables, opened.progress.end, opened.progress.origin)


def find_losses(
    opened: OpenTables, settings: PipelineSettings, logs: Logs, compared: LogComparison
) -> list[Loss]:
    """Return the losses of all tables: ranges that logs lost, lost topics, and rerouted ranges.

    `logs` is the state of the logs on the brokers, and `compared` how they differ from the records
    that were read.
    """
    covered, policies = coverage_of(opened), policies_of(settings)
    ranges = lost_ranges(covered, logs, compared.divergences, compared.replaced, policies)
    known = opened.progress
    records = {
        name: managed.progress
        for name, managed in opened.tables.items()
        if managed.progress is not None
    }
    topic_keys = {name: record.topic_keys for name, record in records.items()}
    accepted = {name: record.pipeline.accepted for name, record in records.items()}
    accepted[TO_BE] = known.accepted
    sources = _selecting(settings, known.topics.values())
    routing = routing_hash(settings)
    rerouted = [name for name, record in records.items() if record.pipeline.routing != routing]
    return [
        *ranges,
        *lost_topics(covered, topic_keys, known.topics, logs, sources, accepted),
        *rerouted_ranges(covered, logs, rerouted),
    ]


def _selecting(settings: PipelineSettings, topics: Iterable[TopicName]) -> dict[TopicName, str]:
    """Return the source that selects each topic: its own, or if that does not, another one.

    Sources of several clusters may select topics of the same name.
    """
    selecting: dict[TopicName, str] = {}
    for topic in topics:
        sources = [name for name, s in settings.sources.items() if s.kafka.selects(topic.topic)]
        if sources:
            selecting[topic] = topic.source if topic.source in sources else sources[0]
    return selecting


def compare_logs(
    opened: OpenTables,
    clusters: Mapping[str, LogCluster],
    logs: Logs,
    new_sources: Collection[str] = (),
) -> LogComparison:
    """Compare the logs of all sources with the records that were read.

    Sources in `new_sources`, which have not been read, are skipped. Raises SourceError if brokers
    do not respond.
    """
    reached = furthest_positions(coverage_of(opened), logs)
    divergences: dict[LogPartition, int] = {}
    replaced: set[LogPartition] = set()
    confirmed: dict[LogPartition, Literal["record", "epoch"]] = {}
    for source in clusters.keys() - set(new_sources):
        own = {log: at for log, at in reached.items() if logs.names[log.key].source == source}
        diverged = _divergences(clusters[source], own, logs)
        rest = {log: position for log, position in own.items() if log not in diverged}
        fingerprints = _fingerprints(clusters[source], rest, logs)
        divergences |= {log: offset for log, offset in diverged.items() if offset >= 0}
        replaced |= diverged.keys() - divergences.keys()
        for log, position in rest.items():
            if fingerprints.get(log, position.fingerprint) != position.fingerprint:
                replaced.add(log)
            elif log in fingerprints:
                confirmed[log] = "record"
            elif position.epoch != UNKNOWN and position.offset <= logs.states[log].end:
                confirmed[log] = "epoch"
    return LogComparison(divergences, frozenset(replaced), confirmed)


def _divergences(cluster: LogCluster, reached: _Positions, logs: Logs) -> dict[LogPartition, int]:
    """Return the offsets at which logs diverge; -1 if the log does not have the leader epoch.

    Logs whose leader epoch is that of the position do not diverge.
    """
    moved = {
        logs.name_of(log): log
        for log, position in reached.items()
        if position.epoch not in (UNKNOWN, logs.states[log].epoch)
    }
    if not moved:
        return {}
    positions = {name: reached[log] for name, log in moved.items()}
    offsets = cluster.divergences({name: (p.offset, p.epoch) for name, p in positions.items()})
    return {moved[name]: offset for name, offset in offsets.items()}


def _fingerprints(cluster: LogCluster, reached: _Positions, logs: Logs) -> dict[LogPartition, int]:
    """Return the current fingerprint of each position, computed from the record in the log.

    Positions without a fingerprint, or whose last record is not in the log, are left out.
    """
    present = {
        logs.name_of(log): log
        for log, position in reached.items()
        if position.fingerprint != UNKNOWN
        and logs.states[log].begin <= record_offset_of(position)
        and position.offset <= logs.states[log].end
    }
    if not present:
        return {}
    record_offsets = {name: record_offset_of(reached[log]) for name, log in present.items()}
    checksums = cluster.fingerprints({name: at + 1 for name, at in record_offsets.items()})
    return {
        present[name]: fingerprint_at(reached[present[name]].offset, record_offsets[name], checksum)
        for name, checksum in checksums.items()
    }
