"""`ingestd rollback`: roll a table, and the offsets that it covers, back to a snapshot."""

from collections.abc import Mapping
from typing import Annotated, TypeAlias

import typer

from ingestd.cli.groups import DryRun, Yes, print_result
from ingestd.cli.output import AsJson, print_table, timestamp_text
from ingestd.cli.progress_line import working
from ingestd.cli.prompts import confirm
from ingestd.cli.table_arguments import TableName, Warehouse, open_table
from ingestd.errors import ConfigError
from ingestd.ingest.settings.context import marked_pipelines
from ingestd.ingest.tables.heartbeat import request_reopen
from ingestd.ingest.tables.progress import decode_properties, pipelines_in
from ingestd.paimon.spec.literals import timestamp_millis
from ingestd.paimon.spec.snapshot import Snapshot
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import find_snapshot, requested_snapshot
from ingestd.paimon.table.metadata.time_travel import (
    snapshot_as_of,
    tagged_snapshot,
    tagged_snapshots,
)
from ingestd.paimon.table.retention.rollback import Rollback, plan_rollback
from ingestd.paimon.table.retention.rollback import rollback as roll_back
from ingestd.wording import counted

_SnapshotId: TypeAlias = Annotated[
    int | None, typer.Option("--snapshot", min=1, help="The snapshot to roll back to.")
]
_Tag: TypeAlias = Annotated[str | None, typer.Option("--tag", help="The tag to roll back to.")]
_AsOf: TypeAlias = Annotated[
    str | None,
    typer.Option("--as-of", help="The time to roll back to, ISO 8601 (UTC without an offset)."),
]
_Force: TypeAlias = Annotated[
    bool, typer.Option("--force", help="Roll back even if the progress of a pipeline is lost.")
]
_DeleteTags: TypeAlias = Annotated[
    bool, typer.Option("--delete-tags", help="Delete the tags of later snapshots.")
]

_LEFT = (
    "The table is consistent, but perhaps not rolled back completely. Run the same command again."
)


