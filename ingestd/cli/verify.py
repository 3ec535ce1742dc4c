"""`ingestd verify`: whether a table is sound."""

from dataclasses import asdict

import typer

from ingestd.cli.interrupts import UNCHANGED
from ingestd.cli.output import AsJson, print_json, print_table
from ingestd.cli.progress import live_count, working
from ingestd.cli.tables import SnapshotId, TableName, Warehouse, open_table
from ingestd.paimon.table.verify.table_verify import verify as verify_table


def verify(
    warehouse: Warehouse,
    table: TableName,
    snapshot: SnapshotId = None,
    as_json: AsJson = False,
) -> None:
    """Check a table: its snapshots, manifests, data files, keys, statistics and index.

    Exit code 1 if anything was found.

    **Examples**

    ingestd verify /lake shop.orders

    ingestd verify /lake shop.orders --snapshot 3 --json
    """
    opened = open_table(warehouse, table)
    with working("verifying", opened, left=UNCHANGED, files=live_count(snapshot)) as found:
        findings = verify_table(found, snapshot)
    rows = [asdict(one) for one in findings]
    if as_json:
        print_json(rows)
    else:
        none = f"{table}: nothing found, the table is sound."
        print_table(rows, ("severity", "code", "where", "message"), none=none)
    raise typer.Exit(1 if findings else 0)
