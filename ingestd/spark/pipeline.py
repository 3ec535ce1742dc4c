"""Run a pipeline as one streaming query: recover from the tables, run, stop between batches."""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial

from py4j.protocol import Py4JError
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from ingestd.config.spark_master import has_executors
from ingestd.errors import FencedError, IngestdError, RetryableError, SourceError
from ingestd.ingest.batch_events import BatchListener, OpenedTable
from ingestd.ingest.recovery.logs import LogCluster, TopicKeyCheck
from ingestd.ingest.recovery.losses import lost_records
from ingestd.ingest.recovery.start import StartPositions, recover
from ingestd.ingest.recovery.start_warnings import log_warnings, source_warnings, table_warnings
from ingestd.ingest.settings.context import SourceSettings
from ingestd.ingest.settings.pipeline_settings import PipelineSettings
from ingestd.ingest.settings.wrong_format import without_topics
from ingestd.ingest.tables.leadership import Leadership, this_process
from ingestd.ingest.tables.log_positions import TopicKeys
from ingestd.ingest.tables.managed_table import ManagedTable
from ingestd.ingest.tables.pipeline_warehouse import open_catalog, open_file_io, pipeline_folder
from ingestd.ingest.tables.table_registry import TableRegistry
from ingestd.kafka.offset_ranges import OffsetRange, Offsets, TopicOffsets, covers
from ingestd.kafka.offsets import OffsetClient
from ingestd.kafka.start_stop import last_positions
from ingestd.paimon.io.file_io import FileIO, is_local
from ingestd.paimon.io.probes import prove_exclusive
from ingestd.spark.checkpoint import checkpoint_folder, read_batch_offsets
from ingestd.spark.failure import last_cause, raised_error, reported_jvm_exit
from ingestd.spark.micro_batch import MicroBatch
from ingestd.spark.offset_source import OffsetRangeSource, source_options
from ingestd.spark.pyspark_internals import count_executors
from ingestd.spark.set_aside import take_given_up
from ingestd.spark.startup.session import build_session
from ingestd.spark.startup.settings import with_worker_memory

_LOG = logging.getLogger(__name__)
_REQUEST_SECONDS = 5.0
_REFRESH_SECONDS = 600.0
"""The interval at which progress records of tables without new rows are checked."""


class _StoppedError(Exception):
    """Raised instead of running a batch after `stop`, or after all end offsets were reached."""


