"""Find records that tables lack and the logs no longer have; pure functions.

Losses are handled only when a pipeline starts. If a running pipeline finds that a log has lost or
replaced records, it ends its query, and the next start handles the loss.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from ingestd.cdc.base import RejectedRecord
from ingestd.errors import OffsetLostError
from ingestd.ingest.dead_letters.dead_letter import DeadLetter
from ingestd.ingest.recovery.logs import LogPartition, Logs, LogState
from ingestd.ingest.settings.rejection import GAP_STAGE
from ingestd.ingest.tables.log_positions import LogOffsets, Position, TopicName, Vector, replaced
from ingestd.kafka.offset_ranges import OffsetRange, SourcePartition
from ingestd.kafka.properties import OutOfRangePolicy

TO_BE = "tables that are not created yet"
"""Represents all tables that are not created yet, to which lost rows may have been routed."""
NO_END = -1
REPLACING_REASONS = frozenset({"log-truncated", "log-replaced", "topic-recreated", "topic-deleted"})
"""The reasons of losses after which offsets that were read can belong to other records."""


@dataclass(frozen=True, slots=True)
class Loss:
    """Offsets [`start`, `until`) of a log that a table lacks, or for which it has other records.

    `reason` is a reason code as in dead letters. `until` is -1 if the end of the range is unknown.
    `next_position` is the position of the table after the loss is accepted.
    """

    name: TopicName
    log: LogPartition
    start: int
    until: int
    table: str
    reason: str
    next_position: Position

    def __str__(self) -> str:
        end = "its unknown end" if self.until == NO_END else str(self.until)
        where = f"{self.name.topic}/{self.log.partition} of source {self.name.source}"
        return f"{_WHAT[self.reason]}: {where}, offsets {self.start} to {end}, table {self.table}"

    @property
    def is_refusable(self) -> bool:
        """Whether the source's policy applies to the loss; other losses are always accepted."""
        if self.table == TO_BE:
            return self.reason == "offset-gap"
        return self.reason not in ("rerouted", "unreadable")

    def dead_letter(self) -> DeadLetter:
        """Return a dead letter for the loss, which has no key, value or timestamp.

        Its offset is `start`, and its table is `table`.
        """
        coordinates = (self.name.topic, self.log.partition, self.start)
        text = str(self)
        rejected = RejectedRecord(*coordinates, -1, GAP_STAGE, self.reason, text, None, None)
        return DeadLetter(rejected, self.table)


_WHAT: Mapping[str, str] = {
    "offset-gap": "records that the log no longer has",
    "log-truncated": "records that were read and that the log has lost or replaced since",
    "log-replaced": "the last record that was read has been replaced in the log",
    "topic-recreated": "the topic was deleted and created again",
    "topic-deleted": "the topic was deleted",
    "unreadable": "records that the client cannot read",
    "rerouted": "the routing changed while only some of the tables contained this range",
}


@dataclass(frozen=True, slots=True)
class Coverage:
    """The offsets that each table covers in each log: those whose rows it already contains.

    `tables` has the covered offsets of each table. `finished` has the offsets up to which the
    pipeline has committed; a table that is created later covers these. `origin` has the first
    offset that the pipeline reads in each log, unless this is 0.
    """

    tables: Mapping[str, Vector]
    finished: Vector
    origin: LogOffsets

    def holders(self, log: LogPartition) -> dict[str, Position]:
        """Return the position in a log by table; that of tables not created yet is under TO_BE.

        A table without a position in the log gets the origin of the log. If neither a table nor
        `finished` has a position in the log, the result is empty.
        """
        key, partition = log
        vectors = {**self.tables, TO_BE: self.finished}
        if all(partition not in vector.get(key, {}) for vector in vectors.values()):
            return {}
        first = Position(self.origin.get(key, {}).get(partition, 0))
        return {name: vector.get(key, {}).get(partition, first) for name, vector in vectors.items()}


def furthest_positions(covered: Coverage, logs: Logs) -> dict[LogPartition, Position]:
    """Return the position of the most advanced table in each existing log.

    A log in which no table has a position is left out.
    """
    positions = {state: covered.holders(state) for state in logs.states}
    return {log: max(held.values()) for log, held in positions.items() if held}


