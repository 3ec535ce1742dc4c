"""`ingestd tag`: tags, which keep snapshots readable."""

from typing import Annotated, TypeAlias

import typer

from ingestd.cli.expire import tags as expire_tags
from ingestd.cli.groups import DryRun, chosen_snapshot, group, now_ms, print_result
from ingestd.cli.output import AsJson, print_json, print_table, timestamp_text
from ingestd.cli.table_arguments import SnapshotId, TableName, Warehouse, open_table
from ingestd.paimon.iceberg.iceberg_sync import update_iceberg
from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.time_travel import tagged_snapshot
from ingestd.paimon.table.retention.auto_tags import make_auto_tags
from ingestd.paimon.table.retention.tags import create_tag, delete_tags, plan_tag_deletion
from ingestd.paimon.table.system.history_tables import tag_rows
from ingestd.wording import counted

_Name: TypeAlias = Annotated[str, typer.Argument(metavar="TAG", help="The tag.")]
_Retained: TypeAlias = Annotated[
    str | None, typer.Option("--time-retained", help="Time to keep the tag, as in `7 d`.")
]

tag = group(
    "tag",
    "Create, list and delete tags: names that keep snapshots readable after they expire.",
    "ingestd tag create /lake shop.orders 2024-01-31 --time-retained '30 d'",
    "ingestd tag list /lake shop.orders",
)


@tag.command("create")
def create(
    warehouse: Warehouse,
    table: TableName,
    name: _Name,
    snapshot: SnapshotId = None,
    time_retained: _Retained = None,
    replace: Annotated[bool, typer.Option("--replace", help="Move an existing tag.")] = False,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Create a tag of a snapshot, by default the newest.

    --time-retained defaults to the table's option `tag.default-time-retained`.

    **Examples**

    ingestd tag create /lake shop.orders 2024-01-31

    ingestd tag create /lake shop.orders release --snapshot 7 --time-retained "30 d"
    """
    opened = open_table(warehouse, table)
    at = chosen_snapshot(opened, snapshot)
    retained = _retained(opened, time_retained)
    if not dry_run:
        create_tag(opened, name, at, retained_ms=retained, now_ms=now_ms(), must_exist=replace)
        update_iceberg(opened, tags=True)
    document = {"table": table, "tag": name, "snapshot": at.id, "time_retained_ms": retained}
    text = f"{table}: tag '{name}' at snapshot {at.id}."
    print_result(text, document, as_json=as_json, dry_run=dry_run)


@tag.command("list")
def list_tags(warehouse: Warehouse, table: TableName, as_json: AsJson = False) -> None:
    """List the tags of a table.

    **Examples**

    ingestd tag list /lake shop.orders --json
    """
    names = ("tag", "snapshot", "schema_id", "committed_at", "records", "created_at", "retained")
    rows = []
    for cells in tag_rows(open_table(warehouse, table)):
        row = dict(zip(names, cells, strict=True))
        times = {name: timestamp_text(row[name]) for name in ("committed_at", "created_at")}  # type: ignore[arg-type]  # milliseconds or None
        rows.append({**row, **times})
    if as_json:
        print_json(rows)
    else:
        print_table(rows, names, none=f"{table} has no tags.")


@tag.command("delete")
def delete(
    warehouse: Warehouse,
    table: TableName,
    name: _Name,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Delete a tag and, if its snapshot has expired, the files that nothing else refers to.

    **Examples**

    ingestd tag delete /lake shop.orders 2024-01-31 --dry-run
    """
    opened = open_table(warehouse, table)
    at = tagged_snapshot(opened, name)
    files = (plan_tag_deletion if dry_run else delete_tags)(opened, name)
    if not dry_run:
        update_iceberg(opened, tags=True)
    document = {"table": table, "tag": name, "snapshot": at.id, "deleted_files": files}
    deleted = counted(len(files), "file")
    text = f"{table}: tag '{name}' of snapshot {at.id} deleted, and {deleted} with it."
    print_result(text, document, as_json=as_json, dry_run=dry_run)


@tag.command("auto")
def auto(
    warehouse: Warehouse, table: TableName, dry_run: DryRun = False, as_json: AsJson = False
) -> None:
    """Create the tags that are due by the table's option `tag.automatic-creation`.

    The option is `process-time` or `watermark`; `tag.creation-period`, `tag.creation-delay`,
    `tag.default-time-retained` and others specify the tags. The oldest automatic tags beyond
    `tag.num-retained-max` are deleted.

    **Examples**

    ingestd tag auto /lake shop.orders --dry-run

    ingestd tag auto /lake shop.orders --json
    """
    opened = open_table(warehouse, table)
    tags = make_auto_tags(opened, opened.schema.options, now_ms(), dry_run=dry_run)
    if not dry_run:
        update_iceberg(opened, tags=True)
    created = [{"tag": tag.name, "snapshot": tag.snapshot.id} for tag in tags.created]
    names = ", ".join(tag.name for tag in tags.created) or "-"
    text = (
        f"{table}: {counted(len(created), 'tag')} created ({names}), {len(tags.deleted)} deleted."
    )
    document = {"table": table, "created": created, "deleted": list(tags.deleted)}
    print_result(text, document, as_json=as_json, dry_run=dry_run)


@tag.command("expire")
def expire(
    warehouse: Warehouse, table: TableName, dry_run: DryRun = False, as_json: AsJson = False
) -> None:
    """Delete the tags whose retention time is over, as `ingestd expire tags` does.

    **Examples**

    ingestd tag expire /lake shop.orders --dry-run
    """
    expire_tags(warehouse, table, dry_run, as_json)


def _retained(table: FileStoreTable, text: str | None) -> int | None:
    option = honoured.TAG_TIME
    return option.of(table.schema.options if text is None else {option.name: text})