class Pipeline:
    """One run of a pipeline; every run needs a new object.

    `listener` is called by `start`, and on the thread that runs the batches. The Spark session
    outlives the run and is used by the next run in this process.
    """

    def __init__(self, settings: PipelineSettings, listener: BatchListener) -> None:
        self._settings = settings
        self._listener = listener
        self._query: StreamingQuery | None = None
        self._failure: IngestdError | None = None
        self._error_to_raise: Callable[[IngestdError], IngestdError] = lambda error: error
        self._end_bounds: Offsets = {}
        self._arrived = threading.Event()
        self._stopping = threading.Event()
        self._in_flight = threading.Lock()
        self._batch: MicroBatch | None = None
        self._session: SparkSession | None = None
        self._refresh_at = time.monotonic() + _REFRESH_SECONDS
        self._clients = ExitStack()  # Spark never drops the callback of a query

    def start(self, *, until_latest: bool) -> None:
        """Recover the position from the tables and start the query.

        With `until_latest` the query ends at the current end offsets of the topics; otherwise it
        ends only if all sources are bounded. Raises FencedError if another process leads the
        pipeline, ProgressLostError or OffsetLostError if the position cannot be recovered,
        JvmLostError if the JVM ends, and the other errors of `TableRegistry.open`, `recover` and
        `build_session`.
        """
        settings = self._settings
        spark = with_worker_memory(settings.spark, settings.worker_memory)
        with reported_jvm_exit(), ThreadPoolExecutor(1, "session") as pool:
            session = pool.submit(build_session, settings.name, spark)
            try:
                self._prepare(session, until_latest=until_latest)
            except RetryableError:
                session.result()  # raises ConfigError, which a restart does not fix
                raise

    def _prepare(self, starting: Future[SparkSession], *, until_latest: bool) -> None:
        """Open tables and query the brokers while the session starts, then start the query."""
        settings = self._settings
        io = open_file_io(settings)
        if not is_local(settings.warehouse):
            prove_exclusive(io, settings.warehouse)
        catalog = open_catalog(settings)
        leadership = lead(settings, io)
        registry = TableRegistry(settings, catalog, io, _now_ms)
        registry.open()
        opened = {name: _opened(managed) for name, managed in registry.tables.items()}
        self._listener.tables_opened(opened)
        schemas = {name: table.schema for name, table in opened.items()}
        log_warnings(table_warnings(settings, schemas))
        clusters = {
            name: self._clients.enter_context(closing(OffsetClient(source.kafka)))
            for name, source in settings.sources.items()
        }
        log_warnings(source_warnings(settings, clusters, is_first=not registry.progress.end))
        start = self._recover(registry, clusters, leadership)
        topics = TopicKeyCheck(registry.keys, clusters)
        checkpoint = self._clients.enter_context(checkpoint_folder())
        session = self._session = starting.result()
        batch = MicroBatch(
            session.sparkContext,
            settings,
            registry,
            partial(read_batch_offsets, checkpoint),
            CommitPreconditions(leadership, topics),
            self._listener,
        )
        self._clients.callback(batch.close)
        self._batch = batch
        self._error_to_raise = leadership.error_to_raise
        self._end_bounds = {} if until_latest else bounds_ahead(settings, clusters)
        now = until_latest or (settings.is_bounded and not self._end_bounds)
        self._query = self._start_query(session, checkpoint, start, batch, ends_now=now)

    def _recover(
        self,
        registry: TableRegistry,
        clusters: Mapping[str, OffsetClient],
        leadership: Leadership,
    ) -> StartPositions:
        try:
            leadership.check()
            start = recover(registry, self._settings, clusters, take_given_up())
        except FencedError as error:
            # Two processes started at once, and the other one has committed first.
            raise leadership.error_to_raise(error) from error
        for topic, records in lost_records(start.losses).items():
            self._listener.offsets_lost(*topic, records)
        self._listener.losses_accepted(start.dead_letters)
        return start

    def await_termination(self, timeout: float) -> bool:
        """Wait up to `timeout` seconds, but at least one; return whether the query has ended.

        Also renews progress records and retries unreadable partitions. Raises the error that ended
        the query (RetryableError for a failure of Spark, JvmLostError if the JVM ended),
        FencedError or the error of a commit if progress records cannot be renewed, SourceError if a
        retry requires a restart of the query, and PolicyStopError if retries are exhausted or the
        query ended by itself with topics or partitions set aside.
        """
        with reported_jvm_exit():
            return self._await_termination(timeout)

    def _await_termination(self, timeout: float) -> bool:
        if self._query is None:
            raise ValueError("the pipeline was not started")
        asked = self._stopping.is_set()
        if self._arrived.is_set():
            self.stop()
            return self._ended(asked=asked)
        self._refresh_records()
        if self._batch is not None:
            self._batch.set_aside.poll()
        try:
            ended = self._query.awaitTermination(max(1, int(timeout)))
        except StreamingQueryException as error:
            ending = self._stopping.is_set() or self._arrived.is_set()
            self._release()
            if ending and self._failure is None:
                return self._ended(asked=asked or not self._arrived.is_set())
            raise self._failure or _translated(error) from error
        if ended:
            self._release()
            if self._failure is not None:
                raise self._failure
        return bool(ended) and self._ended(asked=asked or self._stopping.is_set())

    def _ended(self, *, asked: bool) -> bool:
        """Return True for a query that has ended; `asked` is whether its end was requested.

        Raises PolicyStopError if it ended by itself with topics or partitions set aside.
        """
        if self._batch is not None and not asked:
            self._batch.set_aside.refuse_end()
        return True

    def _refresh_records(self) -> None:
        """Renew progress records of tables without new rows, at an interval and between batches."""
        if time.monotonic() < self._refresh_at or not self._in_flight.acquire(blocking=False):
            return
        try:
            self._refresh_at = time.monotonic() + _REFRESH_SECONDS
            if self._batch is not None and not self._stopping.is_set():
                self._batch.refresh_records()
        finally:
            self._in_flight.release()

    def is_idle(self) -> bool:
        """Return whether the query is idle: it runs no batch, and waits for its next trigger."""
        try:
            return self._query is not None and not self._query.status["isTriggerActive"]
        except (Py4JError, OSError):
            return False

    def executors(self) -> int | None:
        """Return the number of executors of the cluster; None for a local master, or if unknown."""
        if self._session is None or not has_executors(str(self._session.sparkContext.master)):
            return None
        return count_executors(self._session.sparkContext)

    def stop(self) -> None:
        """Finish the batch in flight, start no other, and end the query."""
        self._stopping.set()
        with self._in_flight:
            # Released before the query stops, which waits for a batch that may need the lock.
            query = self._query
        if query is not None:
            try:
                if query.isActive:
                    query.stop()
            except (Py4JError, OSError, StreamingQueryException) as error:
                _LOG.warning("query_stop_failed", extra={"ctx": {"error": str(error)}})
        self._release()

    def _release(self) -> None:
        """Wait for the batch in flight, then discard prefetched work and close all clients."""
        with self._in_flight:
            self._clients.close()

    def _start_query(
        self,
        session: SparkSession,
        checkpoint: str,
        start: StartPositions,
        batch: MicroBatch,
        *,
        ends_now: bool,
    ) -> StreamingQuery:
        session.dataSource.register(OffsetRangeSource)
        stream = session.readStream.format(OffsetRangeSource.name())
        settings = self._settings
        kafka = {name: source.kafka for name, source in settings.sources.items()}
        limits = settings.max_offsets_per_trigger
        options = source_options(kafka, limits, start)
        writer = stream.options(**options).load().writeStream
        writer = writer.option("checkpointLocation", checkpoint)
        writer = writer.queryName(settings.name)
        if ends_now:
            writer = writer.trigger(availableNow=True)
        else:
            interval = f"{int(settings.trigger_seconds * 1000)} milliseconds"
            writer = writer.trigger(processingTime=interval)

        return writer.foreachBatch(self._batch_function(batch)).start()

    def _batch_function(self, batch: MicroBatch) -> Callable[[DataFrame, int], None]:
        groups = GroupOffsets(self._settings.sources)
        self._clients.callback(groups.close)

        def run_batch(_: DataFrame, batch_id: int) -> None:
            with self._in_flight:
                if self._stopping.is_set() or self._arrived.is_set():
                    raise _StoppedError
                try:
                    until = batch.run(batch_id)
                except IngestdError as error:
                    self._failure = self._error_to_raise(error)
                    raise
            if self._settings.commit_group_offsets:
                groups.publish(until)
            if self._end_bounds and covers(
                until, without_topics(self._end_bounds, batch.set_aside.topics)
            ):
                self._arrived.set()
            self._listener.between_batches(self._stopping)

        return run_batch


