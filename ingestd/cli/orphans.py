"""`ingestd orphans`: files of a table that nothing refers to."""

from typing import Annotated

import typer

from ingestd.cli.groups import DryRun, now_ms, tell
from ingestd.cli.output import AsJson, counted, print_table, time_text
from ingestd.cli.progress import working
from ingestd.cli.tables import TableName, Warehouse, open_table
from ingestd.paimon.spec.option_values import millis_option
from ingestd.paimon.table.retention.orphans import DAY_MS, find_orphans, remove_orphans

_OLDER = "older-than"
_LEFT = "What it deleted was of no use to anybody. Run the same command again for the rest."


def orphans(
    warehouse: Warehouse,
    table: TableName,
    older_than: Annotated[
        str, typer.Option("--older-than", help="Only what was last changed so long ago.")
    ] = "1 d",
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Delete files that no snapshot, tag, changelog or branch of a table refers to.

    They are left by attempts that failed, rollbacks and killed processes. Writers may go on
    meanwhile: a file that is about to be committed must only be younger than --older-than.

    **Examples**

    ingestd orphans /lake shop.orders --dry-run

    ingestd orphans /lake shop.orders --older-than '7 d'
    """
    found = open_table(warehouse, table)
    age = millis_option({_OLDER: older_than}, _OLDER, DAY_MS)
    with working("looking for orphans of", found, left=_LEFT) as watched:
        there = find_orphans(watched, now_ms() - age)
        if not dry_run:
            remove_orphans(watched, there)
    size = sum(one.size for one in there.files)
    rows = [
        {"file": one.path, "bytes": one.size, "modified_at": time_text(one.modified_ms)}
        for one in there.files
    ]
    empty = list(there.directories)
    document = {"table": table, "files": rows, "bytes": size, "directories": empty}
    what = f"{counted(len(rows), 'orphan file')} with {counted(size, 'byte')} deleted."
    text = f"{table}: {what if rows else 'there are no orphan files.'}"
    tell(text, document, as_json=as_json, dry_run=dry_run)
    if rows and not as_json:
        print_table(rows, ("file", "bytes", "modified_at"), none="")
