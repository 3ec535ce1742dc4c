"""`ingestd rewrite-file-index`: write the file indexes of data files that are there already."""

from collections.abc import Sequence

from ingestd.cli.groups import DryRun, Partitions, chosen_partitions, now_ms, print_result
from ingestd.cli.output import AsJson, Row, print_table
from ingestd.cli.progress_line import live_count, working
from ingestd.cli.table_arguments import TableName, Warehouse, open_table
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.metadata_text import partition_name
from ingestd.paimon.table.rewrite.file_index_rewrite import (
    IndexedPartition,
    rewrite_file_indexes,
)
from ingestd.wording import counted


def rewrite_file_index(
    warehouse: Warehouse,
    table: TableName,
    partition: Partitions = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Write the file indexes that the options of a table require, for its existing data files.

    New files get their indexes when they are written. After an option such as
    `file-index.bloom-filter.columns` was set or changed to other columns, this command writes the
    indexes of older files. Files that have the required indexes are left as they are. Writers may
    continue.

    **Examples**

    ingestd rewrite-file-index /lake shop.orders --dry-run

    ingestd rewrite-file-index /lake shop.orders --partition dt=2024-01-01 --json
    """
    opened = open_table(warehouse, table)
    partitions = chosen_partitions(opened, partition)
    files = live_count(partition_filter=partitions)
    with working("writing file indexes of", opened, files=files, dry_run=dry_run) as watched:
        done = list(
            rewrite_file_indexes(
                watched, now_ms=now_ms(), partition_filter=partitions, dry_run=dry_run
            )
        )
    _print_result(opened, done, dry_run=dry_run, as_json=as_json)


def _print_result(
    table: FileStoreTable, done: Sequence[IndexedPartition], *, dry_run: bool, as_json: bool
) -> None:
    rows: list[Row] = [
        {
            "partition": partition_name(table, indexed.partition),
            "files": indexed.files,
            "indexed": indexed.indexed,
            "snapshot": indexed.snapshot.id if indexed.snapshot else None,
        }
        for indexed in done
    ]
    files = counted(sum(indexed.indexed for indexed in done), "file")
    text = f"{table.name}: file indexes of {files} written."
    if not done:
        text = f"{table.name}: nothing was changed, all files have their indexes."
    document = {"table": table.name, "partitions": rows}
    print_result(text, document, as_json=as_json, dry_run=dry_run and bool(done))
    if rows and not as_json:
        print_table(rows, ("partition", "files", "indexed", "snapshot"), none="")
