"""The tables of one pipeline as the driver knows them between batches, and changes to them.

The tables are the truth: each carries the offsets it holds in its snapshots. What is kept here
only spares reading it again. One `Lake` belongs to one driver and is not shared between threads,
but for `commit`, which may run for different tables at once.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ingestd.errors import FencedError
from ingestd.ingest.context import BatchContext, Coverage, TableContext
from ingestd.ingest.dead_letter import dead_letter_schema
from ingestd.ingest.mirror import (
    Mirror,
    SnapshotMark,
    TableHistory,
    decode_mirror,
    effective_coverage,
    encode_mirror,
    holds,
)
from ingestd.ingest.pipeline_settings import PipelineSettings
from ingestd.ingest.progress import (
    Step,
    TableProgress,
    advance,
    decode_properties,
    encode_properties,
    furthest,
    start_offsets,
)
from ingestd.paimon.catalog.base import Catalog, Identifier
from ingestd.paimon.io.file_io import FileIO
from ingestd.paimon.spec.schema import SchemaChange, TableSchema
from ingestd.paimon.spec.snapshot import Snapshot
from ingestd.paimon.table.commit import CommitResult, commit
from ingestd.paimon.table.commit_message import CommitMessage, ManifestCommittable
from ingestd.paimon.table.file_store_table import FileStoreTable
from ingestd.paimon.table.snapshot_manager import find_snapshot
from ingestd.paimon.table.table_state import TableState, load_state, newest_of_user, with_user


@dataclass(frozen=True, slots=True)
class LakeTable:
    """One table: its handle, the state of its newest snapshot, and what of the stream it holds.

    `progress` is the record of our newest snapshot; `coverage` may be further, because batches
    without rows for the table leave no record in it.
    """

    table: FileStoreTable
    state: TableState
    progress: TableProgress | None = None
    coverage: Coverage = field(default_factory=dict)
    newest: SnapshotMark | None = None


class Lake:
    """Opens, evolves and commits to the tables of a pipeline, by identifier "database.table".

    `mirror_path` is a small file beside the tables; `now_ms` the clock in milliseconds.
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
        self._mirror_path = f"{settings.warehouse}/.ingestd/{settings.name}/progress.json"
        self._mirror: Mirror | None = None
        self._until: Coverage = {}
        self.epoch = 1
        self.tables: dict[str, LakeTable] = {}

    def open(self) -> None:
        """Load the tables that this pipeline has written before.

        Raises FormatError if a table, or the mirror, is damaged.
        """
        self._mirror = self._read_mirror()
        self._until = self._mirror.until if self._mirror else {}
        self._catalog.create_database(self._settings.database)
        for name in self._candidates():
            found = self._load(name)
            if found.progress is not None or (self._mirror and name in self._mirror.tables):
                self.tables[name] = found
        self.ensure(self.dead_letters, dead_letter_schema(self._now_ms()))
        epochs = [one.progress.epoch for one in self.tables.values() if one.progress]
        self.epoch = max(epochs, default=0) + 1

    def start_offsets(self) -> Coverage:
        """First offset that some table still needs, by source, topic and partition."""
        return start_offsets(one.coverage for one in self.tables.values())

    def ensure(self, name: str, schema: TableSchema) -> None:
        """Open a table, creating it with `schema` if it is not there."""
        if name in self.tables:
            return
        self._catalog.create_table(Identifier.parse(name), schema, ignore_if_exists=True)
        self.tables[name] = self._load(name)

    def adopt(self, name: str) -> FileStoreTable | None:
        """Open a table that exists in the catalog but was not known here; None if there is none."""
        if name not in self.tables:
            if not self._catalog.table_exists(Identifier.parse(name)):
                return None
            self.tables[name] = self._load(name)
        return self.tables[name].table

    def alter(self, name: str, changes: Sequence[SchemaChange]) -> None:
        """Publish one new schema of a table with all the changes."""
        table = self._catalog.alter_table(Identifier.parse(name), changes, self._now_ms())
        self.tables[name] = replace(self.tables[name], table=table)

    def context(self, slots: int, truncates: Mapping[str, int]) -> BatchContext:
        """What the tasks of a batch must know; `truncates` are those found in this batch."""
        settings = self._settings
        return BatchContext(
            pipeline=settings.name,
            database=settings.database,
            tables={
                name: _table_context(name, one, truncates.get(name))
                for name, one in self.tables.items()
            },
            routing=settings.routing,
            sources=settings.sources,
            dead_letters=self.dead_letters,
            slots=slots,
            defaults=settings.defaults,
            settings=settings.tables,
            max_chunk_records=settings.limits.max_chunk_records,
            max_chunk_bytes=settings.limits.max_chunk_bytes,
            max_record_bytes=settings.limits.max_record_bytes,
        )

    @property
    def dead_letters(self) -> str:
        """Identifier of the table of rejected records."""
        return f"{self._settings.database}.{self._settings.dead_letter_table}"

    def commit(
        self, name: str, messages: Iterable[CommitMessage], step: Step, *, overwrite: bool
    ) -> CommitResult:
        """Publish files of one table together with the offsets they come from.

        Raises what `ingestd.paimon.table.commit.commit` raises; FencedError also when another
        process of this pipeline has committed to the table.
        """
        one = self.tables[name]
        user = self._settings.commit_user
        state = with_user(one.table, one.state, user)
        progress = advance(one.progress, step)
        newest = one.newest.commit_identifier if one.newest else 0
        committable = ManifestCommittable(
            identifier=max(state.committed[user], newest) + 1,
            messages=tuple(messages),
            properties=encode_properties(progress),
            overwrite=overwrite,
        )
        result = commit(one.table, user, committable, state=state, now_ms=self._now_ms())
        if result.status == "replayed":
            raise FencedError(
                f"table {name}: another process of pipeline {self._settings.name} committed "
                f"identifier {committable.identifier} first; stop one of the two"
            )
        if result.status == "committed" and result.snapshot is not None:
            self.tables[name] = LakeTable(
                table=one.table,
                state=result.state,
                progress=progress,
                coverage=furthest(one.coverage, progress.covered),
                newest=_mark(result.snapshot),
            )
        return result

    def finish(self, until: Coverage) -> None:
        """Note that everything up to `until` is in the tables, and write the mirror."""
        self._until = furthest(self._until, until)
        for name, one in self.tables.items():
            own = {
                source: {
                    topic: partitions
                    for topic, partitions in topics.items()
                    if topic in one.coverage.get(source, {})
                }
                for source, topics in until.items()
                if source in one.coverage
            }
            self.tables[name] = replace(one, coverage=furthest(one.coverage, own))
        marks = {name: one.newest for name, one in self.tables.items()}
        records = {
            name: encode_properties(one.progress)
            for name, one in self.tables.items()
            if one.progress is not None
        }
        mirror = Mirror(self._settings.name, marks, self._until, records)
        self._io.overwrite(self._mirror_path, encode_mirror(mirror))

    def _candidates(self) -> list[str]:
        """Tables that may be ours: those of the mirror, or without one all of the database."""
        if self._mirror is not None:
            return [
                name
                for name in self._mirror.tables
                if self._catalog.table_exists(Identifier.parse(name))
            ]
        database = self._settings.database
        return [f"{database}.{table}" for table in self._catalog.list_tables(database)]

    def _load(self, name: str) -> LakeTable:
        table = self._catalog.get_table(Identifier.parse(name))
        state = load_state(table)
        newest = newest_of_user(table, state, self._settings.commit_user)
        mark = _mark(newest) if newest else None
        history = self._history(name, table, state, mark)
        if newest is not None:
            progress = decode_properties(newest.properties, table.paths.snapshot(newest.id))
        else:
            progress = self._mirrored(name, history)
            mark = self._mirror.tables[name] if self._mirror and progress else None
        own = progress.covered if progress else {}
        coverage = effective_coverage(own, self._mirror, name, history)
        return LakeTable(table, state, progress, coverage, mark)

    def _mirrored(self, name: str, history: TableHistory) -> TableProgress | None:
        """The record of our newest snapshot if that has expired, as the mirror kept it."""
        if self._mirror is None or not holds(self._mirror, name, history):
            return None
        return decode_properties(self._mirror.records.get(name, {}), self._mirror_path)

    def _history(
        self, name: str, table: FileStoreTable, state: TableState, newest: SnapshotMark | None
    ) -> TableHistory:
        marked = self._mirror.tables.get(name) if self._mirror else None
        now_there = find_snapshot(table.io, table.paths, marked.snapshot_id) if marked else None
        return TableHistory(
            newest=newest,
            latest_id=state.snapshot.id if state.snapshot else None,
            time_of_marked=now_there.time_millis if now_there else None,
        )

    def _read_mirror(self) -> Mirror | None:
        try:
            data = self._io.read_bytes(self._mirror_path)
        except FileNotFoundError:
            return None
        return decode_mirror(data, self._mirror_path)


def _mark(snapshot: Snapshot) -> SnapshotMark:
    return SnapshotMark(snapshot.id, snapshot.time_millis, snapshot.commit_identifier)


def _table_context(name: str, one: LakeTable, truncate: int | None) -> TableContext:
    progress = one.progress
    context = TableContext(
        identifier=name,
        table=one.table,
        index_entries=one.state.index_entries,
        sequence_base=one.state.max_sequence_number + 1,
        assigners=one.table.options.dynamic_bucket_assigner_parallelism or 1,
        covered=one.coverage,
        truncate_before=progress.truncated if progress else None,
        feeds=progress.feeds if progress else frozenset(),
        position_reached=progress.position if progress else -1,
        snapshot_id=one.state.snapshot.id if one.state.snapshot else None,
    )
    return context if truncate is None else context.truncated(truncate)
