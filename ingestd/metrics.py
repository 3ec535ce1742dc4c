"""The Prometheus collectors, and functions that update them from plain values.

Only the driver updates them. Tasks return counts with their results, which are added after the
batch is committed. The values of labels are bounded: never a partition value, a bucket, a key, a
file or an error message.
"""

from collections.abc import Iterable, Mapping

from prometheus_client import Counter, Gauge, Histogram

from ingestd.kafka.registry_http import FAILURES, HITS, OUTAGE_MS, REQUESTS

STATES = ("starting", "running", "backoff", "draining", "stopped", "failed")
"""The states of a pipeline; the current one is 1 in `ingestd_pipeline_state`."""

_BATCH_BUCKETS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)
_COMMIT_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)

BUILD_INFO = Gauge(
    "ingestd_build_info",
    "Always 1; the labels are the version, the decoder and Kafka reader in use (native or python), "
    "and the version of librdkafka.",
    ["version", "decoder", "kafka_reader", "librdkafka"],
)
PIPELINE_STATE = Gauge(
    "ingestd_pipeline_state", "1 for the current state, 0 for all others.", ["state"]
)
RESTARTS = Counter(
    "ingestd_restarts", "Restarts of a failed query, by the class of its error.", ["error"]
)
LAST_ERROR = Gauge(
    "ingestd_last_error_timestamp_seconds", "When the query last failed; 0 if it never did."
)

NOTICES_SENT = Counter("ingestd_notices_sent", "Events that the webhook has taken.", ["type"])
NOTICES_DROPPED = Counter(
    "ingestd_notices_dropped",
    "Events that were not delivered: the queue was full (queue-full), the receiver rejected them "
    "(refused), or the daemon ended (stopped).",
    ["reason"],
)

SOURCE_RECORDS = Counter(
    "ingestd_source_records", "Kafka records read, rejected ones included.", ["source", "topic"]
)
SOURCE_BYTES = Counter(
    "ingestd_source_bytes", "Bytes of keys and values of the records read.", ["source", "topic"]
)
SOURCE_CONTROL = Counter(
    "ingestd_source_control_records",
    "Valid records without a row: heartbeats, tombstones, transaction marks.",
)
SOURCE_GAP = Counter(
    "ingestd_source_offset_gap_records",
    "Records (at most) that the log no longer had when they were to be read.",
    ["source", "topic"],
)
SOURCE_REACHABLE = Gauge(
    "ingestd_source_reachable", "1 if the brokers responded to the last request.", ["source"]
)

ROWS_WRITTEN = Counter(
    "ingestd_rows_written",
    "Rows written by table and row kind (+I, -U, +U, -D), before rows of one key are merged.",
    ["table", "kind"],
)
SKIPPED_ROWS = Counter(
    "ingestd_skipped_rows",
    "Rows left out: covered (in the table already), truncated, ignored by table options, "
    "filtered by `where` (tables with a primary key write deletes instead), excluded by routing.",
    ["table", "reason"],
)
UNKNOWN_VALUES = Counter(
    "ingestd_unknown_values",
    "Cells stored as null because the source left out an unchanged value, and neither an older row "
    "of the key nor, if the key changed, the row of the old key has it.",
    ["table"],
)
UNKNOWN_KEYS = Counter(
    "ingestd_unknown_keys",
    "Updates without a before image in tables whose primary key has columns that the message key "
    "lacks: if they changed the key, the row of the old key remains.",
    ["table"],
)
DROPPED_RECORDS = Counter(
    "ingestd_dropped_records",
    "Records that could not be used and were not kept: `errors` drops those of their stage.",
    ["stage", "reason"],
)
REJECTED = Counter(
    "ingestd_rejected_records",
    "Records that could not be used, kept or not, and the dead letters about losses that a start "
    "accepts; 0 from the start on.",
)
REFUSED_CLAIMS = Counter(
    "ingestd_refused_claims",
    "Rejected records that claim a table, a schema or a name that they cannot have (the stages "
    "route and schema); 0 from the start on.",
)
DEAD_LETTERS = Counter(
    "ingestd_dead_letters",
    "Records that could not be used, kept as dead letters, and the dead letters about losses that "
    "a start accepts (stage `fetch`): gaps in logs, dropped and overwritten tables.",
    ["stage", "reason"],
)

