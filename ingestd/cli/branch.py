"""`ingestd branch`: create, list, delete and fast-forward branches of a table."""

from typing import Annotated, TypeAlias

import typer

from ingestd.cli.groups import DryRun, Yes, chosen_snapshot, group, now_ms, print_result
from ingestd.cli.output import AsJson, print_json, print_table
from ingestd.cli.prompts import confirm
from ingestd.cli.table_arguments import SnapshotId, TableName, Warehouse, open_table
from ingestd.errors import ConfigError
from ingestd.paimon.iceberg.iceberg_sync import update_iceberg
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot
from ingestd.paimon.table.metadata.time_travel import branch_names, on_branch, tagged_snapshot
from ingestd.paimon.table.retention.branches import (
    check_new_branch,
    check_unused_branch,
    create_branch,
    drop_branch,
    fast_forward,
    replaced_snapshots,
)
from ingestd.paimon.table.retention.tags import create_tag
from ingestd.wording import counted

_Name: TypeAlias = Annotated[str, typer.Argument(metavar="BRANCH", help="The branch.")]

branch = group(
    "branch",
    "Create, list, delete and fast-forward branches; read one as `DB.TABLE$branch_NAME`.",
    "ingestd branch create /lake shop.orders fix --tag 2024-01-31",
    "ingestd branch fast-forward /lake shop.orders fix --dry-run",
)


@branch.command("create")
def create(
    warehouse: Warehouse,
    table: TableName,
    name: _Name,
    tag: Annotated[str | None, typer.Option("--tag", help="Start from a tag.")] = None,
    snapshot: SnapshotId = None,
    latest: Annotated[
        bool, typer.Option("--latest", help="Start from the newest snapshot.")
    ] = False,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Create a branch at a tag or a snapshot, or an empty branch with the schemas of the table.

    For a snapshot, a tag with the name of the branch is created too; it keeps the files that the
    branch shares with the table.

    **Examples**

    ingestd branch create /lake shop.orders fix --tag 2024-01-31

    ingestd read /lake 'shop.orders$branch_fix'
    """
    if (tag is not None) + (snapshot is not None) + latest > 1:
        raise ConfigError("--tag, --snapshot and --latest exclude each other: give one")
    opened = open_table(warehouse, table)
    check_new_branch(opened, name)
    at = None if tag is None else tagged_snapshot(opened, tag).id
    if snapshot is not None or latest:
        start = chosen_snapshot(opened, snapshot)
        at, tag = start.id, name
        if not dry_run:
            create_tag(opened, name, start, now_ms=now_ms())
            update_iceberg(opened, tags=True)
    if not dry_run:
        create_branch(opened, name, tag)
    document = {"table": table, "branch": name, "tag": tag, "snapshot": at}
    begins = "empty" if tag is None else f"at tag '{tag}' (snapshot {at})"
    text = f"{table}: branch '{name}' begins {begins}."
    print_result(text, document, as_json=as_json, dry_run=dry_run)


@branch.command("list")
def list_branches(warehouse: Warehouse, table: TableName, as_json: AsJson = False) -> None:
    """List the branches of a table, without the main branch.

    **Examples**

    ingestd branch list /lake shop.orders --json
    """
    opened = open_table(warehouse, table)
    rows = []
    for name in branch_names(opened.io, opened.paths):
        line = on_branch(opened, name)
        newest = latest_snapshot(line.io, line.paths)
        snapshot = newest.id if newest else None
        rows.append({"branch": name, "schema_id": line.schema.id, "snapshot": snapshot})
    if as_json:
        print_json(rows)
    else:
        print_table(rows, ("branch", "schema_id", "snapshot"), none=f"{table} has no branches.")


@branch.command("delete")
def delete(
    warehouse: Warehouse,
    table: TableName,
    name: _Name,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Delete a branch; files that only this branch referred to are left as orphans.

    **Examples**

    ingestd branch delete /lake shop.orders trial --dry-run
    """
    opened = open_table(warehouse, table)
    check_unused_branch(opened, name)
    if not dry_run:
        drop_branch(opened, name)
    text = f"{table}: branch '{name}' deleted."
    print_result(text, {"table": table, "branch": name}, as_json=as_json, dry_run=dry_run)


@branch.command("fast-forward")
def forward(
    warehouse: Warehouse,
    table: TableName,
    name: _Name,
    yes: Yes = False,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Replace the snapshots, schemas and tags of a table with those of a branch.

    From the id of the branch's first snapshot on, the snapshots, schemas and tags of the table are
    lost. Stop all writers of the table first.

    **Examples**

    ingestd branch fast-forward /lake shop.orders trial --dry-run
    """
    opened = open_table(warehouse, table)
    deleted = replaced_snapshots(opened, name)
    if not dry_run:
        what = f"{table}: its snapshots, schemas and tags will be replaced by branch '{name}'."
        confirm(f"{what} Writers must be stopped. Continue?", "--yes", given=yes)
        deleted = fast_forward(opened, name)
        update_iceberg(open_table(warehouse, table), tags=True)
    text = f"{table}: forwarded to branch '{name}'; {counted(len(deleted), 'snapshot')} deleted."
    document = {"table": table, "branch": name, "snapshots_deleted": deleted}
    print_result(text, document, as_json=as_json, dry_run=dry_run)
