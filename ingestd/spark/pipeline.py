"""A pipeline as one streaming query: start from what the tables hold, run, stop between batches."""

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

from ingestd.errors import FencedError, IngestdError, RetryableError, SourceError
from ingestd.ingest.maintenance.batch_summary import BatchListener
from ingestd.ingest.recovery.logs import LogCluster, TopicKeyCheck
from ingestd.ingest.recovery.losses import lost_records
from ingestd.ingest.recovery.start import StartPositions, recover
from ingestd.ingest.settings.context import SourceSettings
from ingestd.ingest.settings.pipeline_settings import PipelineSettings
from ingestd.ingest.settings.topic_trial import without_topics
from ingestd.ingest.tables.leadership import Leadership, this_process
from ingestd.ingest.tables.positions import TopicKeys
from ingestd.ingest.tables.table_registry import TableRegistry
from ingestd.kafka.offsets import OffsetClient
from ingestd.kafka.ranges import OffsetRange, Offsets, TopicOffsets, covers
from ingestd.kafka.start_stop import last_positions
from ingestd.paimon.catalog.base import load_catalog
from ingestd.paimon.io.exclusive import prove_exclusive
from ingestd.paimon.io.file_io import FileIO, file_io_for, is_local, storage_options
from ingestd.spark.checkpoint import checkpoint_folder, read_batch_offsets
from ingestd.spark.failure import last_cause, raised_error
from ingestd.spark.micro_batch import MicroBatch
from ingestd.spark.offset_source import OffsetRangeSource, source_options
from ingestd.spark.set_aside import take_given_up
from ingestd.spark.startup.jvm_exit import reported_jvm_exit
from ingestd.spark.startup.session import build_session
from ingestd.spark.startup.settings import with_worker_memory

_LOG = logging.getLogger(__name__)
_REQUEST_SECONDS = 5.0
_REFRESH_SECONDS = 600.0
"""How often the records of tables that get no rows are looked at."""


class _StoppedError(Exception):
    """Keeps a batch from starting after `stop`; Spark plans the same batch again next time."""