BATCH_SECONDS = Histogram(
    "ingestd_batch_seconds", "Durations of micro-batches.", buckets=_BATCH_BUCKETS
)
PHASE_SECONDS = Histogram(
    "ingestd_phase_seconds",
    "Durations of the phases of micro-batches.",
    ["phase"],
    buckets=_BATCH_BUCKETS,
)
LAST_BATCH = Gauge(
    "ingestd_last_batch_timestamp_seconds", "When a micro-batch last finished; 0 if none has."
)
LAST_POLL = Gauge(
    "ingestd_last_poll_timestamp_seconds",
    "When the query last began or finished a batch, or found nothing new to read; 0 if it never "
    "did.",
)

COMMITS = Counter(
    "ingestd_commits",
    "Commits by result: committed, replayed (it was there already) or empty.",
    ["table", "result"],
)
COMMIT_SECONDS = Histogram(
    "ingestd_commit_seconds", "Durations of commits.", ["table"], buckets=_COMMIT_BUCKETS
)
COMMIT_ATTEMPTS = Counter(
    "ingestd_commit_attempts",
    "Attempts to publish a snapshot; more attempts than commits mean other writers.",
    ["table"],
)
LAST_COMMIT = Gauge(
    "ingestd_last_commit_timestamp_seconds", "Time of a table's newest commit.", ["table"]
)
SNAPSHOT_ID = Gauge("ingestd_snapshot_id", "Id of the newest snapshot by this pipeline.", ["table"])
FILES_WRITTEN = Counter("ingestd_files_written", "Data files written.", ["table"])
FILE_BYTES_WRITTEN = Counter("ingestd_file_bytes_written", "Bytes of data files.", ["table"])

COMPACTIONS = Counter(
    "ingestd_compactions",
    "Compactions by result: compacted, nothing (to do), lost (to other writers), failed.",
    ["table", "result"],
)
COMPACTION_SECONDS = Histogram(
    "ingestd_compaction_seconds", "Durations of compactions.", ["table"], buckets=_BATCH_BUCKETS
)
COMPACTION_INPUT = Counter(
    "ingestd_compaction_input_bytes", "Bytes of data files that compactions read.", ["table"]
)
COMPACTION_OUTPUT = Counter(
    "ingestd_compaction_output_bytes",
    "Bytes of files that compactions wrote; the ratio to ingestd_file_bytes_written_total is the "
    "write amplification of compaction.",
    ["table"],
)
LEVEL_0_FILES = Gauge("ingestd_level0_files", "Level-0 data files not yet compacted.", ["table"])
SORTED_RUNS = Gauge("ingestd_sorted_runs", "Most sorted runs in any bucket of a table.", ["table"])
SNAPSHOTS_EXPIRED = Counter("ingestd_snapshots_expired", "Snapshots that expired.", ["table"])
FILES_EXPIRED = Counter(
    "ingestd_files_expired", "Files deleted with expired snapshots and changelogs.", ["table"]
)
EXPIRY_FAILURES = Counter("ingestd_expiry_failures", "Expiries that failed.", ["table"])
ICEBERG_FAILURES = Counter(
    "ingestd_iceberg_failures",
    "Snapshots whose Iceberg metadata could not be written; the next one catches up.",
    ["table"],
)
THROTTLED_SECONDS = Counter(
    "ingestd_throttled_seconds",
    "Time that ingest waited for compactions: for a bucket above the stop trigger (sorted-runs), "
    "or in the mode inline (inline).",
    ["cause"],
)

# A failed task reports nothing. The next task of its worker process reports its requests. If the
# process ends, they are lost, and only the log (`schema_registry_retry`) shows an outage.
REGISTRY_REQUESTS = Counter("ingestd_registry_requests", "Requests to schema registries.")
REGISTRY_FAILED = Counter(
    "ingestd_registry_failed_requests",
    "Requests to schema registries without a usable response; those of a failed batch are lost "
    "if its workers ended with it.",
)
REGISTRY_CACHE_HITS = Counter(
    "ingestd_registry_cache_hits", "Lookups of schemas that were in the cache."
)
REGISTRY_OUTAGE_SECONDS = Counter(
    "ingestd_registry_outage_seconds",
    "Time that tasks waited for schema registries that did not respond; as with failed requests, "
    "that of a failed batch is lost if its workers ended with it.",
)

