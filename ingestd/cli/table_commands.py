"""`ingestd truncate`, `drop-partition` and `analyze`."""

from collections.abc import Sequence
from typing import Annotated, TypeAlias

import typer

from ingestd.cli.groups import DryRun, Partitions, Yes, now_ms, print_result
from ingestd.cli.output import AsJson, print_json, print_table, say
from ingestd.cli.progress_line import live_count, working
from ingestd.cli.prompts import confirm
from ingestd.cli.table_arguments import TableName, Warehouse, open_table
from ingestd.paimon.iceberg.iceberg_sync import update_iceberg
from ingestd.paimon.table.commit.overwrite import (
    drop_partitions,
    replaced_partitions,
    truncate_table,
)
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.metadata_text import partition_name
from ingestd.paimon.table.metadata.partition_spec import parse_partition_spec, partition_filter
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot
from ingestd.paimon.table.system.analyze import analyze_table
from ingestd.wording import counted

_Partitions: TypeAlias = Annotated[
    list[str],
    typer.Option(
        "--partition",
        metavar="COLUMN=VALUE,...",
        help="The partitions to drop, by all or some of their columns; repeatable.",
    ),
]


def truncate(
    warehouse: Warehouse,
    table: TableName,
    partition: Partitions = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Empty a table, or partitions of it, in one snapshot; older snapshots keep their rows.

    **Examples**

    ingestd truncate /lake shop.orders --dry-run

    ingestd truncate /lake shop.orders --partition dt=2024-01-01
    """
    opened = open_table(warehouse, table)
    _empty(opened, partition or [], yes=yes, dry_run=dry_run, as_json=as_json)


def drop_partition(
    warehouse: Warehouse,
    table: TableName,
    partition: _Partitions,
    yes: Yes = False,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Drop partitions, in one snapshot; older snapshots keep their rows.

    `--partition` names all or some of the partition columns; `__DEFAULT_PARTITION__` is null.

    **Examples**

    ingestd drop-partition /lake shop.orders --partition dt=2024-01-01

    ingestd drop-partition /lake shop.orders --partition dt=2024-01-01,hr=3 --dry-run
    """
    _empty(open_table(warehouse, table), partition, yes=yes, dry_run=dry_run, as_json=as_json)


def analyze(
    warehouse: Warehouse,
    table: TableName,
    columns: Annotated[
        str | None, typer.Option("--columns", help="Only these columns, with commas between them.")
    ] = None,
    no_columns: Annotated[
        bool, typer.Option("--no-columns", help="Only the number of rows and their size.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Compute statistics of a table and store them, for the planners of query engines.

    The statistics are the rows, the bytes, and for each column: distinct values, minimum, maximum,
    nulls, lengths. `ingestd read WAREHOUSE 'DB.TABLE$statistics'` prints them.

    **Examples**

    ingestd analyze /lake shop.orders

    ingestd analyze /lake shop.orders --columns id,amount --json
    """
    opened = open_table(warehouse, table)
    names = [] if no_columns else None if columns is None else columns.split(",")
    with working("analyzing", opened, files=live_count()) as watched:
        statistics, result = analyze_table(watched, names, now_ms=now_ms())
    snapshot_id = result.snapshot.id if result.snapshot else None
    if as_json:
        print_json({**statistics.document(), "snapshot": snapshot_id})
        return
    say(
        f"{table}: {counted(statistics.merged_record_count or 0, 'row')} in about "
        f"{counted(statistics.merged_record_size or 0, 'byte')} as of snapshot "
        f"{statistics.snapshot_id}; stored by snapshot {snapshot_id}."
    )
    rows = [{"column": column.name, **column.document()} for column in statistics.columns]
    shown = ("column", "distinctCount", "min", "max", "nullCount", "avgLen", "maxLen")
    print_table(rows, shown, none="No columns.", titles=False)


def _empty(
    table: FileStoreTable, partitions: Sequence[str], *, yes: bool, dry_run: bool, as_json: bool
) -> None:
    specs = [parse_partition_spec(table, text) for text in partitions]
    snapshot = latest_snapshot(table.io, table.paths)
    partitions_dropped = replaced_partitions(
        table, snapshot, partition_filter(table, specs) if specs else None
    )
    rows = [
        {
            "partition": partition_name(table, dropped.partition),
            "files": dropped.files,
            "rows": dropped.rows,
            "bytes": dropped.bytes,
        }
        for dropped in partitions_dropped
    ]
    files = sum(dropped.files for dropped in partitions_dropped)
    count = sum(dropped.rows for dropped in partitions_dropped)
    content = f"{counted(files, 'file')} with {counted(count, 'stored row')}"
    snapshot_id: int | None = None
    if not dry_run:
        confirm(f"{table.name}: {content} will be taken out. Continue?", "--yes", given=yes)
        now = now_ms()
        result = (
            drop_partitions(table, specs, now_ms=now)
            if specs
            else truncate_table(table, now_ms=now)
        )
        snapshot_id = result.snapshot.id if result.snapshot else None
        update_iceberg(table)
    text = f"{table.name}: {content} taken out"
    print_result(
        text + (f" by snapshot {snapshot_id}." if snapshot_id else "."),
        {"table": table.name, "snapshot": snapshot_id, "partitions": rows},
        as_json=as_json,
        dry_run=dry_run,
    )
    if not as_json and table.schema.partition_keys:
        print_table(rows, ("partition", "files", "rows", "bytes"), none="No such partition.")
