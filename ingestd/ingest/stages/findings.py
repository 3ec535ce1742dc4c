"""Collect the findings of a decode task for its report: counts, discoveries, event times."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ingestd.cdc.base import ChangeBatch, RecordChunk
from ingestd.cdc.format_guess import look_of
from ingestd.errors import ConfigError
from ingestd.ingest.dead_letters.dead_letter import DeadLetter
from ingestd.ingest.rows.blobs import Report
from ingestd.ingest.rows.conform import ShapedRows
from ingestd.ingest.schemas.discovery import Discovery, TableTruncate
from ingestd.ingest.settings.context import QualifiedSourceTable, SourceSettings
from ingestd.ingest.settings.error_policy import ErrorPolicy
from ingestd.ingest.settings.rejection import GAP_STAGE
from ingestd.ingest.values.batch_times import BatchTimes
from ingestd.ingest.values.counts import Counts, RejectedSample
from ingestd.ingest.values.source_points import NO_POINT, SourcePoint, later_point, point_at
from ingestd.ingest.values.type_merge import merge_types
from ingestd.kafka.isolated_fetch import Unreadable
from ingestd.kafka.offset_ranges import SourcePartition
from ingestd.paimon.spec.data_types import DataType

MAX_SAMPLES = 20
"""Maximum number of rejected records that are reported individually; all are counted."""
_PER_MILLI = {"ms": 1, "us": 1000, "ns": 1_000_000}
ASKED_FOR = "no-route"
"""The reason code of dead letters that are written because of `routing.unmatched`."""


@dataclass(frozen=True, slots=True)
class DiscoveryLog:
    """Collects the discoveries of a decode task: columns and types that target tables lack.

    Discoveries with the same target table and source table are merged.
    """

    _merged: dict[tuple[str, QualifiedSourceTable], Discovery] = field(default_factory=dict)
    _unmerged: list[Discovery] = field(default_factory=list)

    def add(self, discovery: Discovery) -> None:
        """Add a discovery, merged with earlier discoveries of the same target and source table.

        If their types cannot be merged, it is kept separately, and the driver decides according to
        the policy of the table.
        """
        key = (discovery.table, discovery.source_table)
        known = self._merged.get(key)
        if known is None:
            self._merged[key] = discovery
            return
        merged = merge_columns(known.columns, discovery.columns, fresh=discovery.fresh)
        if merged is None:
            self._unmerged.append(discovery)
            return
        keys = known.primary_keys or discovery.primary_keys
        proven = tuple(sorted({*known.proven, *discovery.proven}))
        comments = discovery.comments.over(known.comments)
        self._merged[key] = replace(
            known, columns=merged, primary_keys=keys, proven=proven, comments=comments
        )

    def findings(self) -> tuple[Discovery, ...]:
        """Return all discoveries of the task."""
        return (*self._merged.values(), *self._unmerged)


def merge_columns(
    known: Mapping[str, DataType], added: Mapping[str, DataType], *, fresh: bool
) -> dict[str, DataType] | None:
    """Return all columns with merged types, `known` columns first; None if types cannot be merged.

    `fresh` is whether the columns have no files yet, so that their types may also become STRING.
    """
    merged = dict(known)
    for name, data_type in added.items():
        if name not in merged:
            merged[name] = data_type
            continue
        together = merge_types(merged[name], data_type, fresh=fresh)
        if together is None:
            return None
        merged[name] = together
    return merged


@dataclass(slots=True)
class Findings:
    """The findings of one decode task, collected while it runs; tables are named by identifier.

    `sources` are the sources of the batch, by name, and `event_time_columns` the columns whose
    largest values are reported, by table. If `runs_again`, the batch must run again because of a
    finding.
    """

    sources: Mapping[str, SourceSettings]
    event_time_columns: Mapping[str, str] = field(default_factory=dict)
    runs_again: bool = False
    counts: Counts = field(default_factory=Counts)
    times: BatchTimes = field(default_factory=BatchTimes)
    discoveries: DiscoveryLog = field(default_factory=DiscoveryLog)
    _unreadable: list[Unreadable] = field(default_factory=list)
    _truncates: list[TableTruncate] = field(default_factory=list)
    _source_tables: dict[str, Counter[QualifiedSourceTable]] = field(default_factory=dict)
    _topics: dict[str, set[tuple[str, str]]] = field(default_factory=dict)
    _reached: dict[str, SourcePoint] = field(default_factory=dict)
    _last_records: dict[SourcePartition, tuple[int, int]] = field(default_factory=dict)
    _samples: list[RejectedSample] = field(default_factory=list)

    def note_chunk(self, source: str, chunk: RecordChunk, shaped: Sequence[ShapedRows]) -> None:
        """Count the records of a chunk, and record the findings about its rows, `shaped`.

        `source` is the source of the chunk. Raises NotCachedError, before anything is counted, if a
        cached chunk lacks the bytes of a record whose event time is read, and ConfigError if the
        event time column of a table is not a timestamp.
        """
        EventClock(self.sources, self.times).note(source, chunk, shaped)
        for rows in shaped:
            table = rows.table or ""
            for reason, count in rows.skipped.items():
                self.counts.skip(table, reason, count)
            self.counts.unknown_keys[table] += rows.unknown_keys
            if rows.batch is not None:
                self.note_source(table, rows.source_table, chunk.topic, len(rows.batch.offset))
                self._note_reached(table, chunk, rows.batch)
            if rows.discovery is not None:
                self.note_discovery(rows.discovery)
        where = SourcePartition(source, chunk.topic, chunk.partition)
        if self.event_time_columns:
            self._note_event_times(where, shaped)
        self.counts.records[where] += len(chunk.offsets)
        self.counts.bytes[where] += int(chunk.record_sizes().sum())
        if len(chunk.offsets):
            self._last_records[where] = (int(chunk.offsets[-1]), chunk.last_checksum())

    def _note_event_times(self, where: SourcePartition, shaped: Sequence[ShapedRows]) -> None:
        for rows in shaped:
            column = self.event_time_columns.get(rows.table or "")
            if column is None or rows.table is None or rows.rows is None:
                continue
            time = newest_millis(rows.rows, column)
            if time is not None:
                self.times.note_column(rows.table, where, time)

    def note_discovery(self, discovery: Discovery) -> None:
        """Record a discovery; the batch must run again unless `discovery.is_idle`."""
        self.discoveries.add(discovery)
        self.runs_again |= not discovery.is_idle

    def note_unreadable(self, unreadable: Unreadable) -> None:
        """Record a range that cannot be read although its brokers respond: the batch runs again."""
        self._unreadable.append(unreadable)
        self.runs_again = True

    def _note_reached(self, table: str, chunk: RecordChunk, batch: ChangeBatch) -> None:
        """Record the latest point of the rows of a table, except snapshot rows.

        It is that of the last row, or of the row with the largest position.
        """
        rows = np.flatnonzero((batch.position >= 0) & ~batch.snapshot_row)
        if not len(rows):
            return
        for row in (rows[np.argmax(batch.position[rows])], rows[-1]):
            point = point_at(chunk, int(batch.offset[row]), int(batch.position[row]))
            known = self._reached.get(table, NO_POINT)
            self._reached[table] = later_point(known, point)

    def note_source(
        self, table: str, source_table: QualifiedSourceTable, topic: str, rows: int
    ) -> None:
        """Record that a table has `rows` rows of a source table, from a topic."""
        self._source_tables.setdefault(table, Counter())[source_table] += rows
        self.note_topic(table, source_table.source, topic)

    def note_topic(self, table: str, source: str, topic: str) -> None:
        """Record that a table has rows of a topic."""
        self._topics.setdefault(table, set()).add((source, topic))

    def note_truncate(self, truncate: TableTruncate) -> None:
        """Record a truncate that the table has not applied yet: the batch runs again."""
        self._truncates.append(truncate)
        self.runs_again = True

    def note_rejected(
        self, source: str, dead_letters: list[DeadLetter], policy: ErrorPolicy
    ) -> list[DeadLetter]:
        """Count and sample rejected records; return the records that become dead letters.

        Raises PolicyStopError if the policy stops the pipeline because of one of these records.
        """
        for dead_letter in dead_letters:
            self.counts.rejected[dead_letter.rejected.stage, dead_letter.rejected.reason] += 1
        room = MAX_SAMPLES - len(self._samples)
        self._samples += [
            RejectedSample.of(source, dead_letter.rejected) for dead_letter in dead_letters[:room]
        ]
        kept = [
            dead_letter
            for dead_letter in dead_letters
            if policy.becomes_dead_letter(dead_letter.rejected, self.counts)
        ]
        self._note_unusable(source, kept)
        return kept

    def _note_unusable(self, source: str, dead_letters: list[DeadLetter]) -> None:
        """Count rejected records that may have another data format than configured.

        For up to 20 of them in each topic, also counts the format that the message resembles.
        """
        for rejected in (dead_letter.rejected for dead_letter in dead_letters):
            if rejected.stage == GAP_STAGE or rejected.reason == ASKED_FOR:
                continue
            topic = (source, rejected.topic)
            self.counts.unusable[topic] += 1
            if rejected.value and self.counts.unusable[topic] <= MAX_SAMPLES:
                look = look_of(rejected.value)
                self.counts.looks.update([(*topic, look)] if look else [])

    def report(self) -> Report:
        """Return all findings as a report."""
        return Report(
            runs_again=self.runs_again,
            discoveries=self.discoveries.findings(),
            truncates=tuple(self._truncates),
            source_tables={
                table: dict(source_tables) for table, source_tables in self._source_tables.items()
            },
            topics={table: frozenset(topics) for table, topics in self._topics.items()},
            reached=dict(self._reached),
            counts=self.counts,
            rejected=tuple(self._samples),
            times=self.times,
            unreadable=tuple(self._unreadable),
            last_records=dict(self._last_records),
        )


def newest_millis(rows: pa.Table, column: str) -> int | None:
    """Return the largest timestamp in a column, in ms since the epoch, rounded down.

    Returns None if the rows have no such column, or no value in it. Raises ConfigError if the
    column is not a timestamp.
    """
    if column not in rows.column_names:
        return None
    values = rows.column(column)
    if not pa.types.is_timestamp(values.type):
        raise ConfigError(
            f"column '{column}' of watermark.column has type {values.type}; name a column of type "
            "TIMESTAMP, if need be a computed one"
        )
    newest: Any = pc.max(values.cast(pa.int64())).as_py()
    return None if newest is None else int(newest // _PER_MILLI[values.type.unit])


@dataclass(frozen=True, slots=True)
class EventClock:
    """Records the event times of a task in `times`.

    Of a chunk, only the first and the last row of each table and the last record are read, because
    a chunk is a short section of a log. An event time is read without decoding the whole message.
    """

    sources: Mapping[str, SourceSettings]
    times: BatchTimes

    def note(self, source: str, chunk: RecordChunk, shaped: Sequence[ShapedRows]) -> None:
        """Record the event times of the first and last row of each table, and of the last record.

        `shaped` are the rows of the chunk. Raises NotCachedError if a cached chunk lacks the bytes
        of one of these records.
        """
        for rows in shaped:
            if rows.table is None or rows.batch is None:
                continue
            ends = np.searchsorted(chunk.offsets, rows.batch.offset[[0, -1]])
            for index in np.unique(ends).tolist():
                if (time := self._time(source, chunk, index)) is not None:
                    self.times.note_event(rows.table, time)
        if (time := self._time(source, chunk, -1)) is not None:
            where = SourcePartition(source, chunk.topic, chunk.partition)
            self.times.note_reached(where, int(chunk.offsets[-1]), time)

    def _time(self, source: str, chunk: RecordChunk, index: int) -> int | None:
        """Return the time of a record's change, in ms since the epoch.

        If the message contains none, returns the timestamp of the record, or None without one.
        """
        settings, message = self.sources[source], chunk.values[index]
        if message is not None and settings.format_settings.schemas is not None:
            message = settings.format_settings.framing.json_body(message)
        if message is not None and settings.event_time is not None:
            time = settings.event_time.of_message(message)
            if time is not None:
                return time
        stamp = int(chunk.timestamps[index])
        return stamp if stamp > 0 else None
