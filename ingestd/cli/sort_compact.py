"""`ingestd compact --order-by`: sort the files of a table."""

from collections.abc import Sequence

from ingestd.cli.groups import now_ms, tell
from ingestd.cli.output import Row, counted, print_table
from ingestd.cli.progress import working
from ingestd.errors import ConfigError
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.scan import PartitionFilter
from ingestd.paimon.table.metadata.texts import partition_name
from ingestd.paimon.table.rewrite.sort_compact import (
    STRATEGIES,
    Sorted,
    SortPlan,
    plan_sort,
    sort_compact,
    sort_fields,
)

Order = tuple[tuple[str, ...], str]
"""Columns to sort by, and the strategy."""


def sort_table(
    table: FileStoreTable,
    order: Order,
    wanted: PartitionFilter | None,
    *,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Sort the partitions of a table."""
    columns, strategy = order
    if dry_run:
        sort_fields(table, columns, strategy)
        plans = plan_sort(table, wanted)
        rows = _planned(table, plans)
    else:
        with working("sorting", table) as watched:
            found = sort_compact(
                watched, columns, strategy, clock_ms=now_ms, partition_filter=wanted
            )
            done = list(found)
        plans = [one.plan for one in done]
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
    tell(text, document, as_json=as_json, dry_run=dry_run)
    if rows and not as_json:
        print_table(
            rows, ("partition", "rows", "files_before", "bytes", "files_after", "snapshot"), none=""
        )


def chosen_order(order_by: str | None, strategy: str | None, *, full: bool) -> Order | None:
    """Return the order of the options, None for no sorting. Raises ConfigError for a conflict."""
    if order_by is None:
        if strategy is not None:
            raise ConfigError("--order-strategy says how to sort: say by what with --order-by")
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


def _done(table: FileStoreTable, done: Sequence[Sorted]) -> list[Row]:
    before = _planned(table, [one.plan for one in done])
    return [
        {
            **row,
            "files_after": len(one.files),
            "snapshot": None if one.snapshot is None else one.snapshot.id,
        }
        for row, one in zip(before, done, strict=True)
    ]
