"""`ingestd compact`: compact a table, as its triggers require or in full, or sort its files."""

import uuid
from collections.abc import Sequence
from functools import partial
from typing import Annotated, TypeAlias

import typer

from ingestd.cli.groups import DryRun, Partitions, chosen_partitions, now_ms, print_result
from ingestd.cli.output import AsJson, Row, print_table
from ingestd.cli.progress_line import working
from ingestd.cli.table_arguments import TableName, Warehouse, open_table
from ingestd.errors import ConfigError
from ingestd.paimon.spec.options import BucketMode, bucket_mode
from ingestd.paimon.table.compact.table_compact import (
    BucketReport,
    CompactPlan,
    CompactResult,
    compact_table,
    plan_compaction,
)
from ingestd.paimon.table.metadata.file_store_scan import PartitionFilter
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.metadata_text import partition_name
from ingestd.paimon.table.metadata.table_state import load_state
from ingestd.paimon.table.rewrite.postpone_move import count_postponed_rows, move_postponed
from ingestd.paimon.table.rewrite.sort_compact import (
    STRATEGIES,
    SortedPartition,
    SortPlan,
    plan_sort,
    sort_compact,
    sort_fields,
)
from ingestd.wording import counted

_MB = 1 << 20
_Full: TypeAlias = Annotated[
    bool, typer.Option("--full", help="Compact all files, regardless of the triggers.")
]
_OrderBy: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--order-by",
        metavar="COLUMN,...",
        help="Rewrite all files, sorted by these columns; for tables without a key and with "
        "`bucket` = -1.",
    ),
]
_OrderStrategy: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--order-strategy",
        metavar="order|zorder",
        help="Sort by one column after another (the default), or by all at once.",
    ),
]
Order = tuple[tuple[str, ...], str]
"""Columns to sort by, and the strategy: one of `STRATEGIES`."""


