"""Recount one table: compare its rows with the rows that its Kafka logs produce.

The records up to the positions of the table are read, decoded, routed, written and merged again, by
the same code as in the daemon, into an empty table with the same schema in a temporary warehouse.
"""

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b

from ingestd.errors import SchemaConflictError, UnsupportedError
from ingestd.ingest.key_changes.completion import complete_rows
from ingestd.ingest.recovery.logs import LogPartition, Logs
from ingestd.ingest.recovery.truncate_lookup import truncate_lookup
from ingestd.ingest.schemas.schema_evolution import plan
from ingestd.ingest.settings.context import BatchContext
from ingestd.ingest.settings.error_policy import ErrorPolicy
from ingestd.ingest.settings.pipeline_settings import PipelineSettings
from ingestd.ingest.settings.rejection import RejectionLimits
from ingestd.ingest.stages.batch_result import AttemptResult, merge_outcomes
from ingestd.ingest.stages.decode_stage import Fetch, decode_ranges
from ingestd.ingest.stages.truncates import Truncates
from ingestd.ingest.stages.write_stage import write_slot
from ingestd.ingest.tables.batch_span import BatchSpan, TableStep
from ingestd.ingest.tables.log_positions import LogOffsets, TopicKeys, by_name
from ingestd.ingest.tables.managed_table import ManagedTable
from ingestd.ingest.tables.table_registry import TableRegistry
from ingestd.ingest.values.source_points import NO_POINT
from ingestd.kafka.offset_ranges import BatchOffsets, OffsetRange, Offsets, cut
from ingestd.paimon.catalog.filesystem import FilesystemCatalog
from ingestd.paimon.io.file_io import LocalFileIO
from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.spec.snapshot import CARRIED_OPTION
from ingestd.paimon.spec.table_schema import TableSchema
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.read.table_read import iter_buckets

_MAX_ATTEMPTS = 8
_POSTPONED = -2
_DROPPED_OPTIONS = frozenset(
    {CARRIED_OPTION, honoured.CHANGELOG_PRODUCER.name, honoured.DELETION_VECTORS.name}
)
"""Table options that do not affect the merged rows of a table."""
SAMPLES = 5
_DIGEST_BYTES = 12
_TEXT = 80


@dataclass(frozen=True, slots=True)
class RowDifference:
    """The numbers of rows of two tables, and of their differences.

    `expected` and `found` are the numbers of rows of the expected and the actual table. `missing`
    rows are only in the expected table, and `extra` rows only in the actual table; `different` rows
    have the same key and different values. `samples` are (kind, text) pairs with the first keys (or
    rows, without a key) of each kind of difference.
    """

    expected: int = 0
    found: int = 0
    missing: int = 0
    extra: int = 0
    different: int = 0
    samples: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Recount:
    """The result of a recount: how the rows of a table differ from the rows of its logs.

    `records` is the number of records that were read, and `rejected` the number of rejected
    records. If `complete` is false, the logs no longer have all records that the table covers. In
    this case extra rows do not indicate an error, and some values of a row may be from expired
    records.
    """

    table: str
    records: int
    rejected: int
    complete: bool
    rows: RowDifference


@dataclass(frozen=True, slots=True)
class RecountSpan:
    """The offset ranges that a recount replays: from `start` up to, but not including, `end`.

    `complete` states whether these are all offsets that the table covers.
    """

    start: Offsets
    end: Offsets
    complete: bool


def covered_span(
    name: str, tables: Mapping[str, ManagedTable], origin: LogOffsets, logs: Logs
) -> RecountSpan:
    """Return the offset ranges of the covered records of the table `name` that logs still have.

    `tables` are all tables of the pipeline, and `origin` the offsets from which it reads. Logs
    whose rows are only in other tables are excluded; logs without rows in any table are included.
    """
    managed = tables[name]
    others = (other.progress for table, other in tables.items() if table != name)
    others_keys = {key for progress in others if progress for key in progress.topic_keys}
    own = managed.progress.topic_keys if managed.progress else frozenset()
    keys = {
        source_topic: key
        for source_topic, key in logs.keys.items()
        if key in own or key not in others_keys
    }
    end = by_name(managed.covered, keys)
    start: dict[str, dict[str, dict[int, int]]] = {}
    complete = own <= set(logs.names)
    for (source, topic), key in keys.items():
        for partition, until in end.get(source, {}).get(topic, {}).items():
            state = logs.states.get(LogPartition(key, partition))
            first = origin.get(key, {}).get(partition, 0)
            begin = until if state is None else min(max(first, state.begin), until)
            complete = complete and (begin == first or until <= first)
            start.setdefault(source, {}).setdefault(topic, {})[partition] = begin
    return RecountSpan(start, end, complete)