def lost_ranges(
    covered: Coverage,
    logs: Logs,
    divergences: Mapping[LogPartition, int],
    replaced_logs: Collection[LogPartition],
    policies: Mapping[str, OutOfRangePolicy],
) -> list[Loss]:
    """Return the losses of records that tables lack and existing logs no longer have.

    `divergences` maps a log to the offset from which it differs from the records that were read.
    `replaced_logs` are logs that have another record in place of the last covered one. `policies`
    maps sources to their policy for offsets that are out of range.
    """
    losses: list[Loss] = []
    for log, state in {**_deleted_partitions(covered, logs), **logs.states}.items():
        name = logs.names[log.key]
        latest = policies[name.source] == "latest"
        for table, held in covered.holders(log).items():
            gap = _gap_of(held, state, divergences.get(log), log in replaced_logs)
            if gap is None:
                continue
            if latest:  # records skipped by the policy are reported with the lost ones
                gap = replace(gap, until=max(gap.until, state.end), next_offset=state.end)
            position = Position(gap.next_offset, state.epoch)
            losses.append(Loss(name, log, gap.start, gap.until, table, gap.reason, position))
    return losses


def _deleted_partitions(covered: Coverage, logs: Logs) -> dict[LogPartition, LogState]:
    """Return the partitions that were read and that their topics no longer have, as empty logs.

    Brokers without topic ids do not show that a topic was created again, with fewer partitions.
    """
    return {
        log: LogState(0, 0)
        for vector in (*covered.tables.values(), covered.finished)
        for key in vector.keys() & logs.names.keys()
        for log in (LogPartition(key, partition) for partition in vector[key])
        if log not in logs.states
    }


@dataclass(frozen=True, slots=True)
class _Gap:
    """Offsets [`start`, `until`) of a log that a table lacks, and the offset to continue at."""

    start: int
    until: int
    reason: str
    next_offset: int


def _gap_of(
    held: Position, log: LogState, divergence: int | None, is_replaced: bool
) -> _Gap | None:
    """Return the offsets that a table at a position lost in a log.

    Returns None if the log has all records that the table lacks, and still has those that it read.
    """
    if held.offset < log.begin:
        return _Gap(held.offset, log.begin, "offset-gap", log.begin)
    end = min(log.end, log.end if divergence is None else divergence)
    if held.offset > end:
        return _Gap(end, held.offset, "log-truncated", max(end, log.begin))
    if is_replaced:
        return _Gap(log.begin, held.offset, "log-replaced", held.offset)
    return None


def unreadable_ranges(
    covered: Coverage, logs: Logs, given_up: Mapping[SourcePartition, OffsetRange]
) -> list[Loss]:
    """Return the losses of unreadable ranges, for tables that have all records before the range.

    `given_up` are the unreadable ranges. A table that lacks earlier records reads these first.
    """
    losses: list[Loss] = []
    for log, state in logs.states.items():
        name = logs.names[log.key]
        left = given_up.get(SourcePartition(name.source, name.topic, log.partition))
        if left is None:
            continue
        until = min(left.until, state.end)
        losses += [
            Loss(name, log, held.offset, until, table, "unreadable", Position(until, state.epoch))
            for table, held in covered.holders(log).items()
            if left.start <= held.offset < until
        ]
    return losses


def lost_topics(
    covered: Coverage,
    topic_keys: Mapping[str, Collection[str]],
    topics: Mapping[str, TopicName],
    logs: Logs,
    sources: Mapping[TopicName, str],
    accepted: Mapping[str, Collection[str]],
) -> list[Loss]:
    """Return the losses of topics that were read and no longer exist with the same topic key.

    A table is affected if it has had rows of the topic, or if it covers less of a partition than
    another table, because a rollback removes topics from its progress record. If no table is
    affected by a partition, the loss is reported for TO_BE, because it may have had unread records.
    `topic_keys` maps tables to the keys of the topics of their rows, and `topics` maps topic keys
    to names. `sources` maps topics to the source that selects them. `accepted` maps tables and
    TO_BE to the keys of topics whose loss was accepted before.
    """
    losses: list[Loss] = []
    now = {(name.topic, name.source) for name in logs.names.values()}
    for key, name in sorted(topics.items()):
        if key in logs.names or name not in sources:
            continue
        current = TopicName(name.topic, sources[name], name.cluster)
        reason = "topic-recreated" if (name.topic, sources[name]) in now else "topic-deleted"
        for partition, end in sorted(covered.finished.get(key, {}).items()):
            log = LogPartition(key, partition)
            holders = covered.holders(log)
            furthest = max(held.offset for held in holders.values())
            affected = {
                table: held
                for table, held in holders.items()
                if table != TO_BE and (key in topic_keys[table] or held.offset < furthest)
            }
            losses += [
                Loss(current, log, held.offset, NO_END, table, reason, held)
                for table, held in (affected or {TO_BE: end}).items()
                if key not in accepted[table]
            ]
    return losses