@dataclass(frozen=True)
class CommitPreconditions:
    """The checks of leadership and topics before a commit, which implement `CommitGuard`."""

    leadership: Leadership
    topics: TopicKeyCheck

    @property
    def keys(self) -> TopicKeys:
        """The topic keys of all topics read so far, by source and topic."""
        return self.topics.keys

    def learn(self, ranges: list[OffsetRange]) -> None:
        """Look up and store the keys of topics in `ranges` that are read for the first time.

        Raises LogChangedError if such a topic was deleted, and SourceError if brokers do not
        respond.
        """
        self.topics.learn(ranges)

    def check(self, ranges: list[OffsetRange]) -> None:
        """Raise FencedError if leadership is lost, LogChangedError if a topic was recreated.

        The topics are those of `ranges`. Raises SourceError if brokers do not respond, FormatError
        if the leader's term file is invalid, and StorageError if it cannot be read.
        """
        self.leadership.check()
        self.topics.check(ranges)


class GroupOffsets:
    """The writer of offsets to the sources' consumer groups, for tools that show lag.

    If brokers do not respond, this is only logged.
    """

    def __init__(self, sources: Mapping[str, SourceSettings]) -> None:
        self._sources = sources
        self._clients: dict[str, OffsetClient] = {}

    def publish(self, until: Offsets) -> None:
        """Commit the next offset of each topic partition; `until` is by source and topic.

        A failure at one source is logged, and does not affect other sources.
        """
        for name, topics in until.items():
            try:
                client = self._client(name)
                client.commit_group_offsets(client.source.group, topics)
            except SourceError as error:
                _LOG.warning("group_offsets_not_written", extra={"ctx": {"error": str(error)}})

    def close(self) -> None:
        """Close the clients; a later `publish` opens new clients."""
        while self._clients:
            self._clients.popitem()[1].close()

    def _client(self, name: str) -> OffsetClient:
        if name not in self._clients:
            kafka = self._sources[name].kafka
            self._clients[name] = OffsetClient(kafka, request_seconds=_REQUEST_SECONDS)
        return self._clients[name]


def lead(settings: PipelineSettings, io: FileIO) -> Leadership:
    """Claim the leadership of a pipeline for this process, and return it.

    Raises FencedError if another process has replaced this process as the leader, FormatError if a
    term file is invalid, and StorageError if the warehouse does not respond or too many processes
    claim leadership at the same time.
    """
    folder = pipeline_folder(settings.warehouse, settings.name)
    leadership = Leadership(io, folder, settings.name, this_process())
    leadership.claim()
    return leadership


def bounds_ahead(settings: PipelineSettings, clusters: Mapping[str, LogCluster]) -> Offsets:
    """Return the end offsets of a bounded pipeline if some are beyond the ends of the logs.

    Such offsets are reached only when more records are written. Returns no offsets if all are
    within the logs, or if a source is not bounded. `clusters` maps sources to their brokers. Raises
    SourceError if brokers do not respond, and ConfigError if an end offset is configured for a
    topic partition that does not exist.
    """
    kafka = {name: source.kafka for name, source in settings.sources.items()}
    if not settings.is_bounded or not any(conf.bounded_offsets for conf in kafka.values()):
        return {}
    ends: dict[str, TopicOffsets] = {}
    bounds: dict[str, TopicOffsets] = {}
    for name, source in kafka.items():
        cluster = clusters[name]
        ends[name] = cluster.end_offsets(cluster.list_topic_partitions())
        bounds[name] = last_positions(source, cluster, ends[name]) or {}
    return {} if covers(ends, bounds) else bounds


def _translated(error: StreamingQueryException) -> IngestdError:
    text = str(error)
    return raised_error(text) or RetryableError(f"the query failed: {last_cause(text)}")


def _now_ms() -> int:
    return int(time.time() * 1000)


def _opened(managed: ManagedTable) -> OpenedTable:
    snapshot = managed.state.snapshot
    if snapshot is None:
        return OpenedTable(managed.table.schema)
    return OpenedTable(managed.table.schema, snapshot.id, snapshot.time_millis / 1000)