INDEX_CACHE_LOOKUPS = Counter(
    "ingestd_index_cache_lookups",
    "Lookups of bucket indexes by tasks: `hit` if the worker process has the index of the "
    "previous batch, `miss` if it reads the index from the table.",
    ["result"],
)


def record_build(labels: Mapping[str, str]) -> None:
    """Set the labels of `ingestd_build_info`: version, decoder, kafka_reader and librdkafka."""
    BUILD_INFO.labels(**labels).set(1)


def record_state(state: str) -> None:
    """Set the state of the pipeline. Raises ValueError if it is not in `STATES`."""
    if state not in STATES:
        raise ValueError(f"no state of a pipeline: {state}")
    for known in STATES:
        PIPELINE_STATE.labels(known).set(known == state)


def record_failure(time_seconds: float) -> None:
    """Record the time of a failure of the query (seconds since 1970)."""
    LAST_ERROR.set(time_seconds)


def record_restart(error: str) -> None:
    """Count a restart of the query; `error` is the class of the error that caused it."""
    RESTARTS.labels(error).inc()


def expect_restarts(errors: Iterable[str]) -> None:
    """Create the restart counters of error classes at 0, so that the first restart is visible."""
    for error in errors:
        RESTARTS.labels(error)


def expect_reading(source: str, topics: Iterable[str]) -> None:
    """Create the counters of topics at 0, so that the first records are visible as an increase."""
    for topic in topics:
        SOURCE_RECORDS.labels(source, topic)
        SOURCE_BYTES.labels(source, topic)


def record_read(source: str, topic: str, records: int, size: int) -> None:
    """Add to the counters of the records read from a topic and of their bytes."""
    SOURCE_RECORDS.labels(source, topic).inc(records)
    SOURCE_BYTES.labels(source, topic).inc(size)


def record_control(records: int) -> None:
    """Count valid records that result in no row, such as heartbeats and tombstones."""
    SOURCE_CONTROL.inc(records)


def record_gap(source: str, topic: str, records: int) -> None:
    """Count records of a topic that were lost before they were read.

    `records` may be an upper bound.
    """
    SOURCE_GAP.labels(source, topic).inc(records)


def record_rows(table: str, kind: str, rows: int) -> None:
    """Count rows written to a table; `kind` is their row kind, such as `+I`."""
    ROWS_WRITTEN.labels(table, kind).inc(rows)


def record_unknown(table: str, cells: int) -> None:
    """Count cells that were stored as null because their value is unknown."""
    UNKNOWN_VALUES.labels(table).inc(cells)


def record_unknown_keys(table: str, rows: int) -> None:
    """Count updates that may have changed the primary key of a row whose old key is unknown."""
    UNKNOWN_KEYS.labels(table).inc(rows)


def record_skipped(table: str, reason: str, rows: int) -> None:
    """Count rows that were left out, by reason.

    `reason` is "covered" if the table has them already, "truncated", "ignored" by options of the
    table, "filtered" by `where`, or "excluded" by routing.
    """
    SKIPPED_ROWS.labels(table, reason).inc(rows)


def record_rejected(records: int, claims: int) -> None:
    """Count rejected records; `claims` of them were rejected in the stages "route" and "schema".

    These claim a table, a column or a name that they cannot have, and have a counter of their own.
    """
    REJECTED.inc(records)
    REFUSED_CLAIMS.inc(claims)


def record_dropped(stage: str, reason: str, records: int) -> None:
    """Count rejected records that were dropped, by the stage and the reason of the rejection."""
    DROPPED_RECORDS.labels(stage, reason).inc(records)


def record_dead_letters(stage: str, reason: str, records: int) -> None:
    """Count rejected records that were stored as dead letters, by stage and reason."""
    DEAD_LETTERS.labels(stage, reason).inc(records)


def record_files(table: str, files: int, size: int) -> None:
    """Add to the counters of the data files written to a table and of their bytes."""
    FILES_WRITTEN.labels(table).inc(files)
    FILE_BYTES_WRITTEN.labels(table).inc(size)


def record_phase(phase: str, seconds: float) -> None:
    """Record the duration of a phase of a micro-batch in seconds."""
    PHASE_SECONDS.labels(phase).observe(seconds)


