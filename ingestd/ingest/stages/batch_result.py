"""The results of write tasks, and their combination into the result of a batch."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import TypeVar

from ingestd.ingest.rows.blobs import Report
from ingestd.ingest.rows.router import admitted_source_tables
from ingestd.ingest.schemas.discovery import Discovery, TableTruncate, in_order
from ingestd.ingest.settings.context import BatchContext, QualifiedSourceTable
from ingestd.ingest.stages.findings import MAX_SAMPLES
from ingestd.ingest.values.batch_times import BatchTimes
from ingestd.ingest.values.counts import Counts, RejectedSample
from ingestd.ingest.values.source_points import NO_POINT, SourcePoint, later_point
from ingestd.kafka.isolated_fetch import Unreadable
from ingestd.kafka.offset_ranges import SourcePartition
from ingestd.paimon.table.write.commit_message import CommitMessage

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class WriteOutcome:
    """The result of a write task: commit messages by table, reports of decode tasks, and counts."""

    messages: Mapping[str, tuple[CommitMessage, ...]] = field(default_factory=dict)
    reports: tuple[Report, ...] = ()
    counts: Counts = field(default_factory=Counts)


@dataclass(frozen=True, slots=True)
class AttemptResult:
    """The combined result of all tasks of one run of a batch.

    If `runs_again`, nothing is committed, and the batch is run again. Before that, the driver
    evolves schemas by the `discoveries` (new tables, and new or wider columns) and decides on the
    `truncates`; the contexts of truncated tables are replaced by `TableContext.truncated`, and the
    owners of `contested` tables are set in `BatchContext.owners`. A table is contested if source
    tables claim it that must not share it; its entry has those that may keep it. If ranges are
    `unreadable`, the batch must run again without them.

    Otherwise `messages` has an entry for each table with rows, and truncated tables are committed
    with `overwrite`. `source_tables`, `topics` and `reached` (the newest source position) are the
    input of the progress records, by table. `last_records` maps topic partitions to offset and
    checksum of the last record that was read. `rejected` are samples for the log, `times` the event
    times of this run.
    """

    runs_again: bool
    messages: Mapping[str, tuple[CommitMessage, ...]]
    discoveries: tuple[Discovery, ...]
    truncates: tuple[TableTruncate, ...]
    source_tables: Mapping[str, frozenset[QualifiedSourceTable]]
    topics: Mapping[str, frozenset[tuple[str, str]]]
    reached: Mapping[str, SourcePoint]
    counts: Counts
    rejected: tuple[RejectedSample, ...]
    times: BatchTimes = field(default_factory=BatchTimes)
    last_records: Mapping[SourcePartition, tuple[int, int]] = field(default_factory=dict)
    contested: Mapping[str, frozenset[QualifiedSourceTable]] = field(default_factory=dict)
    unreadable: tuple[Unreadable, ...] = ()


def merge_outcomes(context: BatchContext, outcomes: Iterable[WriteOutcome]) -> AttemptResult:
    """Combine the results of all tasks of one run of a batch.

    If several source tables claim a table that they must not share, it is `contested`: the batch
    runs again, with discoveries and truncates only of the source tables that the table accepts.
    """
    messages: dict[str, tuple[CommitMessage, ...]] = {}
    counts, times = Counts(), BatchTimes()
    reports: list[Report] = []
    for outcome in outcomes:
        counts.add(outcome.counts)
        reports.extend(outcome.reports)
        for table, written in outcome.messages.items():
            messages[table] = messages.get(table, ()) + written
    topics: dict[str, frozenset[tuple[str, str]]] = {}
    for report in reports:
        counts.add(report.counts)
        times.add(report.times)
        _unite(topics, report.topics)
    owners = _owners(context, claims := _claims(reports))
    contested = {table: own for table, own in owners.items() if own < claims[table].keys()}

    def is_admitted(event: Discovery | TableTruncate) -> bool:
        return event.source_table in owners[event.table]

    return AttemptResult(
        runs_again=bool(contested) or any(report.runs_again for report in reports),
        messages=messages,
        discoveries=in_order(filter(is_admitted, _all(r.discoveries for r in reports))),
        truncates=tuple(filter(is_admitted, _all(r.truncates for r in reports))),
        source_tables=_source_tables(reports, owners),
        topics=topics,
        reached=_reached(reports),
        counts=counts,
        rejected=_all(report.rejected for report in reports)[:MAX_SAMPLES],
        times=times,
        last_records=_last_records(reports),
        unreadable=_all(report.unreadable for report in reports),
        contested=contested,
    )


def _all(parts: Iterable[tuple[_T, ...]]) -> tuple[_T, ...]:
    return tuple(chain.from_iterable(parts))


def _claims(reports: Iterable[Report]) -> dict[str, Counter[QualifiedSourceTable]]:
    """Return the source tables of each target, with their row counts."""
    claims: dict[str, Counter[QualifiedSourceTable]] = {}
    for report in reports:
        for table, row_counts in report.source_tables.items():
            claims.setdefault(table, Counter()).update(row_counts)
        others = [(discovery.table, discovery.source_table) for discovery in report.discoveries]
        others += [(truncate.table, truncate.source_table) for truncate in report.truncates]
        for table, source_table in others:
            claims.setdefault(table, Counter())[source_table] += 0
    return claims


def _owners(
    context: BatchContext, claims: Mapping[str, Mapping[QualifiedSourceTable, int]]
) -> dict[str, frozenset[QualifiedSourceTable]]:
    """Return the source tables that each target accepts."""
    return {
        table: admitted_source_tables(context.routing, table, context.owners_of(table), row_counts)
        for table, row_counts in claims.items()
    }


def _source_tables(
    reports: Iterable[Report], owners: Mapping[str, frozenset[QualifiedSourceTable]]
) -> dict[str, frozenset[QualifiedSourceTable]]:
    """Return, for each target, the source tables of its rows that it accepts (`owners`)."""
    source_tables: dict[str, frozenset[QualifiedSourceTable]] = {}
    for report in reports:
        _unite(
            source_tables,
            {
                name: owners[name].intersection(own_source_tables)
                for name, own_source_tables in report.source_tables.items()
            },
        )
    return source_tables


def _unite(into: dict[str, frozenset[_T]], more: Mapping[str, frozenset[_T]]) -> None:
    for table, items in more.items():
        into[table] = into.get(table, frozenset()) | items


def _last_records(reports: Iterable[Report]) -> dict[SourcePartition, tuple[int, int]]:
    last: dict[SourcePartition, tuple[int, int]] = {}
    for report in reports:
        for where, record in report.last_records.items():
            last[where] = max(record, last.get(where, record))
    return last


def _reached(reports: Iterable[Report]) -> dict[str, SourcePoint]:
    reached: dict[str, SourcePoint] = {}
    for report in reports:
        for table, point in report.reached.items():
            reached[table] = later_point(reached.get(table, NO_POINT), point)
    return reached