def rerouted_ranges(covered: Coverage, logs: Logs, tables: Collection[str]) -> list[Loss]:
    """Return the ranges in which the covered offsets of `tables` differ from `covered.finished`.

    `tables` were written with another routing than the current one. If a table covers more, rows
    that the new routing sends to it are skipped; if it covers less, rows that only the old routing
    sent to it are not written.
    """
    losses: list[Loss] = []
    for log in sorted(logs.states):
        held = covered.holders(log)
        first = held.pop(TO_BE, Position(0)).offset
        for table, at in held.items():
            if at.offset != first and table in tables:
                start, until = sorted((first, at.offset))
                name = logs.names[log.key]
                losses.append(Loss(name, log, start, until, table, "rerouted", at))
    return losses


def named_losses(losses: Iterable[Loss], dead_letters: str) -> list[Loss]:
    """Return the losses for which a dead letter is written, one for each table and range.

    Losses of the dead-letter table `dead_letters` and of tables that do not exist yet are included
    only if no other table lacks the range, and if the records had not been read before they were
    lost.
    """
    all_losses = list(losses)
    others = {
        (loss.log, loss.start) for loss in all_losses if loss.table not in (TO_BE, dead_letters)
    }
    replaced_in_log = ("log-truncated", "log-replaced")
    return [
        loss
        for loss in all_losses
        if loss.table not in (TO_BE, dead_letters)
        or ((loss.log, loss.start) not in others and loss.reason not in replaced_in_log)
    ]


def lost_records(losses: Iterable[Loss]) -> dict[tuple[str, str], int]:
    """Return an upper bound of the number of lost records by (source, topic).

    A range that several tables lack is counted once. Counted are losses to which the policy of the
    source applies, and losses of unreadable records; a loss with an unknown end counts as no
    record.
    """
    most: dict[tuple[TopicName, LogPartition], int] = {}
    for loss in losses:
        key = (loss.name, loss.log)
        if loss.is_refusable or loss.reason == "unreadable":
            most[key] = max(most.get(key, 0), loss.until - loss.start)
    lost: dict[tuple[str, str], int] = {}
    for (name, _), records in most.items():
        source_topic = (name.source, name.topic)
        lost[source_topic] = lost.get(source_topic, 0) + records
    return lost


def refuse_losses(losses: Iterable[Loss], policies: Mapping[str, OutOfRangePolicy]) -> None:
    """Raise OffsetLostError if a loss is refusable and the policy of its source is "fail"."""
    refused = [
        loss for loss in losses if loss.is_refusable and policies[loss.name.source] == "fail"
    ]
    if not refused:
        return
    listed = "; ".join(map(str, refused[:5]))
    more = f"; and {len(refused) - 5} more" if len(refused) > 5 else ""
    sources = sorted({loss.name.source for loss in refused})
    ways = [f"sources.{source}.on-offset-out-of-range: earliest" for source in sources]
    way_out = f"accept the loss, which is then recorded as dead letters, with {', '.join(ways)}"
    if any(loss.reason.startswith("topic") for loss in refused):
        way_out += "; or drop the tables that the topic fed, or exclude it from the source"
    raise OffsetLostError(f"{listed}{more}; nothing was read. Restore the log, or {way_out}")


def accepted_positions(covered: Coverage, losses: Iterable[Loss]) -> dict[str, Vector]:
    """Return the covered offsets of each table after its losses are accepted.

    Losses of topics, and rerouted ranges, change no offsets. Tables without other losses are left
    out.
    """
    vectors = {**covered.tables, TO_BE: covered.finished}
    changed: dict[str, Vector] = {}
    for loss in losses:
        if loss.until == NO_END or loss.reason == "rerouted":
            continue
        key, partition = loss.log
        before = changed.get(loss.table, vectors[loss.table])
        changed[loss.table] = replaced(before, {key: {partition: loss.next_position}})
    return changed


def lowered_origins(origin: LogOffsets, losses: Iterable[Loss]) -> LogOffsets:
    """Return the origins of logs after losses are accepted: none is after a `next_position`.

    A log that was cut below its origin has other records there, which all tables lack.
    """
    lowered = {key: dict(partitions) for key, partitions in origin.items()}
    for loss in losses:
        key, partition = loss.log
        if partition in lowered.get(key, {}) and loss.until != NO_END:
            first = min(lowered[key][partition], loss.next_position.offset)
            lowered[key][partition] = first
    return lowered