def record_batch(seconds: float, time_seconds: float) -> None:
    """Record the duration of a micro-batch in seconds, and its end (seconds since 1970)."""
    BATCH_SECONDS.observe(seconds)
    LAST_BATCH.set(time_seconds)


def record_poll(time_seconds: float) -> None:
    """Record the time of a poll of the sources (seconds since 1970)."""
    LAST_POLL.set(time_seconds)


def record_commit(table: str, result: str, attempts: int, seconds: float) -> None:
    """Record the result, the number of attempts and the seconds of a commit to a table.

    `result` is "committed", "replayed" if the table had the batch already, or "empty".
    """
    COMMITS.labels(table, result).inc()
    COMMIT_ATTEMPTS.labels(table).inc(attempts)
    COMMIT_SECONDS.labels(table).observe(seconds)


def record_snapshot(table: str, snapshot_id: int, time_seconds: float) -> None:
    """Set the newest snapshot of a table, and its time (seconds since 1970)."""
    SNAPSHOT_ID.labels(table).set(snapshot_id)
    LAST_COMMIT.labels(table).set(time_seconds)


def record_compaction(table: str, result: str, seconds: float | None) -> None:
    """Record the result of a compaction and its duration in seconds, None if unknown.

    `result` is "compacted", "nothing" (to do), "lost" (to another writer) or "failed".
    """
    COMPACTIONS.labels(table, result).inc()
    if seconds is not None:
        COMPACTION_SECONDS.labels(table).observe(seconds)


def record_compacted_bytes(table: str, read: int, written: int) -> None:
    """Count the bytes of files that a compaction read and wrote."""
    COMPACTION_INPUT.labels(table).inc(read)
    COMPACTION_OUTPUT.labels(table).inc(written)


def record_sorted_runs(table: str, level_0: int, runs: int) -> None:
    """Set the level-0 files of a table, and the sorted runs of its bucket with the most runs."""
    LEVEL_0_FILES.labels(table).set(level_0)
    SORTED_RUNS.labels(table).set(runs)


def record_expiry(table: str, snapshots: int, files: int) -> None:
    """Count expired snapshots, and the files deleted with them."""
    SNAPSHOTS_EXPIRED.labels(table).inc(snapshots)
    FILES_EXPIRED.labels(table).inc(files)


def record_expiry_failure(table: str) -> None:
    """Count a failed expiry."""
    EXPIRY_FAILURES.labels(table).inc()


def record_iceberg_failure(table: str) -> None:
    """Count a snapshot whose Iceberg metadata could not be written."""
    ICEBERG_FAILURES.labels(table).inc()


def record_notice_sent(event_type: str) -> None:
    """Count an event that the webhook has taken."""
    NOTICES_SENT.labels(event_type).inc()


def record_notice_dropped(reason: str) -> None:
    """Count an event that was not delivered: `queue-full`, `refused` or `stopped`."""
    NOTICES_DROPPED.labels(reason).inc()


def record_throttled(cause: str, seconds: float) -> None:
    """Add the seconds that ingest waited for compactions; `cause` is `sorted-runs` or `inline`."""
    THROTTLED_SECONDS.labels(cause).inc(seconds)


def record_reachable(source: str, *, reachable: bool) -> None:
    """Set whether the brokers of a source respond."""
    SOURCE_REACHABLE.labels(source).set(reachable)


def record_index_lookups(lookups: Mapping[str, int]) -> None:
    """Add the cache lookups of bucket and key indexes that the tasks of a batch reported.

    The keys of `lookups` are "hit" and "miss".
    """
    for result, count in lookups.items():
        INDEX_CACHE_LOOKUPS.labels(result).inc(count)


def record_registry(figures: Mapping[str, int]) -> None:
    """Add the counts about schema registries that the tasks of a batch reported.

    The keys of `figures` are "requests", "failures" (of requests), "hits" (of the cache) and
    "outage_ms"; the count of a missing key is 0.
    """
    REGISTRY_REQUESTS.inc(figures.get(REQUESTS, 0))
    REGISTRY_FAILED.inc(figures.get(FAILURES, 0))
    REGISTRY_CACHE_HITS.inc(figures.get(HITS, 0))
    REGISTRY_OUTAGE_SECONDS.inc(figures.get(OUTAGE_MS, 0) / 1000)