class Replay:
    """A replay of the records of a table's logs into an empty table with the same name and schema.

    `settings` are the result of `scratch_settings`. `fetch` reads an offset range; None reads it
    like the daemon. `records` and `rejected` are the numbers of records that were read and
    rejected.
    """

    def __init__(
        self,
        settings: PipelineSettings,
        name: str,
        schema: TableSchema,
        fetch: Fetch | None = None,
    ) -> None:
        self._name = name
        self._fetch = fetch
        self._settings = settings
        io = LocalFileIO(sync=False)
        catalog = FilesystemCatalog(settings.warehouse, io)
        self._registry = TableRegistry(settings, catalog, io, _now_ms)
        self._registry.open()
        self._registry.ensure(name, _plain(schema))
        self.records = 0
        self.rejected = 0

    @property
    def table(self) -> FileStoreTable:
        """The table that contains the replayed rows."""
        return self._registry.tables[self._name].table

    def run(self, span: RecountSpan, keys: TopicKeys) -> None:
        """Read a span in batches; `keys` are the topic keys of its topics.

        Raises LogChangedError if offsets expire during the replay, SourceError if brokers do not
        respond, SchemaConflictError if the schema still changes after several attempts, and the
        errors of `decode_ranges` and `write_slot`.
        """
        self._registry.keys = keys
        reached = span.start
        while reached != span.end:
            until = cut(reached, span.end, self._settings.limits.small_batch_records)
            self._batch(BatchOffsets(reached, until))
            reached = until

    def _batch(self, offsets: BatchOffsets) -> None:
        span = self._registry.begin(offsets)
        truncates = Truncates(truncate_lookup(self._registry, self._settings, offsets.until))
        result = self._run_attempts(offsets.ranges(), truncates)
        self.records += sum(result.counts.records.values())
        self.rejected += sum(result.counts.rejected.values())
        self._commit(result, span, truncates)
        self._registry.finish(span)

    def _run_attempts(self, ranges: Sequence[OffsetRange], truncates: Truncates) -> AttemptResult:
        for _ in range(_MAX_ATTEMPTS):
            context = self._registry.context(1, truncates.accepted)
            context = replace(context, refused_truncates=truncates.refused)
            result = self._attempt(context, truncates.reading(ranges))
            if not result.runs_again:
                return result
            truncates.settle(context, result)
            evolution = plan(context, result.discoveries, _now_ms())
            for name, changes in evolution.changes.items():
                self._registry.alter(name, changes)
        raise SchemaConflictError(
            f"table {self._name} still changes its schema after {_MAX_ATTEMPTS} attempts: "
            f"{'; '.join(map(str, result.discoveries[:3]))}"
        )

    def _attempt(self, context: BatchContext, ranges: Iterable[OffsetRange]) -> AttemptResult:
        pairs = decode_ranges(context, ranges, fetch=self._fetch)
        blobs = (blob for _, blob in pairs)
        return merge_outcomes(context, [write_slot(context, blobs, complete_rows)])

    def _commit(self, result: AttemptResult, span: BatchSpan, truncates: Truncates) -> None:
        names = sorted({*result.messages, *truncates.accepted})
        self._registry.mark(names)
        for name in names:
            topics = result.topics.get(name, frozenset())
            step = TableStep(
                topic_keys=frozenset(self._registry.keys[topic] for topic in topics),
                source_tables=result.source_tables.get(name, frozenset()),
                truncated=truncates.lasting_point(name, result),
                reached=result.reached.get(name, NO_POINT),
            )
            messages = result.messages.get(name, ())
            is_truncated = name in truncates.accepted
            self._registry.commit(name, messages, span, step, overwrite=is_truncated)


