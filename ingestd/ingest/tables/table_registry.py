"""The tables of one pipeline as the driver caches them between batches, and changes to them.

The tables alone decide what is read: their snapshots contain the positions that they cover. The
state here is only a cache. A `TableRegistry` belongs to one driver. It is not thread-safe, except
that `commit` may run for different tables concurrently.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from ingestd.crash_points import CrashPoint, reach
from ingestd.errors import CommitConflictError, FencedError
from ingestd.ingest.dead_letters.dead_letter import columns_to_add, dead_letter_schema
from ingestd.ingest.settings.context import (
    BatchContext,
    CoveredOffsets,
    TableContext,
    TruncatePoint,
    marked_pipelines,
    other_pipelines,
)
from ingestd.ingest.settings.pipeline_settings import PipelineSettings
from ingestd.ingest.tables.batch_span import (
    BatchSpan,
    TableStep,
    first_gap,
    next_record,
    refuse_gap,
    span_of,
    where_less,
)
from ingestd.ingest.tables.claims import (
    ClaimedRecord,
    Claims,
    claims_path,
    encode_claims,
)
from ingestd.ingest.tables.log_positions import (
    UNKNOWN,
    LogOffsets,
    TopicKeys,
    Vector,
    VectorCache,
    by_name,
    furthest,
    lowest,
    offset_in,
    replaced,
    shared_if_equal,
)
from ingestd.ingest.tables.managed_table import (
    ManagedTable,
    refreshed,
    table_context,
)
from ingestd.ingest.tables.progress import (
    PipelineProgress,
    encode_pipeline,
    encode_properties,
    property_names,
)
from ingestd.ingest.tables.registry_opening import RegistryOpening
from ingestd.kafka.offset_ranges import BatchOffsets, OffsetRange, SourcePartition
from ingestd.paimon.catalog.base import Catalog, Identifier
from ingestd.paimon.iceberg.iceberg_threads import IcebergThreads
from ingestd.paimon.io.file_io import FileIO
from ingestd.paimon.spec.schema_change import SchemaChange, SetOption
from ingestd.paimon.spec.snapshot import CARRIED_OPTION
from ingestd.paimon.spec.table_schema import TableSchema
from ingestd.paimon.table.commit.table_commit import CommitResult, commit
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot
from ingestd.paimon.table.metadata.table_state import TableState, refuse_replaced, with_user
from ingestd.paimon.table.write.commit_message import CommitMessage, ManifestCommittable
from ingestd.paimon.table.write.writable import check_writable

_THREADS = 8
_TEXT = "text"
_RECORD_AGE_MS = 6 * 3_600_000
"""Maximum age of the newest progress record of a table without new rows."""


class TableRegistry:
    """The open tables of a pipeline on the driver, and the operations that change them.

    Tables are named by identifiers like "database.table". `now_ms` returns the time in milliseconds
    since the epoch. `keys` are the topic keys of existing topics, which the caller sets after it
    has requested them from the brokers. `iceberg` writes the Iceberg metadata of the tables after
    their commits. `progress` is the progress of the pipeline: every batch below `progress.end` is
    committed to every table, so a table without a record covers these positions. `open` describes
    `missing` and `others`.
    """

    def __init__(
        self,
        settings: PipelineSettings,
        catalog: Catalog,
        io: FileIO,
        now_ms: Callable[[], int],
    ) -> None:
        self._settings = settings
        self._catalog = catalog
        self._io = io
        self._now_ms = now_ms
        self._opening = RegistryOpening(settings, catalog, io)
        self._claims: Claims | None = None
        self._by_topic: dict[str, set[str]] = {}
        self._memo = VectorCache()
        self.keys: TopicKeys = {}
        self.progress = PipelineProgress()
        self.tables: dict[str, ManagedTable] = {}
        self.missing: tuple[str, ...] = ()
        self.others: Mapping[str, FileStoreTable] = {}
        self.iceberg = IcebergThreads()

    def open(self, undecided: Collection[str] = ()) -> None:
        """Load the tables of this pipeline, and derive its progress from their records.

        Creates the database and the dead-letter table if they do not exist. Tables in `undecided`
        are excluded, and need no record when they are adopted. Sets `missing` to tables that had a
        record but were dropped or have no snapshot, and `others` to tables of the database to which
        other pipelines write. Raises FormatError if a table is damaged, ProgressLostError if a
        table has snapshots but lacks a record that it should have, UnsupportedError if a table
        cannot be written, and the errors of the catalog.
        """
        self._catalog.create_database(self._settings.database)
        opened = self._opening.open(undecided)
        self.progress, self.missing, self.others = opened.progress, opened.missing, opened.others
        for name, managed in opened.tables.items():
            self._take(name, managed)
        self.ensure(self.dead_letters, dead_letter_schema(self._now_ms()))
        columns = columns_to_add(self.dead_letters, self.tables[self.dead_letters].table.schema)
        if columns:
            self.alter(self.dead_letters, columns)

    def floor(self) -> Vector:
        """Return the positions below which no table, existing or created later, lacks a row."""
        covered = [table.covered for table in self.tables.values()]
        return lowest([self.progress.end, *covered], self.progress.origin)

    def ensure(self, name: str, schema: TableSchema) -> None:
        """Open a table, and create it with `schema` if it does not exist.

        A table that is open already is skipped. Raises CommitConflictError if another pipeline has
        started to write the table, and the errors of the catalog and of `open`.
        """
        self.ensure_all({name: schema})

    def ensure_all(self, schemas: Mapping[str, TableSchema]) -> None:
        """Open tables concurrently, and create tables that do not exist; `schemas` are by name.

        Tables that are open already are skipped. Raises CommitConflictError if another pipeline has
        started to write one of the tables, and the errors of the catalog and of `open`.
        """
        missing = [(name, schema) for name, schema in schemas.items() if name not in self.tables]
        with ThreadPoolExecutor(_THREADS, "create") as pool:
            created = list(pool.map(self._created, missing))
        for (name, _), managed in zip(missing, created, strict=True):
            self._begin(name, managed)

    def adopt(self, name: str) -> FileStoreTable | None:
        """Open a table of the catalog if it is not open yet; return None if it does not exist.

        If it has snapshots without a record of its own, a record is committed. Raises
        CommitConflictError if another pipeline has started to write the table, and the errors of
        `open` and `record`.
        """
        if name not in self.tables:
            if not self._catalog.table_exists(Identifier.parse(name)):
                return None
            self._begin(name, self._opening.load(name))
        return self.tables[name].table

    def alter(self, name: str, changes: Sequence[SchemaChange]) -> None:
        """Apply all changes to a table as one new schema version.

        Raises SchemaConflictError if the table does not allow the changes, and the other errors of
        the catalog.
        """
        table = self._catalog.alter_table(Identifier.parse(name), changes, self._now_ms())
        self.tables[name] = replace(self.tables[name], table=table)

    def refresh_schema(self, name: str) -> bool:
        """Take the newest schema of an open table; return whether another program published it.

        Raises the errors of the catalog.
        """
        managed = self.tables[name]
        table = self._catalog.get_table(Identifier.parse(name))
        if table.schema.id == managed.table.schema.id:
            return False
        self.tables[name] = replace(managed, table=table)
        return True

    def covered(self, name: str) -> CoveredOffsets:
        """Return the covered offsets of an open table in existing topics, by source and topic."""
        return by_name(self.tables[name].covered, self.keys)

    def source_topics(self, name: str) -> frozenset[tuple[str, str]]:
        """Return the (source, topic) pairs of existing topics from which the table has had rows."""
        progress = self.tables[name].progress
        topic_keys = progress.topic_keys if progress else frozenset()
        return frozenset(topic for topic, key in self.keys.items() if key in topic_keys)

    def topic_partitions(
        self, name: str, also: frozenset[tuple[str, str]]
    ) -> list[SourcePartition]:
        """Return the known partitions of the existing topics from which a table has had rows.

        `also` are further (source, topic) pairs.
        """
        end = self.progress.end
        return [
            SourcePartition(source, topic, partition)
            for source, topic in self.source_topics(name) | also
            for partition in end.get(self.keys[source, topic], ())
        ]

    def refresh(self, ranges: Iterable[OffsetRange]) -> list[str]:
        """Take the newest states of tables to which others have committed; return their names.

        Only tables with rows of the topics of `ranges`, which the batch in progress reads, are
        considered. Raises the errors of `refreshed`.
        """
        logs = {read.source_partition for read in ranges}
        changed = refreshed({name: self.tables[name] for name in sorted(self._concerned(logs))})
        self.tables.update(changed)
        return list(changed)

    def context(
        self,
        slots: int,
        truncates: Mapping[str, TruncatePoint],
        ranges: Iterable[OffsetRange] | None = None,
        also: Collection[str] = (),
    ) -> BatchContext:
        """Return the context for the tasks of a batch that truncates the tables in `truncates`.

        If `ranges` are given, the context contains only the dead-letter table, truncated tables,
        tables that have had rows from the topics of the ranges, tables that lack earlier batches,
        and tables in `also`. Its `others` are the names of all other tables.
        """
        settings, topics, included = self._settings, self.keys, set(self.tables)
        if ranges is not None:
            logs = {read.source_partition for read in ranges}
            topics = {(source, topic): topics[source, topic] for source, topic, _ in logs}
            included &= {self.dead_letters, *also, *truncates} | self._concerned(logs)
        return BatchContext(
            pipeline=settings.name,
            formerly=settings.formerly,
            database=settings.database,
            tables={n: self._table_context(n, topics, truncates.get(n)) for n in sorted(included)},
            others=frozenset(self.tables.keys() - included),
            routing=settings.routing,
            sources=settings.sources,
            dead_letters=self.dead_letters,
            dead_letter_topic=settings.dead_letter_topic,
            error_policy=settings.error_policy,
            slots=slots,
            defaults=settings.defaults,
            settings=settings.tables,
            max_chunk_records=settings.limits.max_chunk_records,
            max_chunk_bytes=settings.limits.max_chunk_bytes,
            max_record_bytes=settings.limits.max_record_bytes,
            write_buffer_size=settings.limits.write_buffer_size,
            index_cache_bytes=settings.limits.index_cache_bytes,
        )

    def _concerned(self, logs: Iterable[SourcePartition]) -> set[str]:
        """Return the tables with rows of the topics of some logs, or without earlier batches."""
        end = self.progress.end
        known = [(self.keys[source, topic], partition) for source, topic, partition in logs]
        lagging = {
            name
            for name, managed in self.tables.items()
            if managed.covered is not end
            and any(offset_in(managed.covered, *log) < offset_in(end, *log) for log in known)
        }
        return lagging.union(*(self._by_topic.get(key, ()) for key, _ in known))

    def _table_context(
        self, name: str, topics: TopicKeys, truncate: TruncatePoint | None
    ) -> TableContext:
        managed = self.tables[name]
        return table_context(name, managed, by_name(managed.covered, topics), truncate)

    @property
    def dead_letters(self) -> str:
        """The identifier "database.table" of the dead-letter table."""
        return self._settings.dead_letters

    def commit(
        self,
        name: str,
        messages: Iterable[CommitMessage],
        span: BatchSpan,
        step: TableStep,
        *,
        overwrite: bool = False,
    ) -> CommitResult:
        """Commit files to one table together with the positions that they cover, those of `span`.

        `step` is what else the batch changes in the progress record of the table. With `overwrite`,
        the files replace all rows of the table. Raises OffsetGapError if the batch starts after the
        covered offsets of the table; FencedError if another process of this pipeline has committed
        to the table; CommitConflictError, CommitUnknownError or LockUnavailableError if the commit
        fails, for example because the table was rolled back; SchemaConflictError if the option
        `bucket` was altered without a rescale.
        """
        before = self.tables[name].covered
        refuse_gap(name, before, span, self.progress)
        covered = self._advanced(before, span)
        end = self.progress.end
        finished = {
            key: {
                partition: offset_in(end, key, partition, start)
                for partition, start in starts.items()
            }
            for key, starts in span.start.items()
        }
        return self._commit(name, messages, covered, finished, step, overwrite=overwrite)

    def lower(self, name: str, offsets: CoveredOffsets) -> None:
        """Lower the covered offsets of a table to `offsets`, where these are smaller.

        Called before a truncate replaces all rows of a table that already covers later offsets: the
        rows beyond `offsets` are then missing, and must be read again. The next commit records the
        lowered offsets.
        """
        managed = self.tables[name]
        covered = managed.covered
        for (source, topic), key in self.keys.items():
            for partition, offset in offsets.get(source, {}).get(topic, {}).items():
                if offset < offset_in(covered, key, partition):
                    at = covered[key][partition]._replace(offset=offset, fingerprint=UNKNOWN)
                    covered = replaced(covered, {key: {partition: at}})
        self.tables[name] = replace(managed, covered=covered)

    def record(
        self,
        name: str,
        covered: Vector,
        messages: Iterable[CommitMessage] = (),
        dropped: tuple[str, ...] = (),
    ) -> CommitResult:
        """Commit a progress record that covers exactly `covered`, with or without rows.

        Used for commits outside of batches: at the start of a pipeline, for an accepted loss, and
        to refresh an old record. `messages` are the files of rows to commit with it. `dropped` are
        names of properties of the newest snapshot that the new one does not repeat. Raises
        FencedError if another process of this pipeline has committed to the table,
        CommitConflictError if the table was rolled back, and the other errors of a commit.
        """
        is_of_others = self.tables[name].is_of_others
        if not is_of_others:  # a mark without a record means that the record was removed
            self.mark([name])
        finished = {
            key: {p: offset_in(self.progress.end, key, p) for p in partitions}
            for key, partitions in covered.items()
        }
        result = self._commit(name, messages, covered, finished, TableStep(dropped=dropped))
        if is_of_others:
            self.mark([name])
        return result

    def finish(self, span: BatchSpan) -> None:
        """Record that all tables contain a batch, and write the claims file if positions changed.

        Call it after the commits to all tables. The cost is proportional to the number of changed
        positions, plus one write of the file. Raises StorageError if the file cannot be written.
        """
        before = self.progress.end
        end = self._advanced(before, span)
        for name, managed in self.tables.items():
            if managed.covered is before:
                self.tables[name] = replace(managed, covered=end)
            elif (
                managed.covered is not end
                and first_gap(managed.covered, span, self.progress) is None
            ):
                covered = furthest(managed.covered, span.until)
                self.tables[name] = replace(managed, covered=shared_if_equal(covered, end))
        self.progress = replace(self.progress, end=end)
        self._memo.clear()
        self.write_claims()

    def write_claims(self) -> None:
        """Write the claims file, unless it is current.

        The file records up to which positions each table is complete. Raises StorageError if it
        cannot be written.
        """
        self._number_tables()
        complete = {
            name: ClaimedRecord(
                managed.progress.record_id, managed.record_snapshot, managed.row_count
            )
            for name, managed in self.tables.items()
            if managed.progress is not None and managed.covered is self.progress.end
        }
        settings = self._settings
        claims = Claims(settings.warehouse, settings.database, self.progress, complete)
        if claims != self._claims:
            path = claims_path(settings.warehouse, settings.name)
            self._io.overwrite(path, encode_claims(claims))
            self._claims = claims
        reach(CrashPoint.CLAIMS_WRITTEN)

    def note(self, progress: PipelineProgress) -> None:
        """Set the progress of the pipeline.

        Also sets the covered offsets of tables that had the same offsets as the pipeline.
        """
        shared = self.progress.end
        self.progress = progress
        self._memo.clear()
        for name, managed in self.tables.items():
            if managed.covered is shared:
                self.tables[name] = replace(managed, covered=progress.end)

    def refresh_records(self) -> list[str]:
        """Commit the records of tables whose newest snapshot has no record or is old.

        Commits of other writers do not repeat the record, so their snapshot expiry would remove the
        pipeline's last record. Also, the older a record is, the more is read again if the claims
        file is lost. Call this between batches. Returns the names of the tables. Raises FencedError
        if another process of this pipeline has committed, and the other errors of a commit.
        """
        refreshed: list[str] = []
        for name, managed in list(self.tables.items()):
            table = managed.table
            newest = latest_snapshot(table.io, table.paths) if managed.progress else None
            if newest is None:
                continue
            fresh = self._now_ms() - newest.time_millis < _RECORD_AGE_MS
            if not (fresh and managed.is_repeated_in(newest, self._settings.name)):
                self.record(name, managed.covered)
                refreshed.append(name)
        return refreshed

    def rename_sources(self, name: str, names: Mapping[str, str]) -> None:
        """Rename sources in the progress record of a table; `names` maps old to new names.

        The next commit to the table stores its changed record. A table without a record is not
        changed.
        """
        managed = self.tables[name]
        if names and managed.progress is not None:
            source_tables = frozenset(
                source_table._replace(source=names.get(source_table.source, source_table.source))
                for source_table in managed.progress.source_tables
            )
            renamed = replace(managed.progress, source_tables=source_tables)
            self.tables[name] = replace(managed, progress=renamed)

    def begin(self, offsets: BatchOffsets) -> BatchSpan:
        """Return the positions that a batch covers by log, and add new logs to the progress.

        `keys` must have the topic keys of all topics of the batch.
        """
        span, progress = span_of(offsets, self.keys, self.progress)
        if progress is not self.progress:
            self.note(progress)
        return span

    def mark(self, names: Iterable[str]) -> None:
        """Mark tables as written by this pipeline, in a table option.

        Must be called before the first record is committed to a table, and, unlike `commit`, not
        concurrently. Removes the marks of former names of the pipeline. Raises CommitConflictError
        if a table without snapshots was dropped or created again, and the errors of the catalog.
        """
        for name in names:
            formerly = set(self._settings.formerly)
            marked = marked_pipelines(self.tables[name].table)
            if self._settings.name in marked and marked.isdisjoint(formerly):
                continue
            refuse_replaced(self.tables[name].table, self.tables[name].state)
            marked = marked_pipelines(self._catalog.get_table(Identifier.parse(name)))
            pipelines = (marked - formerly) | {self._settings.name}
            if pipelines != marked:
                self.alter(name, [SetOption(CARRIED_OPTION, ",".join(sorted(pipelines)))])

    def _advanced(self, covered: Vector, span: BatchSpan) -> Vector:
        """Return the covered offsets after a batch, cached by the identity of `covered`."""
        return self._memo.of(covered, span, lambda: furthest(covered, span.until))

    def _commit(
        self,
        name: str,
        messages: Iterable[CommitMessage],
        covered: Vector,
        start: LogOffsets,
        step: TableStep,
        *,
        overwrite: bool = False,
    ) -> CommitResult:
        managed, user, now = self.tables[name], self._settings.commit_user, self._now_ms()
        state = with_user(managed.table, managed.state, user)
        pipeline = replace(self.progress, end=covered, start=where_less(start, covered))
        progress = next_record(managed.progress, pipeline, step, managed.table.branch)
        shared = self._memo.of(covered, _TEXT, lambda: encode_pipeline(progress.pipeline))
        record = encode_properties(self._settings.name, progress, shared)
        committable = ManifestCommittable(
            identifier=state.committed[user] + 1,
            messages=tuple(messages),
            properties={**record, **dict.fromkeys((*step.dropped, *self._former_names(state)), "")},
            watermark=step.watermark,
            overwrite=overwrite,
            builds_on={**self._awaited_records(name, state), **managed.properties},
        )
        result = commit(managed.table, user, committable, state=state, now_ms=now, allow_empty=True)
        if result.status == "replayed":
            raise FencedError(
                f"table {name}: another process of pipeline {self._settings.name} committed "
                f"identifier {committable.identifier} first; stop one of the two"
            )
        self._after_commit(name, managed.table, result, progress.topic_keys)
        self.tables[name] = ManagedTable(
            table=managed.table,
            state=result.state,
            progress=progress,
            covered=covered,
            properties={key: record[key] for key in property_names(self._settings.name)},
            record_snapshot=result.snapshot.id if result.snapshot else 0,
        )
        return result

    def _after_commit(
        self, name: str, table: FileStoreTable, result: CommitResult, topic_keys: Iterable[str]
    ) -> None:
        self._by_topic_note(name, topic_keys)
        self.iceberg.submit(name, table, result)

    def _number_tables(self) -> None:
        """Give the next number to each table that has its first record since it was created."""
        known = self.progress
        new = {
            name: known.tables.get(name, 0) + 1
            for name, managed in self.tables.items()
            if managed.progress is not None
            and known.tables.get(name, 0) <= known.dropped.get(name, 0)
        }
        if new:
            self.progress = replace(known, tables={**known.tables, **new})
            self._memo.clear()

    def _begin(self, name: str, managed: ManagedTable) -> None:
        """Open a table that was loaded after `open`. Raises the errors of `adopt`."""
        others = other_pipelines(managed.table, self._settings.names)
        if others and name not in self.others and name != self.dead_letters:
            raise CommitConflictError(
                f"table {name}: pipeline {others[0]} has started to write it; the tables are "
                "opened again, and whether both may write it is decided then"
            )
        managed = self._opening.judged(name, managed, self.progress)
        self._take(name, managed)
        if self._opening.needs_record(name, managed):
            self.record(name, managed.covered)
        self._opening.refuse_behind(name, managed, self.progress)

    def _awaited_records(self, name: str, state: TableState) -> dict[str, str]:
        """Return the properties of records that a table lacks, as empty strings.

        These are the records of all pipelines that are marked in the table. A commit is rejected if
        the snapshot on which it would build has one of them.
        """
        others = other_pipelines(self.tables[name].table, self._settings.names)
        records = (property_names(other)[0] for other in others if name != self.dead_letters)
        absent = [record for record in records if record not in state.carried]
        return dict.fromkeys([*property_names(self._settings.name), *absent], "")

    def _former_names(self, state: TableState) -> list[str]:
        """Return the names of properties that a table has from former names of the pipeline."""
        former = (name for pipeline in self._settings.formerly for name in property_names(pipeline))
        return [name for name in former if name in state.carried]

    def _created(self, named_schema: tuple[str, TableSchema]) -> ManagedTable:
        name, schema = named_schema
        marked = {**schema.options, CARRIED_OPTION: self._settings.name}
        identifier = Identifier.parse(name)
        self._catalog.create_table(
            identifier, replace(schema, options=marked), ignore_if_exists=True
        )
        return self._opening.load(name)

    def _take(self, name: str, managed: ManagedTable) -> None:
        check_writable(managed.table)
        if managed.progress is not None:
            self._by_topic_note(name, managed.progress.topic_keys)
        self.tables[name] = managed

    def _by_topic_note(self, name: str, topic_keys: Iterable[str]) -> None:
        for key in topic_keys:
            self._by_topic.setdefault(key, set()).add(name)
