"""Compare the tables of a pipeline with those of its source database, one after the other."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ingestd.compare import mysql
from ingestd.compare.binlog_reader import BinlogReader
from ingestd.compare.catch_up import CatchUpTimeouts, ChangeStream, Connector
from ingestd.compare.column_pairs import DatabaseTable, Key, Pairing, pair_columns
from ingestd.compare.compare_plan import (
    SourceOnly,
    Uncompared,
    existing_rows,
    fed_from,
    parse_pairs,
    refusal,
    source_of,
)
from ingestd.compare.dialect import Connection
from ingestd.compare.drivers import SchemaMovedError, connect, dialect_of, public_url
from ingestd.compare.lake_table import LakeReader
from ingestd.compare.newest_records import NewestRecords, RecordSearch
from ingestd.compare.progress_file import ProgressFile, TablePages
from ingestd.compare.replication_slot import ReplicationSlot
from ingestd.compare.report import result_document
from ingestd.compare.source_table import MissingTableError, SourceReader, read_source_table
from ingestd.compare.table_compare import ComparisonOutcome, TableComparison
from ingestd.compare.throttle import Throttle
from ingestd.errors import ConfigError, UnsupportedError
from ingestd.ingest.settings.pipeline_settings import PipelineSettings
from ingestd.ingest.tables.log_positions import Vector
from ingestd.ingest.tables.managed_table import ManagedTable
from ingestd.ingest.tables.pipeline_warehouse import open_catalog, open_file_io
from ingestd.ingest.tables.registry_opening import RegistryOpening
from ingestd.kafka.consumer_pool import close_consumers
from ingestd.kafka.fetch import Bounds
from ingestd.kafka.offsets import OffsetClient
from ingestd.kafka.record_log import KafkaRecordLog
from ingestd.paimon.spec.literals import timestamp_millis
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot
from ingestd.paimon.table.metadata.time_travel import snapshot_as_of

LATEST = "latest"
"""The value of `as_of` for the newest snapshot."""
_RESTARTS = 5
Result = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CompareOptions:
    """The options of a comparison with the source database.

    `source` is the URL of the database. If the source does not change during the comparison,
    `as_of` selects the snapshot to compare: a time like `2026-03-29T02:30:00`, or `LATEST`. If the
    source may change, `as_of` is None, and `timeouts` limit the waits until a table has caught up.
    `slot` names the connector's replication slot in PostgreSQL. `limit` is the maximum number of
    differences of a table. `search_records` is the maximum number of offsets that are searched for
    the newest records of differing keys. `rows_per_second` limits the rate at which the source is
    read, and `page_rows` is the number of rows that a statement hashes. A statement may take
    `statement_seconds`. Without `progress_file`, progress is kept in memory.
    """

    source: str
    as_of: str | None = None
    slot: str | None = None
    limit: int = 1000
    search_records: int = 500_000
    rows_per_second: int = 50_000
    page_rows: int = 50_000
    statement_seconds: float = 60.0
    timeouts: CatchUpTimeouts = field(default_factory=CatchUpTimeouts)
    progress_file: Path | None = None


def compare_tables(
    settings: PipelineSettings, names: Sequence[str], options: CompareOptions
) -> Iterator[Result | Uncompared | SourceOnly]:
    """Yield the result of each table in `names`, or of all tables of the pipeline if it is empty.

    If `names` is empty, a `SourceOnly` follows for each other table in the same schemas of the
    source.

    Raises ConfigError for invalid options and names; SourceError if the database or the brokers
    cannot be reached, a table does not catch up in time, or its columns keep changing; and the
    errors of reading tables.
    """
    if options.slot is not None and dialect_of(options.source) is mysql:
        raise ConfigError("--slot names a replication slot of PostgreSQL; this is another database")
    with ExitStack() as stack:
        connection = connect(options.source, options.statement_seconds)
        stack.enter_context(closing(connection))
        stack.callback(close_consumers)
        server = connection.dialect.read_server(connection)
        header = {
            "source": f"{public_url(options.source)} {server.identity}",
            "pipeline": settings.name,
            "warehouse": settings.warehouse,
            "page_rows": str(options.page_rows),
            "as_of": options.as_of or "",
        }
        progress = ProgressFile(options.progress_file, header)
        work = _Work(settings, connection, server.database, options, progress, stack)
        yield from work.run(names)


@dataclass(frozen=True, slots=True)
class _Work:
    """The comparison of some tables of a pipeline with one database."""

    settings: PipelineSettings
    connection: Connection
    database: str
    options: CompareOptions
    progress: ProgressFile
    stack: ExitStack

    def run(self, names: Sequence[str]) -> Iterator[Result | Uncompared | SourceOnly]:
        settings = self.settings
        opening = self._opening()
        asked = parse_pairs(names, settings.database)
        tables = opening.open().tables
        written = sorted(tables.keys() - {settings.dead_letters})
        _check_known(asked, written, settings.name)
        clusters = {} if self.options.as_of is not None else self._clusters()
        throttle = Throttle(self.options.rows_per_second)
        for name in asked or written:
            known = self.progress.result_of(name)
            if known is not None:
                yield known
                continue
            yield self._compare(name, asked.get(name), opening, clusters, throttle)
        if not asked:
            yield from self._source_only(
                fed_from(tables.values(), self.connection.dialect, self.database)
            )

    def _source_only(self, fed: frozenset[tuple[str, str]]) -> Iterator[SourceOnly]:
        """Yield the tables of the source from which no table of the lake is written.

        `fed` are the (schema, name) pairs of the other source tables; only their schemas are read.
        """
        schemas = sorted({schema for schema, _ in fed})
        for schema, name in self.connection.dialect.list_tables(self.connection, schemas):
            if (schema, name) not in fed:
                yield SourceOnly(f"{schema}.{name}")

    def _compare(
        self,
        name: str,
        given: tuple[str, str] | None,
        opening: RegistryOpening,
        clusters: Mapping[str, OffsetClient],
        throttle: Throttle,
    ) -> Result | Uncompared:
        """Compare a table, and again with its new columns if its schema changes meanwhile.

        Raises SchemaMovedError if the schema has changed during each of `_RESTARTS` comparisons.
        """
        for _ in range(_RESTARTS):
            work = _TableWork(self, opening, clusters, throttle, name, opening.load(name))
            try:
                return work.compare(given)
            except SchemaMovedError as error:
                moved = error
        raise moved

    def _opening(self) -> RegistryOpening:
        settings = self.settings
        io = open_file_io(settings)
        catalog = open_catalog(settings)
        return RegistryOpening(settings, catalog, io)

    def _clusters(self) -> dict[str, OffsetClient]:
        return {
            name: self.stack.enter_context(closing(OffsetClient(source.kafka)))
            for name, source in self.settings.sources.items()
        }


@dataclass(frozen=True, slots=True)
class _TableWork:
    """The comparison of one table."""

    work: _Work
    opening: RegistryOpening
    clusters: Mapping[str, OffsetClient]
    throttle: Throttle
    name: str
    managed: ManagedTable

    def compare(self, given: tuple[str, str] | None) -> Result | Uncompared:
        """Compare the table with the given source table, or with that in its progress record."""
        work = self.work
        dialect = work.connection.dialect
        name_in_source = source_of(self.name, self.managed, given, dialect, work.database)
        if isinstance(name_in_source, Uncompared):
            return name_in_source
        settings = work.settings.settings_of(self.name)
        table = self._table_of_snapshot()
        try:
            source = read_source_table(work.connection, name_in_source.schema, name_in_source.name)
        except MissingTableError as error:
            if given is not None:
                raise
            return Uncompared(self.name, error.message)
        reason = refusal(table, source, settings)
        if work.options.as_of is None and self.managed.progress is None:
            reason = "it has no record of this pipeline; use --as-of if the source does not change"
        if reason is not None:
            return Uncompared(self.name, reason)
        try:
            pairing = pair_columns(source, table.schema.fields, settings, dialect)
            return self._result(table, source, pairing)
        except UnsupportedError as error:
            return Uncompared(self.name, error.message)

    def _result(self, table: FileStoreTable, source: DatabaseTable, pairing: Pairing) -> Result:
        work = self.work
        comparison = TableComparison(
            SourceReader(work.connection, source, pairing, self.throttle),
            self._lake_of(table, pairing),
            pairing,
            self._stream(),
            work.options.page_rows,
            work.options.limit,
            self._changes(pairing),
            keeps_truncated=not work.settings.settings_of(self.name).truncates.applies,
        )
        pages = TablePages(work.progress, self.name, pairing.fingerprint)
        outcome = comparison.run(pages)
        newest = self._newest_records(pairing, outcome)
        result = result_document(self.name, source, pairing, outcome, newest)
        work.progress.add_result(self.name, result)
        return result

    def _changes(self, pairing: Pairing) -> "_KeyChanges | None":
        """Return the changes by key, or None for a source without concurrent changes.

        They are needed because an absent row has no version: a row that is absent before and after
        the lake is read may have been inserted and deleted, or truncated, meanwhile.
        """
        if self.work.options.as_of is not None:
            return None
        search = RecordSearch(self.work.settings, self.clusters, self.work.options.search_records)
        return _KeyChanges(search, self.opening, self.name, pairing)

    def _newest_records(self, pairing: Pairing, outcome: ComparisonOutcome) -> NewestRecords | None:
        """Return the newest records of the differing keys, or None if Kafka is not read."""
        options = self.work.options
        if options.as_of is not None:
            return None
        search = RecordSearch(self.work.settings, self.clusters, options.search_records)
        keys = [difference.key for difference in outcome.differences]
        return search.find(self.opening.open(), self.name, pairing.key, keys)

    def _table_of_snapshot(self) -> FileStoreTable:
        """Return the table, with the schema of the snapshot to compare."""
        table, as_of = self.managed.table, self.work.options.as_of
        if as_of is None or as_of == LATEST:
            return table
        return table.at_schema(snapshot_as_of(table, timestamp_millis(as_of)).schema_id)

    def _lake_of(self, table: FileStoreTable, pairing: Pairing) -> Callable[[], LakeReader]:
        """Return a function that opens a snapshot of the table: the newest, or that of `as_of`.

        Without `as_of`, each call opens the snapshot that is then the newest. Opening the newest
        snapshot raises SchemaMovedError if its schema is newer than that of the compared table.
        """
        as_of = self.work.options.as_of
        condition = existing_rows(table, self.work.settings.settings_of(self.name))

        def newest() -> LakeReader:
            snapshot = latest_snapshot(table.io, table.paths)
            if snapshot is not None and snapshot.schema_id > table.schema.id:
                raise SchemaMovedError(f"the columns of {table.name} change; compare it later")
            return LakeReader(table, pairing, snapshot, condition)

        if as_of is None:
            return newest
        still = as_of == LATEST
        snapshot = None if still else snapshot_as_of(table, timestamp_millis(as_of))
        pinned = newest() if still else LakeReader(table, pairing, snapshot, condition)
        return lambda: pinned

    def _stream(self) -> ChangeStream | None:
        options = self.work.options
        if options.as_of is not None:
            return None
        return ChangeStream(
            self._connector(),
            self.clusters,
            self.opening.open,
            self.name,
            options.timeouts,
        )

    def _connector(self) -> Connector[Any]:
        """Return the connector that writes the topics from which the table is written."""
        work = self.work
        if work.connection.dialect is not mysql:
            return ReplicationSlot(work.connection, work.options.slot)
        progress, limits = self.managed.progress, work.settings.limits
        own = set() if progress is None else {table.source for table in progress.source_tables}
        clusters = {name: self.clusters[name] for name in self.clusters if not own or name in own}
        kafka = {name: source.kafka for name, source in work.settings.sources.items()}
        log = KafkaRecordLog(Bounds(limits.max_chunk_records, limits.max_chunk_bytes))
        return BinlogReader(work.connection, kafka, clusters, log)


@dataclass(frozen=True, slots=True)
class _KeyChanges:
    """The changes of a table in its topics; see `KeyChanges`."""

    search: RecordSearch
    opening: RegistryOpening
    name: str
    pairing: Pairing

    def mark(self) -> Vector:
        return self.opening.open().tables[self.name].covered

    def changed_since(self, mark: Vector, keys: Collection[Key]) -> Collection[Key]:
        opened = self.opening.open()
        return self.search.keys_since(opened, self.name, self.pairing.key, keys, mark)


def _check_known(
    asked: Mapping[str, tuple[str, str] | None], written: Sequence[str], pipeline: str
) -> None:
    for name, given in asked.items():
        if given is None and name not in written:
            known = ", ".join(written) or "none"
            raise ConfigError(
                f"pipeline {pipeline} has not written {name}; it has written: {known}"
            )