def rollback(
    warehouse: Warehouse,
    table: TableName,
    snapshot: _SnapshotId = None,
    tag: _Tag = None,
    as_of: _AsOf = None,
    force: _Force = False,
    delete_tags: _DeleteTags = False,
    yes: Yes = False,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Roll a table back to a snapshot; later snapshots and changelogs are deleted.

    The Kafka offsets that a table covers are part of its snapshots, so they are rolled back too:
    the pipeline reads later records again, a running daemon within 10 seconds. Stop all other
    writers of the table first. Data files of deleted snapshots remain until `ingestd
    remove-orphans` deletes them.

    A tag of a later snapshot cannot remain: the command refuses, and names the tags, unless
    `--delete-tags` is specified. A branch created from a tag keeps its rows.

    **Examples**

    ingestd rollback /lake shop.orders --snapshot 42 --dry-run

    ingestd rollback /lake shop.orders --as-of 2026-01-31T12:00:00Z
    """
    opened = open_table(warehouse, table)
    plan = plan_rollback(opened, _target(opened, snapshot, tag, as_of))
    daemons: list[str] = []
    if not dry_run:
        _check(table, plan, force=force, delete_tags=delete_tags)
        what = f"{_deleted(plan)} after snapshot {plan.target.id} will be deleted"
        confirm(f"{table}: {what}. Continue?", "--yes", given=yes)
        with working("rolling back", opened, left=_LEFT) as watched:
            roll_back(watched, plan)
        daemons = _reopened(opened)
    _print(table, plan, _offsets(opened, plan.record), daemons, as_json=as_json, dry_run=dry_run)


def _print(
    table: str,
    plan: Rollback,
    offsets: list[Mapping[str, object]],
    daemons: list[str],
    *,
    as_json: bool,
    dry_run: bool,
) -> None:
    text = _sentence(table, plan) + "".join(f" It is read again by {name}." for name in daemons)
    document = {**_document(table, plan, offsets), "reopened_by": daemons}
    print_result(text, document, as_json=as_json, dry_run=dry_run)
    if offsets and not as_json:
        print_table(offsets, ("pipeline", "topic", "partition", "next_offset"), none="")


def _check(table: str, plan: Rollback, *, force: bool, delete_tags: bool) -> None:
    if plan.forgets_record and not force:
        raise ConfigError(
            f"table {table}: no snapshot up to {plan.target.id} records which offsets the table "
            "covers, so the daemon could not continue; roll back to a newer snapshot, or add "
            "--force and give the table a record with `ingestd begin` before the next start"
        )
    if plan.tags and not delete_tags:
        raise ConfigError(
            f"table {table}: {', '.join(plan.tags)}: tags of snapshots after {plan.target.id}, "
            "which would be deleted; add --delete-tags, if need be after `ingestd branch create "
            f"WAREHOUSE {table} BRANCH --tag {plan.tags[0]}`, which keeps the rows of one"
        )


def _reopened(table: FileStoreTable) -> list[str]:
    """Ask the running daemons that write a table to open it again; return their descriptions."""
    names = sorted(marked_pipelines(table))
    asked = [request_reopen(table.io, table.warehouse, name) for name in names]
    return [str(daemon) for daemon in asked if daemon is not None]


def _target(
    table: FileStoreTable, snapshot: int | None, tag: str | None, as_of: str | None
) -> Snapshot:
    if sum(value is not None for value in (snapshot, tag, as_of)) != 1:
        raise ConfigError("specify the target: one of --snapshot, --tag and --as-of")
    if tag is not None:
        return tagged_snapshot(table, tag)
    if as_of is not None:
        return snapshot_as_of(table, timestamp_millis(as_of))
    snapshot_id = snapshot or 0
    existing = find_snapshot(table.io, table.paths, snapshot_id)
    if existing is not None:
        return existing
    tagged = tagged_snapshots(table).values()
    kept = next((tag_ for tag_ in tagged if tag_.id == snapshot_id), None)
    return kept or requested_snapshot(table.io, table.paths, snapshot_id)


def _offsets(table: FileStoreTable, record: Snapshot | None) -> list[Mapping[str, object]]:
    """Return the offsets at which pipelines resume, from the progress records of a snapshot.

    `record` is the newest remaining snapshot with progress records, or None, for which [] is
    returned.
    """
    if record is None:
        return []
    where = table.paths.snapshot(record.id)
    names = pipelines_in(record.properties)
    records = {name: decode_properties(name, record.properties, where) for name in names}
    return [
        {
            "pipeline": pipeline,
            "topic": recorded.pipeline.topic_name(key),
            "partition": partition,
            "next_offset": position.offset,
        }
        for pipeline, recorded in records.items()
        if recorded is not None
        for key, partitions in recorded.pipeline.end.items()
        for partition, position in partitions.items()
    ]


def _deleted(plan: Rollback) -> str:
    deleted = [counted(len(plan.snapshots), "snapshot")]
    deleted += [f"{counted(len(plan.tags), 'tag')} ({', '.join(plan.tags)})"] if plan.tags else []
    deleted += [counted(len(plan.changelogs), "changelog")] if plan.changelogs else []
    return ", ".join(deleted)


def _sentence(table: str, plan: Rollback) -> str:
    text = f"{table}: back at snapshot {plan.target.id}, without {_deleted(plan)} after it."
    if plan.forgets_record:
        text += " No remaining snapshot records which offsets the table covers."
    return text


def _document(
    table: str, plan: Rollback, offsets: list[Mapping[str, object]]
) -> Mapping[str, object]:
    return {
        "table": table,
        "snapshot": plan.target.id,
        "committed_at": timestamp_text(plan.target.time_millis),
        "restored_from_tag": plan.restored,
        "deleted_snapshots": list(plan.snapshots),
        "deleted_tags": list(plan.tags),
        "deleted_changelogs": list(plan.changelogs),
        "forgets_record": plan.forgets_record,
        "offsets": offsets,
    }
