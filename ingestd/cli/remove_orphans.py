"""`ingestd remove-orphans`: delete files of a table that no snapshot refers to."""

from dataclasses import replace
from typing import Annotated, TypeAlias

import typer

from ingestd.cli.groups import DryRun, Yes, print_result, table_now_ms
from ingestd.cli.output import AsJson, print_table, timestamp_text
from ingestd.cli.progress_line import working
from ingestd.cli.prompts import confirm
from ingestd.cli.table_arguments import TableName, Warehouse, open_table
from ingestd.ingest.tables.leadership import Leadership, pipelines, this_process
from ingestd.paimon.iceberg.orphan_metadata import iceberg_orphans
from ingestd.paimon.spec.option_types import parse_millis
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.retention.orphans import (
    ORPHAN_AGE_FLOOR_MS,
    Orphans,
    find_orphans,
)
from ingestd.paimon.table.retention.orphans import remove_orphans as delete_orphans
from ingestd.wording import counted

_OLDER = "older-than"
_SHARED = "Files of other tables in the external paths of {} will be deleted. Continue?"
_LEFT = "The deleted files were not in use. Run the same command again for the rest."

_OlderThan: TypeAlias = Annotated[
    str, typer.Option("--older-than", help="Only files last modified longer ago than this.")
]
_ExternalPaths: TypeAlias = Annotated[
    bool, typer.Option("--external-paths", help="Also search 'data-file.external-paths'.")
]


def remove_orphans(
    warehouse: Warehouse,
    table: TableName,
    older_than: _OlderThan = "1 d",
    external_paths: _ExternalPaths = False,
    yes: Yes = False,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Delete files that no snapshot, tag, changelog or branch of a table refers to.

    Also deletes files of the table's Iceberg metadata that no readable metadata document refers to.
    Orphan files are left by failed attempts, rollbacks and killed processes. Writers may continue:
    files that are about to be committed must be younger than --older-than. Ages are measured by the
    clock of the store, not of this machine.

    If --older-than is below 6 hours, the command asks for confirmation and stops the daemons of all
    pipelines of the warehouse; stop all other writers of the table yourself. It also asks for
    confirmation with --external-paths.

    **Examples**

    ingestd remove-orphans /lake shop.orders --dry-run

    ingestd remove-orphans /lake shop.orders --older-than '7 d'
    """
    opened = open_table(warehouse, table)
    if external_paths:
        confirm(_SHARED.format(table), "--yes", given=yes or dry_run)
    age = parse_millis(_OLDER, older_than)
    stopped = [] if dry_run or age >= ORPHAN_AGE_FLOOR_MS else _take_over(opened, yes=yes)
    with working("looking for orphans of", opened, left=_LEFT, dry_run=dry_run) as watched:
        limit = table_now_ms(watched) - age
        orphans = find_orphans(watched, limit, external=external_paths)
        orphans = replace(orphans, files=(*orphans.files, *iceberg_orphans(watched, limit)))
        for leadership in stopped:
            leadership.check()  # a daemon that was started meanwhile may be writing these files
        if not dry_run:
            delete_orphans(watched, orphans)
    _print_result(table, orphans, stopped, dry_run=dry_run, as_json=as_json)


def _print_result(
    table: str, orphans: Orphans, stopped: list[Leadership], *, dry_run: bool, as_json: bool
) -> None:
    size = sum(file.size for file in orphans.files)
    rows = [
        {"file": file.path, "bytes": file.size, "modified_at": timestamp_text(file.modified_ms)}
        for file in orphans.files
    ]
    document = {
        "table": table,
        "files": rows,
        "bytes": size,
        "directories": list(orphans.directories),
        "stopped_pipelines": [leadership.pipeline for leadership in stopped],
    }
    what = f"{counted(len(rows), 'orphan file')} with {counted(size, 'byte')} deleted."
    text = f"{table}: {what if rows else 'there are no orphan files.'}"
    print_result(text, document, as_json=as_json, dry_run=dry_run)
    if rows and not as_json:
        print_table(rows, ("file", "bytes", "modified_at"), none="")


def _take_over(table: FileStoreTable, *, yes: bool) -> list[Leadership]:
    """Take over the lead of all pipelines of the warehouse: no daemon then commits deleted files.

    Asks for confirmation unless `yes`, and raises ConfigError if the answer is no. Returns a
    leadership for each pipeline.
    """
    names = pipelines(table.io, table.warehouse)
    daemons = f"the daemons of {', '.join(names)} are stopped" if names else "no daemon is known"
    confirm(
        f"An age below 6 hours includes files of commits in progress: {daemons}, and any "
        f"other writer of {table.name} loses rows unless you stop it. Continue?",
        "--yes",
        given=yes,
    )
    holder = this_process()
    leads = [Leadership(table.io, folder, name, holder) for name, folder in names.items()]
    for lead in leads:
        lead.claim()
    return leads