def compact(
    warehouse: Warehouse,
    table: TableName,
    partition: Partitions = None,
    full: _Full = False,
    order_by: _OrderBy = None,
    order_strategy: _OrderStrategy = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Compact a table: merge the files of each bucket, and drop older rows of a key.

    Readers see the same rows as before; readers of `first-row` tables and of tables with deletion
    vectors also see the rows written since the last compaction. Ingestion can continue meanwhile.
    Without `--full` each bucket is compacted once, as the table's triggers require. Postponed rows
    are assigned to buckets first.

    **Examples**

    ingestd compact /lake shop.orders

    ingestd compact /lake shop.orders --full --partition dt=2024-01-01 --dry-run --json

    ingestd compact /lake shop.clicks --order-by country,at --order-strategy zorder
    """
    opened = open_table(warehouse, table)
    partitions = chosen_partitions(opened, partition)
    order = chosen_order(order_by, order_strategy, full=full)
    if order is not None:
        sort_table(opened, order, partitions, dry_run=dry_run, as_json=as_json)
    elif dry_run:
        waiting = _waiting(opened, partitions)
        plans = plan_compaction(opened, now_ms=now_ms(), full=full, partition_filter=partitions)
        _print_plans(opened, plans, waiting, as_json=as_json)
    else:
        with working("compacting", opened, files=partial(_inputs, partitions, full)) as watched:
            waiting = _put_into_buckets(watched, partitions)
            result = compact_table(watched, now_ms=now_ms(), full=full, partition_filter=partitions)
        _print_compaction(opened, result, waiting, as_json=as_json)


def _waiting(table: FileStoreTable, partitions: PartitionFilter | None) -> int:
    """Return the number of postponed rows, which a compaction moves into buckets first."""
    if bucket_mode(table.schema) is not BucketMode.POSTPONE:
        return 0
    return count_postponed_rows(table, load_state(table), partitions)


def _inputs(partitions: PartitionFilter | None, full: bool, table: FileStoreTable) -> int:
    """Return the number of files that a compaction reads."""
    plans = plan_compaction(table, now_ms=now_ms(), full=full, partition_filter=partitions)
    return sum(len(plan.inputs) for plan in plans)


def _put_into_buckets(table: FileStoreTable, partitions: PartitionFilter | None) -> int:
    """Move postponed rows into buckets and return their number."""
    waiting = _waiting(table, partitions)
    if waiting:
        state, user = load_state(table), str(uuid.uuid4())
        move_postponed(table, user, state=state, now_ms=now_ms(), partition_filter=partitions)
    return waiting


def _print_plans(
    table: FileStoreTable, plans: Sequence[CompactPlan], waiting: int, *, as_json: bool
) -> None:
    rows: list[Row] = [
        {
            "partition": partition_name(table, plan.bucket.partition),
            "bucket": plan.bucket.bucket,
            "reason": plan.reason,
            "files_before": len(plan.inputs),
            "rows_before": sum(file.row_count for file in plan.inputs),
            "bytes": sum(file.file_size for file in plan.inputs),
        }
        for plan in plans
    ]
    files = sum(len(plan.inputs) for plan in plans)
    print_result(
        f"{table.name}: {_moved(waiting)}{counted(files, 'file')} of "
        f"{counted(len(plans), 'bucket')} compacted.",
        {"table": table.name, "waiting_rows": waiting, "buckets": rows},
        as_json=as_json,
        dry_run=True,
    )
    if not as_json:
        columns = ("partition", "bucket", "reason", "files_before", "rows_before", "bytes")
        print_table(rows, columns, none="Nothing to compact.")


def _moved(waiting: int) -> str:
    return f"{counted(waiting, 'waiting row')} put into buckets; " if waiting else ""


def _print_compaction(
    table: FileStoreTable, result: CompactResult, waiting: int, *, as_json: bool
) -> None:
    rows = [_row(table, report) for report in result.buckets]
    committed = [report for report in result.buckets if not report.lost]
    snapshot_id = result.snapshot.id if result.status == "compacted" and result.snapshot else None
    before = counted(sum(report.files_before for report in committed), "file")
    texts = {
        "nothing": f"{table.name}: nothing to compact.",
        "lost": f"{table.name}: another compaction was first; nothing was changed.",
        "compacted": f"{table.name}: {before} became "
        f"{sum(report.files_after for report in committed)} by snapshot {snapshot_id}, "
        f"{sum(report.bytes_written for report in committed) / _MB:.1f} MB written in "
        f"{result.seconds:.1f} s.",
    }
    document = {
        "table": table.name,
        "status": result.status,
        "waiting_rows": waiting,
        "snapshot": snapshot_id,
        "seconds": round(result.seconds, 3),
        "buckets": rows,
    }
    name, _, what = texts[result.status].partition(": ")
    print_result(f"{name}: {_moved(waiting)}{what}", document, as_json=as_json, dry_run=False)
    if rows and not as_json:
        columns = ("partition", "bucket", "reason", "files_before", "files_after", "upgraded",
                   "rows_before", "rows_after", "changelog_rows", "lost")  # fmt: skip
        print_table(rows, columns, none="")


def _row(table: FileStoreTable, report: BucketReport) -> Row:
    return {
        "partition": partition_name(table, report.partition),
        "bucket": report.bucket,
        "reason": report.reason,
        "files_before": report.files_before,
        "files_after": report.files_after,
        "upgraded": report.upgraded,
        "rows_before": report.rows_before,
        "rows_after": report.rows_after,
        "bytes_read": report.bytes_read,
        "bytes_written": report.bytes_written,
        "changelog_rows": report.changelog_rows,
        "lost": report.lost,
    }


def sort_table(
    table: FileStoreTable,
    order: Order,
    partitions: PartitionFilter | None,
    *,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Sort each of the `partitions` (None: all) by `order`, or only plan it; print the result."""
    columns, strategy = order
    if dry_run:
        sort_fields(table, columns, strategy)
        plans = plan_sort(table, partitions)
        rows = _planned(table, plans)
    else:
        with working("sorting", table) as watched:
            results = sort_compact(
                watched, columns, strategy, clock_ms=now_ms, partition_filter=partitions
            )
            done = list(results)
        plans = [result.plan for result in done]
        rows = _done(table, done)
    files = sum(len(plan.bucket.files) for plan in plans)
    what = (
        f"{counted(files, 'file')} of {counted(len(plans), 'partition')} sorted by "
        f"{', '.join(columns)} ({strategy})"
    )
    document = {
        "table": table.name,
        "order_by": list(columns),
        "order_strategy": strategy,
        "partitions": rows,
    }
    text = f"{table.name}: {what}." if plans else f"{table.name}: there are no files to sort."
    print_result(text, document, as_json=as_json, dry_run=dry_run)
    if rows and not as_json:
        print_table(
            rows, ("partition", "rows", "files_before", "bytes", "files_after", "snapshot"), none=""
        )


def chosen_order(order_by: str | None, strategy: str | None, *, full: bool) -> Order | None:
    """Return the sort order that `--order-by` and `--order-strategy` request, or None for no sort.

    `order_by` are column names separated by commas; without `strategy`, the first of `STRATEGIES`
    is used. Raises ConfigError for a strategy without `order_by`, and for `order_by` together with
    `full`.
    """
    if order_by is None:
        if strategy is not None:
            raise ConfigError("--order-strategy requires --order-by")
        return None
    if full:
        raise ConfigError("--order-by rewrites all files anyway: leave --full out")
    columns = tuple(name.strip() for name in order_by.split(",") if name.strip())
    return columns, strategy or STRATEGIES[0]


def _planned(table: FileStoreTable, plans: Sequence[SortPlan]) -> list[Row]:
    return [
        {
            "partition": partition_name(table, plan.bucket.partition),
            "rows": plan.rows,
            "files_before": len(plan.bucket.files),
            "bytes": plan.bytes,
        }
        for plan in plans
    ]


def _done(table: FileStoreTable, done: Sequence[SortedPartition]) -> list[Row]:
    before = _planned(table, [result.plan for result in done])
    return [
        {
            **row,
            "files_after": len(result.files),
            "snapshot": None if result.snapshot is None else result.snapshot.id,
        }
        for row, result in zip(before, done, strict=True)
    ]
