"""`ingestd consumer`: progress of streaming readers of a table."""

from typing import Annotated, TypeAlias

import typer

from ingestd.cli.groups import DryRun, group, print_result
from ingestd.cli.output import AsJson, print_json, print_table
from ingestd.cli.table_arguments import TableName, Warehouse, open_table
from ingestd.errors import ConfigError
from ingestd.paimon.table.retention.consumers import consumers, delete_consumer, reset_consumer

_Id: TypeAlias = Annotated[str, typer.Argument(metavar="CONSUMER", help="Id of the consumer.")]

consumer = group(
    "consumer",
    "List, reset and delete consumers: streaming readers whose snapshots do not expire.",
    "ingestd consumer list /lake shop.orders",
    "ingestd consumer reset /lake shop.orders billing --next-snapshot 7",
)


@consumer.command("list")
def list_consumers(warehouse: Warehouse, table: TableName, as_json: AsJson = False) -> None:
    """List the consumers of a table with the snapshots that they read next.

    **Examples**

    ingestd consumer list /lake shop.orders --json
    """
    next_snapshots = consumers(open_table(warehouse, table))
    rows = [{"consumer": name, "next_snapshot": number} for name, number in next_snapshots.items()]
    if as_json:
        print_json(rows)
    else:
        print_table(rows, ("consumer", "next_snapshot"), none=f"{table} has no consumers.")


@consumer.command("reset")
def reset(
    warehouse: Warehouse,
    table: TableName,
    name: _Id,
    next_snapshot: Annotated[
        int, typer.Option("--next-snapshot", min=1, help="The snapshot to read next.")
    ],
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Set the snapshot that a consumer reads next; the consumer is created if it does not exist.

    **Examples**

    ingestd consumer reset /lake shop.orders billing --next-snapshot 7
    """
    opened = open_table(warehouse, table)
    before = consumers(opened).get(name)
    if not dry_run:
        reset_consumer(opened, name, next_snapshot)
    document = {"table": table, "consumer": name, "next_snapshot": next_snapshot, "before": before}
    text = f"{table}: consumer '{name}' reads snapshot {next_snapshot} next."
    print_result(text, document, as_json=as_json, dry_run=dry_run)


@consumer.command("delete")
def delete(
    warehouse: Warehouse,
    table: TableName,
    name: _Id,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Delete a consumer; the snapshots that it protected may then expire.

    **Examples**

    ingestd consumer delete /lake shop.orders billing --dry-run
    """
    opened = open_table(warehouse, table)
    if name not in consumers(opened):
        raise ConfigError(f"table {table} has no consumer '{name}'")
    if not dry_run:
        delete_consumer(opened, name)
    text = f"{table}: consumer '{name}' deleted."
    print_result(text, {"table": table, "consumer": name}, as_json=as_json, dry_run=dry_run)
