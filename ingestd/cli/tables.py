"""`ingestd tables`, `snapshots`, `files` and `schema`: inspect a warehouse."""

import json
from dataclasses import asdict
from typing import Annotated

import typer

from ingestd.cli.output import AsJson, Row, print_json, print_table, say, timestamp_text
from ingestd.cli.table_arguments import (
    SnapshotId,
    TableName,
    Warehouse,
    open_catalog,
    open_table,
)
from ingestd.errors import ConfigError
from ingestd.paimon.catalog.base import Identifier
from ingestd.paimon.spec.manifest import ManifestEntry
from ingestd.paimon.spec.schema import encode_schema
from ingestd.paimon.spec.snapshot import Snapshot
from ingestd.paimon.spec.table_schema import TableSchema
from ingestd.paimon.table.metadata.file_store_scan import live_files
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.metadata_text import partition_name
from ingestd.paimon.table.metadata.schema_manager import schema_ids
from ingestd.paimon.table.metadata.snapshot_manager import (
    latest_snapshot,
    read_snapshot,
    requested_snapshot,
    snapshot_ids,
)


def tables(
    warehouse: Warehouse,
    database: Annotated[str | None, typer.Argument(help="Only this database.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the tables of a warehouse with their keys, buckets and newest snapshots.

    **Examples**

    ingestd tables /lake

    ingestd tables /lake shop --json
    """
    catalog = open_catalog(warehouse)
    identifiers = [
        Identifier(name, table)
        for name in ([database] if database else catalog.list_databases())
        for table in catalog.list_tables(name)
    ]
    rows = [_table_row(catalog.get_table(identifier)) for identifier in identifiers]
    if as_json:
        print_json(rows)
        return
    columns = ("table", "primary_keys", "partition_keys", "bucket", "schema_id", "snapshot_id",
               "records", "committed_at")  # fmt: skip
    print_table(rows, columns, none=f"No tables in {warehouse}.")


def snapshots(warehouse: Warehouse, table: TableName, as_json: AsJson = False) -> None:
    """List the snapshots of a table, oldest first.

    With --json all fields of the snapshot files are shown, and the offsets that each snapshot of
    ingestd covers.

    **Examples**

    ingestd snapshots /lake shop.orders

    ingestd snapshots /lake shop.orders --json
    """
    opened = open_table(warehouse, table)
    ids = snapshot_ids(opened.io, opened.paths)
    rows = [_snapshot_row(read_snapshot(opened.io, opened.paths, id_)) for id_ in ids]
    if as_json:
        print_json(rows)
        return
    columns = ("id", "committed_at", "commit_kind", "commit_user", "commit_identifier",
               "schema_id", "delta_record_count", "total_record_count")  # fmt: skip
    print_table(rows, columns, none=f"{table} has no snapshots.")


def files(
    warehouse: Warehouse,
    table: TableName,
    snapshot: SnapshotId = None,
    as_json: AsJson = False,
) -> None:
    """List the data files that make up a snapshot of a table.

    **Examples**

    ingestd files /lake shop.orders

    ingestd files /lake shop.orders --snapshot 3 --json
    """
    opened = open_table(warehouse, table)
    at = (
        latest_snapshot(opened.io, opened.paths)
        if snapshot is None
        else requested_snapshot(opened.io, opened.paths, snapshot)
    )
    rows = [_file_row(opened, entry) for entry in live_files(opened, at)] if at else []
    rows.sort(key=lambda row: (str(row["partition"]), row["bucket"], row["level"], row["file"]))
    if as_json:
        print_json(rows)
        return
    columns = ("partition", "bucket", "level", "rows", "bytes", "min_sequence_number",
               "max_sequence_number", "schema_id", "file")  # fmt: skip
    print_table(rows, columns, none=f"{table} has no data files.")


def schema(
    warehouse: Warehouse,
    table: TableName,
    schema_id: Annotated[
        int | None, typer.Option("--id", min=0, help="Schema id; default the newest.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the columns, keys and options of a table.

    **Examples**

    ingestd schema /lake shop.orders

    ingestd schema /lake shop.orders --id 0 --json
    """
    opened = open_table(warehouse, table)
    ids = schema_ids(opened.io, opened.paths)
    if schema_id is not None and schema_id not in ids:
        existing = f"schemas {ids[0]} to {ids[-1]} exist"
        raise ConfigError(f"table {opened.name} has no schema {schema_id}; {existing}")
    shown = opened.schema if schema_id is None else opened.schemas(schema_id)
    if as_json:
        print_json(json.loads(encode_schema(shown)))
        return
    _print_schema(opened, shown)


def _table_row(table: FileStoreTable) -> Row:
    snapshot = latest_snapshot(table.io, table.paths)
    return {
        "table": table.name,
        "primary_keys": list(table.schema.primary_keys),
        "partition_keys": list(table.schema.partition_keys),
        "bucket": table.schema.options.get("bucket", "-1"),
        "schema_id": table.schema.id,
        "snapshot_id": snapshot.id if snapshot else None,
        "records": snapshot.total_record_count if snapshot else None,
        "committed_at": timestamp_text(snapshot.time_millis) if snapshot else None,
    }


def _snapshot_row(snapshot: Snapshot) -> Row:
    document = {**asdict(snapshot), "properties": dict(snapshot.properties)}
    return {**document, "committed_at": timestamp_text(snapshot.time_millis)}


def _file_row(table: FileStoreTable, entry: ManifestEntry) -> dict[str, "str | int | None"]:
    file = entry.file
    return {
        "partition": partition_name(table, entry.partition),
        "bucket": entry.bucket,
        "level": file.level,
        "rows": file.row_count,
        "deletes": file.delete_row_count,
        "bytes": file.file_size,
        "min_sequence_number": file.min_sequence_number,
        "max_sequence_number": file.max_sequence_number,
        "schema_id": file.schema_id,
        "created_at": timestamp_text(file.creation_time_ms),
        "file": file.file_name,
    }


def _print_schema(table: FileStoreTable, shown: TableSchema) -> None:
    ids = schema_ids(table.io, table.paths)
    say(f"{table.name}, schema {shown.id} of {ids[0]} to {ids[-1]}")
    rows = [
        {
            "id": str(field.id),
            "column": field.name,
            "type": str(field.type),
            "key": _key_word(field.name, shown),
            "comment": field.description,
        }
        for field in shown.fields
    ]
    print_table(rows, ("id", "column", "type", "key", "comment"), none="no columns")
    options = shown.options
    if options:
        pairs = [{"option": name, "value": options[name]} for name in sorted(options)]
        say("")
        print_table(pairs, ("option", "value"), none="")


def _key_word(column: str, shown: TableSchema) -> str:
    words = []
    if column in shown.primary_keys:
        words.append("primary")
    if column in shown.partition_keys:
        words.append("partition")
    return ", ".join(words)