def recount(
    replay: Replay, name: str, managed: ManagedTable, span: RecountSpan, keys: TopicKeys
) -> Recount:
    """Replay the span of the table `name`, and compare the resulting rows with its rows.

    `managed` is the open table, and `keys` are the topic keys of the topics of the span. Raises the
    errors of `Replay.run` and of reading the table.
    """
    replay.run(span, keys)
    snapshot = managed.state.snapshot
    rows = compare_rows(replay.table, managed.table, snapshot.id if snapshot else None)
    return Recount(name, replay.records, replay.rejected, span.complete, rows)


def check_countable(table: FileStoreTable) -> None:
    """Raise UnsupportedError if rows of a table may be readable only after a compaction."""
    options = table.schema.options
    if honoured.BUCKET.of(options) == _POSTPONED:
        what = "postponed buckets (bucket -2)"
    elif honoured.MERGE_ENGINE.of(options) == "first-row":
        what = "merge engine first-row"
    elif honoured.DELETION_VECTORS.of(options):
        what = "deletion vectors"
    else:
        return
    raise UnsupportedError(
        f"table {table.name} has {what}: rows that are not compacted yet are not read, so they "
        "cannot be compared with the log; leave out --recount"
    )


def scratch_settings(settings: PipelineSettings, table: str, folder: str) -> PipelineSettings:
    """Return the settings for a replay into one table, in a filesystem warehouse at `folder`.

    Rows of other tables are dropped. Rejected records become dead letters in that warehouse,
    without a limit, whatever the error policy of the pipeline is.
    """
    routing = replace(settings.routing, only_target=table, unmatched="skip")
    return replace(
        settings,
        warehouse=folder,
        metastore="filesystem",
        catalog_options={},
        routing=routing,
        dead_letter_topic=None,
        error_policy=ErrorPolicy(),
        rejection_limits=RejectionLimits(),
        formerly=(),
    )


def _now_ms() -> int:
    return int(time.time() * 1000)


def _plain(schema: TableSchema) -> TableSchema:
    options = {
        name: value for name, value in schema.options.items() if name not in _DROPPED_OPTIONS
    }
    return replace(schema, id=0, options=options)


def compare_rows(
    expected: FileStoreTable, actual: FileStoreTable, snapshot_id: int | None
) -> RowDifference:
    """Compare the rows of two tables: `expected` at its newest snapshot, `actual` at `snapshot_id`.

    If `snapshot_id` is None, `actual` counts as empty. Only columns of `actual` are compared. Uses
    about 100 bytes of memory for each expected row. Raises the errors of reading the tables.
    """
    columns = [field.name for field in actual.schema.fields]
    keys = list(actual.schema.primary_keys)
    unmatched = Counter(_rows(expected, columns, keys, None))
    by_key = dict(list(unmatched)) if keys else {}
    counts: Counter[str] = Counter(expected=unmatched.total())
    samples: list[tuple[str, str]] = []

    def note(kind: str, key: str, count: int = 1) -> None:
        counts[kind] += count
        if sum(known_kind == kind for known_kind, _ in samples) < SAMPLES:
            samples.append((kind, key))

    for row in () if snapshot_id is None else _rows(actual, columns, keys, snapshot_id):
        counts["found"] += 1
        if unmatched[row] > 0:
            unmatched[row] -= 1
            by_key.pop(row[0], None)
        elif row[0] in by_key:
            note("different", row[0])
            unmatched[row[0], by_key.pop(row[0])] -= 1
        else:
            note("extra", row[0])
    for row, count in (+unmatched).items():
        note("missing", row[0], count)
    return RowDifference(**counts, samples=tuple(samples))


def _rows(
    table: FileStoreTable, columns: list[str], keys: list[str], snapshot_id: int | None
) -> Iterator[tuple[str, bytes]]:
    """Yield the key of each row, or the start of a row without a key, as text; and its digest."""
    for bucket in iter_buckets(table, snapshot_id=snapshot_id, columns=columns):
        for row in bucket.select(columns).to_pylist():
            text = repr(row)
            key = repr({name: row[name] for name in keys}) if keys else text[:_TEXT]
            yield key, blake2b(text.encode(), digest_size=_DIGEST_BYTES).digest()
