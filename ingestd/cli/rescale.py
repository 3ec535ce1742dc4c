"""`ingestd rescale`: change the number of buckets of a table or of partitions."""

from collections.abc import Sequence
from typing import Annotated

import typer

from ingestd.cli.groups import (
    DryRun,
    Partitions,
    Yes,
    chosen_partitions,
    now_ms,
    print_result,
)
from ingestd.cli.output import AsJson, Row, print_table
from ingestd.cli.progress_line import working
from ingestd.cli.prompts import confirm
from ingestd.cli.table_arguments import TableName, Warehouse, open_catalog, open_table
from ingestd.errors import ConfigError
from ingestd.paimon.catalog.base import Identifier
from ingestd.paimon.spec.options import BucketMode, bucket_mode
from ingestd.paimon.spec.paths import MAIN_BRANCH
from ingestd.paimon.spec.schema_change import SetOption
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.metadata_text import partition_name
from ingestd.paimon.table.rewrite.rescale import (
    PartitionRescale,
    Rescaled,
    plan_rescale,
    refuse_rescale,
)
from ingestd.paimon.table.rewrite.rescale import (
    rescale as rescale_table,
)
from ingestd.wording import counted

_LEFT = (
    "Partitions that were rewritten stay so; the others can be read, but not written to until the "
    "same command has been run again."
)


def rescale(
    warehouse: Warehouse,
    table: TableName,
    buckets: Annotated[int, typer.Option("--buckets", help="New number of buckets.")],
    partition: Partitions = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Rewrite a table with another number of buckets; stop its writers first.

    Sets the option `bucket` and rewrites one partition after another. Partitions that are not
    rewritten yet can be read but not written: after an interrupt, or with `--partition`, run the
    command again for them. If a concurrent commit changes a partition, the rescale of this
    partition fails, without loss. Old files are deleted when the older snapshots expire.

    **Examples**

    ingestd rescale /lake shop.orders --buckets 16 --dry-run

    ingestd rescale /lake shop.orders --buckets 16

    ingestd rescale /lake shop.orders --buckets 16 --partition dt=2024-01-01 --json
    """
    opened = open_table(warehouse, table)
    refuse_rescale(opened, buckets)
    partitions = chosen_partitions(opened, partition)
    plans = plan_rescale(opened, buckets, partitions)
    done: list[Rescaled] = []
    if not dry_run:
        files = sum(len(plan.entries) for plan in plans)
        result = f"{counted(files, 'file')} will be rewritten into {counted(buckets, 'bucket')}"
        confirm(f"{table}: {result}. Writers must be stopped. Continue?", "--yes", given=yes)
        opened = _with_option(warehouse, table, opened, buckets)
        with working("rescaling", opened, left=_LEFT, files=lambda _: files) as watched:
            done.extend(
                rescale_table(watched, buckets, clock_ms=now_ms, partition_filter=partitions)
            )
    _print_result(opened, buckets, plans, done, dry_run=dry_run, as_json=as_json)


def _with_option(warehouse: str, name: str, table: FileStoreTable, buckets: int) -> FileStoreTable:
    """Set the option `bucket` of a table to `buckets`, if necessary; return the table.

    A table with postponed buckets is not changed. Raises ConfigError for a branch.
    """
    if bucket_mode(table.schema) is BucketMode.POSTPONE or table.options.bucket == buckets:
        return table
    if table.branch != MAIN_BRANCH:
        raise ConfigError(f"table {name}: option 'bucket' of a branch cannot be changed")
    catalog = open_catalog(warehouse)
    return catalog.alter_table(
        Identifier.parse(name), [SetOption("bucket", str(buckets))], now_ms()
    )


def _print_result(
    table: FileStoreTable,
    buckets: int,
    plans: Sequence[PartitionRescale],
    done: Sequence[Rescaled],
    *,
    dry_run: bool,
    as_json: bool,
) -> None:
    rows: list[Row] = [
        {
            "partition": partition_name(table, plan.partition),
            "buckets_before": plan.buckets,
            "files": len(plan.entries),
            "rows": plan.rows,
            "bytes": plan.bytes,
        }
        for plan in plans
    ]
    snapshots = [result.snapshot.id for result in done if result.snapshot is not None]
    document = {
        "table": table.name,
        "buckets": buckets,
        "partitions": rows,
        "snapshots": snapshots,
        "rows_written": sum(result.rows for result in done),
        "files_written": sum(result.files for result in done),
    }
    text = f"{table.name}: everything is in {counted(buckets, 'bucket')} already."
    if rows:
        what = (
            "the table" if not table.schema.partition_keys else f"{counted(len(rows), 'partition')}"
        )
        by = f" by snapshots {', '.join(map(str, snapshots))}" if snapshots else ""
        text = f"{table.name}: {what} rewritten into {counted(buckets, 'bucket')}{by}."
    print_result(text, document, as_json=as_json, dry_run=dry_run and bool(rows))
    if rows and not as_json:
        print_table(rows, ("partition", "buckets_before", "files", "rows", "bytes"), none="")
