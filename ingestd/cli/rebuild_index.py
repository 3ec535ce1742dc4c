"""`ingestd rebuild-index`: rebuild hash indexes from the keys in data files."""

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
from ingestd.cli.output import AsJson, Row, print_table, say
from ingestd.cli.progress_line import live_count, working
from ingestd.cli.prompts import confirm
from ingestd.cli.table_arguments import TableName, Warehouse, open_table
from ingestd.paimon.spec.paths import java_text
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.metadata_text import partition_name
from ingestd.paimon.table.rewrite.bucket_keys import SharedHash
from ingestd.paimon.table.rewrite.duplicate_keys import Dropped
from ingestd.paimon.table.rewrite.index_repair import IndexRepair, repair_hash_index
from ingestd.wording import counted

MOST_KEYS = 1_000
"""Maximum number of keys in several buckets that are listed; the others are only counted."""

DropDoubled = Annotated[
    bool,
    typer.Option(
        "--drop-doubled", help="Keep only the last written row of each key in several buckets."
    ),
]


def rebuild_index(
    warehouse: Warehouse,
    table: TableName,
    partition: Partitions = None,
    drop_doubled: DropDoubled = False,
    yes: Yes = False,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Rebuild the hash index of a dynamic-bucket table from the keys in its data files.

    Writers may continue; a writer whose commit relied on the replaced index has to plan the commit
    again, which ingestd does by itself (a Flink job has to be restarted). Keys that are in several
    buckets are listed and left in place, with exit code 1. With `--drop-doubled` only the newest
    row of each such key is kept.

    **Examples**

    ingestd rebuild-index /lake shop.orders --dry-run

    ingestd rebuild-index /lake shop.orders --partition dt=2024-01-01 --json

    ingestd rebuild-index /lake shop.orders --drop-doubled
    """
    opened = open_table(warehouse, table)
    partitions = chosen_partitions(opened, partition)
    rows = ", and older rows of keys in several buckets deleted" if drop_doubled else ""
    confirm(f"{table}: the index will be rebuilt{rows}. Continue?", "--yes", given=yes or dry_run)
    files = live_count(partition_filter=partitions)
    with working("repairing the index of", opened, files=files, dry_run=dry_run) as watched:
        done = repair_hash_index(
            watched,
            now_ms=now_ms(),
            partition_filter=partitions,
            dry_run=dry_run,
            drop_doubled=drop_doubled,
        )
    _print_result(opened, done, dry_run=dry_run, as_json=as_json)
    left = done.dropped is None and any(shared_hash.keys for _, shared_hash in done.shared)
    raise typer.Exit(1 if left else 0)


def _print_result(
    table: FileStoreTable, done: IndexRepair, *, dry_run: bool, as_json: bool
) -> None:
    rows: list[Row] = [
        {
            "partition": partition_name(table, repair.partition),
            "bucket": repair.bucket,
            "keys": len(repair.hashes),
            "missing": repair.missing,
            "foreign": repair.foreign,
            "problem": repair.problem,
        }
        for repair in done.wrong
    ]
    keys = _keys(table, done.shared)
    snapshot_id = done.snapshot.id if done.snapshot else None
    document = {
        "table": table.name,
        "buckets": done.buckets,
        "snapshot": snapshot_id,
        "repaired": rows,
        "keys_in_several_buckets": len(keys),
        "keys": keys[:MOST_KEYS],
        "rows_dropped": done.dropped.rows if done.dropped else 0,
    }
    buckets = counted(done.buckets, "bucket")
    text = f"{table.name}: nothing was changed, the index is correct in {buckets}."
    if rows:
        by = "" if snapshot_id is None else f" by snapshot {snapshot_id}"
        text = f"{table.name}: the index of {len(rows)} of {buckets} rebuilt{by}."
    print_result(text, document, as_json=as_json, dry_run=dry_run and bool(rows))
    if as_json:
        return
    if rows:
        shown = ("partition", "bucket", "keys", "missing", "foreign", "problem")
        print_table(rows, shown, none="")
    if keys:
        say(_keys_summary(len(keys), done.dropped))
        print_table(keys[:MOST_KEYS], ("partition", "key", "buckets", "written_to"), none="")


def _keys_summary(keys: int, dropped: Dropped | None) -> str:
    if dropped is not None and dropped.snapshot is not None:
        return (
            f"{counted(keys, 'key')} in several buckets: {counted(dropped.rows, 'older row')} "
            f"dropped from {counted(dropped.files, 'file')} by snapshot {dropped.snapshot.id}."
        )
    return (
        f"{counted(keys, 'key')} in several buckets: readers get a row from each; new rows go to "
        "the bucket of the newest. To remove the others: --drop-doubled, or overwrite the "
        "partition with one row for each key."
    )


def _keys(table: FileStoreTable, shared: Sequence[tuple[bytes, SharedHash]]) -> list[Row]:
    fields = table.schema.key_fields
    return [
        {
            "partition": partition_name(table, partition),
            "key": {
                field.name: java_text(field.name, field.type, value, legacy=False)
                for field, value in zip(fields, key, strict=True)
            },
            "buckets": list(shared_hash.buckets),
            "written_to": shared_hash.owner,
        }
        for partition, shared_hash in shared
        for key in shared_hash.keys
    ]