class Pipeline:
    """One run of a pipeline; make a new one to run again.

    `listener` hears of batches on the thread that runs them. The Spark session outlives the
    pipeline and is shared by the next one in the process.
    """

    def __init__(self, settings: PipelineSettings, listener: BatchListener) -> None:
        self._settings = settings
        self._listener = listener
        self._query: StreamingQuery | None = None
        self._failure: IngestdError | None = None
        self._verdict: Callable[[IngestdError], IngestdError] = lambda error: error
        self._prefetch: Offsets = {}
        self._arrived = threading.Event()
        self._stopping = threading.Event()
        self._in_flight = threading.Lock()
        self._batch: MicroBatch | None = None
        self._refresh_at = time.monotonic() + _REFRESH_SECONDS
        self._clients = ExitStack()  # Spark keeps what a query calls for as long as it lives

    def start(self, *, until_latest: bool) -> None:
        """Recover the position from the tables and start the query.

        With `until_latest` the query ends by itself at the offsets that are there now, and without
        it where the sources end, if all of them do. Raises the errors of opening the tables and of
        asking the brokers.
        """
        settings = self._settings
        spark = with_worker_memory(settings.spark, settings.limits.worker_memory)
        with reported_jvm_exit(), ThreadPoolExecutor(1, "session") as pool:
            session = pool.submit(build_session, settings.name, spark)
            try:
                self._prepare(session, until_latest=until_latest)
            except RetryableError:
                session.result()  # what it lacks, no other try brings
                raise

    def _prepare(self, starting: Future[SparkSession], *, until_latest: bool) -> None:
        """Open the tables and ask the brokers while the session starts, then start the query."""
        settings = self._settings
        io = file_io_for(settings.warehouse, storage_options(settings.catalog_options))
        if not is_local(settings.warehouse):
            prove_exclusive(io, settings.warehouse)
        catalog = load_catalog(settings.metastore, settings.warehouse, settings.catalog_options)
        leadership = lead(settings, io)
        registry = TableRegistry(settings, catalog, io, _now_ms)
        registry.open()
        self._listener.tables_opened(
            {name: one.table.schema for name, one in registry.tables.items()}
        )
        clusters = {
            name: self._clients.enter_context(closing(OffsetClient(one.kafka)))
            for name, one in settings.sources.items()
        }
        start = self._recover(registry, clusters, leadership)
        topics = TopicKeyCheck(registry.keys, clusters)
        checkpoint = self._clients.enter_context(checkpoint_folder())
        session = starting.result()
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
        self._verdict = leadership.verdict
        self._prefetch = {} if until_latest else bounds_ahead(settings, clusters)
        now = until_latest or (settings.is_bounded and not self._prefetch)
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
            # Two that start at once: who leads has met the first commit of the other.
            raise leadership.verdict(error) from error
        for place, records in lost_records(start.losses).items():
            self._listener.offsets_lost(*place, records)
        return start

    def await_termination(self, timeout: float) -> bool:
        """Wait up to `timeout` seconds; True when the query has ended.

        Raises the error that ended it; a failure of Spark itself becomes a RetryableError, the
        end of its JVM a FatalError.
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
            self._let_go()
            if ending and self._failure is None:
                return self._ended(asked=asked)
            raise self._failure or _translated(error) from error
        if ended:
            self._let_go()
            if self._failure is not None:
                raise self._failure
        return bool(ended) and self._ended(asked=asked or self._stopping.is_set())

    def _ended(self, *, asked: bool) -> bool:
        """True; PolicyStopError if the query ended unasked, and has left out topics."""
        if self._batch is not None and not asked:
            self._batch.set_aside.refuse_end()
        return True

    def _refresh_records(self) -> None:
        """Now and then, while no batch runs, keep the records of tables that get no rows."""
        if time.monotonic() < self._refresh_at or not self._in_flight.acquire(blocking=False):
            return
        try:
            self._refresh_at = time.monotonic() + _REFRESH_SECONDS
            if self._batch is not None and not self._stopping.is_set():
                self._batch.refresh_records()
        finally:
            self._in_flight.release()

    def rests(self) -> bool:
        """Whether the query waits for its next trigger, having found nothing to do."""
        try:
            return self._query is not None and not self._query.status["isTriggerActive"]
        except (Py4JError, OSError):
            return False

    def stop(self) -> None:
        """Let the batch in flight end, start no other, and end the query."""
        self._stopping.set()
        with self._in_flight:
            # Not held during the stop itself, which waits for a batch that may wait for the lock.
            query = self._query
        if query is not None:
            try:
                if query.isActive:
                    query.stop()
            except (Py4JError, OSError, StreamingQueryException) as error:
                _LOG.warning("query_stop_failed", extra={"ctx": {"error": str(error)}})
        self._let_go()

    def _let_go(self) -> None:
        """End what was begun early, and the connections to the brokers, between two batches."""
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
        kafka = {name: one.kafka for name, one in settings.sources.items()}
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
                    self._failure = self._verdict(error)
                    raise
            if self._settings.commit_group_offsets:
                groups.publish(until)
            if self._prefetch and covers(
                until, without_topics(self._prefetch, batch.set_aside.topics)
            ):
                self._arrived.set()
            self._listener.between_batches(self._stopping)

        return run_batch


@dataclass(frozen=True)
class CommitPreconditions:
    """Asked before a batch is read, and between its reading and its commits."""

    leadership: Leadership
    topics: TopicKeyCheck

    @property
    def keys(self) -> TopicKeys:
        """The keys of the topics that were read so far."""
        return self.topics.keys

    def learn(self, ranges: list[OffsetRange]) -> None:
        """Learn the keys of topics that are read for the first time."""
        self.topics.learn(ranges)

    def check(self, ranges: list[OffsetRange]) -> None:
        """FencedError or LogChangedError if nothing of the batch may be committed."""
        self.leadership.check()
        self.topics.check(ranges)


class GroupOffsets:
    """Writes offsets to the group of each source; a failure is only logged."""

    def __init__(self, sources: Mapping[str, SourceSettings]) -> None:
        self._sources = sources
        self._clients: dict[str, OffsetClient] = {}

    def publish(self, until: Offsets) -> None:
        """Write the next offset of every topic partition."""
        for name, topics in until.items():
            try:
                client = self._client(name)
                client.commit_group_offsets(client.source.group, topics)
            except SourceError as error:
                _LOG.warning("group_offsets_not_written", extra={"ctx": {"error": str(error)}})

    def close(self) -> None:
        """Let go of the brokers; what is published later opens clients again."""
        while self._clients:
            self._clients.popitem()[1].close()

    def _client(self, name: str) -> OffsetClient:
        if name not in self._clients:
            kafka = self._sources[name].kafka
            self._clients[name] = OffsetClient(kafka, request_seconds=_REQUEST_SECONDS)
        return self._clients[name]


def lead(settings: PipelineSettings, io: FileIO) -> Leadership:
    """Become the process that leads a pipeline, or stay it; FencedError if another replaced it."""
    folder = f"{settings.warehouse}/.ingestd/{settings.name}"
    leadership = Leadership(io, folder, settings.name, this_process())
    leadership.claim()
    return leadership


def bounds_ahead(settings: PipelineSettings, clusters: Mapping[str, LogCluster]) -> Offsets:
    """The offsets at which a pipeline is to end, if some of them are yet to be written.

    None of them if all are in the logs, or if some source does not end. Raises SourceError, and
    ConfigError for offsets of what does not exist.
    """
    kafka = {name: one.kafka for name, one in settings.sources.items()}
    if not settings.is_bounded or not any(one.bounded_offsets for one in kafka.values()):
        return {}
    ends: dict[str, TopicOffsets] = {}
    wanted: dict[str, TopicOffsets] = {}
    for name, source in kafka.items():
        cluster = clusters[name]
        ends[name] = cluster.end_offsets(cluster.list_topic_partitions())
        wanted[name] = last_positions(source, cluster, ends[name]) or {}
    return {} if covers(ends, wanted) else wanted


def _translated(error: StreamingQueryException) -> IngestdError:
    text = str(error)
    return raised_error(text) or RetryableError(f"the query failed: {last_cause(text)}")


def _now_ms() -> int:
    return int(time.time() * 1000)
