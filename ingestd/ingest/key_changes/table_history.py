"""Read the records of a table again, from an earlier state of the table.

Kafka and the snapshots of the table are not changed by a batch, so a batch that is repeated has the
same history.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from ingestd.cdc.base import RecordChunk
from ingestd.ingest.rows.blobs import POSITION
from ingestd.ingest.settings.context import (
    BatchContext,
    CoveredOffsets,
    QualifiedSourceTable,
    TableSettings,
    section_of,
)
from ingestd.ingest.settings.evolution_policy import EvolutionPolicy
from ingestd.ingest.stages.decode_stage import shape_again
from ingestd.ingest.tables.log_positions import UNKNOWN, by_name
from ingestd.ingest.tables.managed_table import state_before
from ingestd.ingest.values.source_points import SourcePoint
from ingestd.kafka.offset_ranges import OffsetRange, SourcePartition
from ingestd.kafka.record_log import RecordLog
from ingestd.paimon.table.metadata.snapshot_manager import find_snapshot


def _as_the_table_is(policy: EvolutionPolicy) -> EvolutionPolicy:
    """Return a policy under which the table is not changed, and columns that it lacks are dropped.

    Values for which the table has a separate column are still moved to it.
    """
    separate = policy.on_refused == "new-column"
    return replace(policy, mode="none", on_refused="new-column" if separate else "ignore")


@dataclass(frozen=True, slots=True)
class BaseSnapshot:
    """An earlier snapshot of a table; the records after it are read again.

    `snapshot_id` is None for the empty table. `covered` are the offsets that the snapshot covers,
    and `position` is the largest source position of its rows, -1 if unknown.
    """

    snapshot_id: int | None
    covered: CoveredOffsets
    position: int = UNKNOWN

    def covered_until(self, where: SourcePartition) -> int:
        """Return the first offset that the snapshot does not cover; 0 for a new topic partition."""
        return self.covered.get(where.source, {}).get(where.topic, {}).get(where.partition, 0)


def base_before(context: BatchContext, identifier: str, position: int) -> BaseSnapshot | None:
    """Return the newest snapshot of a table whose rows are all from before a source position.

    Returns None if the required snapshots have expired. Raises FormatError if a progress record is
    damaged, and UnsupportedError if another version of ingestd wrote it.
    """
    target = context.tables[identifier]
    if target.snapshot_id is None:
        return BaseSnapshot(None, target.covered)
    reached = target.reached.position
    if reached < position:
        return BaseSnapshot(target.snapshot_id, target.covered, reached)
    newest = find_snapshot(target.table.io, target.table.paths, target.snapshot_id)
    state = state_before(target.table, newest, context.pipeline, SourcePoint(position - 1))
    if state is None:
        return None
    names = {(name.source, name.topic): key for key, name in state.progress.topics.items()}
    covered = by_name(state.progress.end, names)
    return BaseSnapshot(state.snapshot_id, covered, state.reached.position)


@dataclass(frozen=True, slots=True)
class ReadRows:
    """Rows of a table, in its columns, from records of one topic partition.

    `where` is the topic partition, and `source_table` the source table of all rows.
    """

    where: SourcePartition
    source_table: QualifiedSourceTable
    rows: pa.Table


class TableHistory:
    """Reads the records of a table after the snapshot `base` again, as far as needed.

    `records` is the number of rows that `read_on` has read. `has_gap` is whether a log no longer
    has all records after the snapshot.
    """

    def __init__(
        self, context: BatchContext, identifier: str, base: BaseSnapshot, log: RecordLog
    ) -> None:
        tables, name = dict(context.tables), section_of(identifier)
        tables[identifier] = replace(tables[identifier], covered=base.covered)
        policy = _as_the_table_is(context.settings_of(identifier).evolution)
        settings = replace(context.settings.get(name, TableSettings()), evolution=policy)
        self._context = replace(
            context,
            tables=tables,
            settings={**context.settings, name: settings},
            routing=replace(context.routing, only_target=identifier, unmatched="skip"),
        )
        self._base, self._log = base, log
        self._next: dict[SourcePartition, int] = {}
        self._reached: dict[SourcePartition, int] = {}
        self.records = 0
        self.has_gap = False

    def passed(self, position: int) -> bool:
        """Return whether all rows up to a source position are known to have been read.

        With a single topic partition, this is assumed: its rows have the order of the source, and
        `read_on` has read them at least up to the row with this position.
        """
        return len(self._reached) == 1 or min(self._reached.values(), default=-1) > position

    def read_on(
        self, source: str, topic: str, position: int, ends: Mapping[SourcePartition, int]
    ) -> Iterator[ReadRows]:
        """Continue reading a topic, and yield the table's rows of each of its partitions.

        A partition is read until a row has a larger source position than `position` and the offset
        in `ends` is reached, or up to the end of its log. The next call continues there. Raises the
        errors of reading the log and of `shape_again`.
        """
        kafka = self._context.sources[source].kafka
        for available in self._log.ranges(kafka, topic):
            where = SourcePartition(source, topic, available.partition)
            start = self._next.get(where, self._base.covered_until(where))
            self.has_gap |= start < available.start
            self._reached.setdefault(where, UNKNOWN)
            rest = replace(available, start=max(start, available.start))
            if rest.rows > 0:
                yield from self._read_on(where, rest, position, ends.get(where, 0))

    def _read_on(
        self, where: SourcePartition, rest: OffsetRange, position: int, end: int
    ) -> Iterator[ReadRows]:
        def chunks() -> Iterator[RecordChunk]:
            self._next[where] = rest.start
            for chunk in self._chunks(rest):
                if self._reached[where] > position and self._next[where] >= end:
                    return
                yield chunk
                self._next[where] = int(chunk.offsets[-1]) + 1
            self._next[where] = rest.until

        for read in self._shaped(where, chunks()):
            self.records += read.rows.num_rows
            if POSITION in read.rows.column_names:
                highest = int(read.rows.column(POSITION).to_numpy().max(initial=UNKNOWN))
                self._reached[where] = max(self._reached[where], highest)
            yield read

    def read(self, where: SourcePartition, start: int, until: int) -> Iterator[ReadRows]:
        """Read an offset range of a topic partition again, and yield the table's rows in it.

        The range is from `start` up to, but not including, `until`. Calls of `read_on` are not
        affected. Raises the errors of reading the log and of `shape_again`.
        """
        offset_range = OffsetRange(where.source, where.topic, where.partition, start, until)
        yield from self._shaped(where, self._chunks(offset_range))

    def _chunks(self, offset_range: OffsetRange) -> Iterator[RecordChunk]:
        settings = self._context.sources[offset_range.source]
        return self._log.read(settings.kafka, offset_range, headers=settings.needs_headers)

    def _shaped(self, where: SourcePartition, chunks: Iterator[RecordChunk]) -> Iterator[ReadRows]:
        for shaped in shape_again(self._context, where.source, chunks):
            if shaped.rows is not None and shaped.rows.num_rows:
                yield ReadRows(where, shaped.source_table, shaped.rows)
