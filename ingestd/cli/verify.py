"""`ingestd verify`: check the files of a table, or its progress against Kafka."""

from dataclasses import asdict
from typing import Annotated, TypeAlias

import typer

from ingestd.cli.catalog_options import CatalogChoice, chosen_catalog
from ingestd.cli.dead_letter_replay import ConfigFile
from ingestd.cli.interrupts import UNCHANGED
from ingestd.cli.output import AsJson, print_json, print_table
from ingestd.cli.progress_line import live_count, working
from ingestd.cli.table_arguments import SnapshotId, Warehouse, open_table
from ingestd.errors import ConfigError
from ingestd.paimon.table.verify.table_verify import verify as verify_table
from ingestd.paimon.table.verify.verify_findings import Finding

_Table: TypeAlias = Annotated[
    str | None,
    typer.Argument(
        metavar="DB.TABLE",
        help="The table; with --against-kafka default all tables of the pipeline.",
    ),
]
_AgainstKafka: TypeAlias = Annotated[
    bool, typer.Option("--against-kafka", help="Compare covered offsets with Kafka's logs instead.")
]
_Recount: TypeAlias = Annotated[
    bool,
    typer.Option("--recount", help="With --against-kafka: also read the logs and compare rows."),
]


def verify(
    warehouse: Warehouse,
    table: _Table = None,
    snapshot: SnapshotId = None,
    against_kafka: _AgainstKafka = False,
    recount: _Recount = False,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Check a table: its snapshots, manifests, data files, keys, statistics and index.

    With --against-kafka, check the progress of tables: that the topics are still the same, and that
    their logs still have the covered offsets, leader epochs and last records.

    Exit code 1 if there are findings.

    **Examples**

    ingestd verify /lake shop.orders

    ingestd verify /lake shop.orders --snapshot 3 --json

    ingestd verify /lake --against-kafka -c ingestd.yaml

    ingestd verify /lake ods.orders --against-kafka -c ingestd.yaml --recount
    """
    if against_kafka:
        if config is None or snapshot is not None or chosen_catalog() != CatalogChoice():
            raise ConfigError(
                "--against-kafka needs --config, which names the catalog, and takes no --snapshot"
            )
        from ingestd.cli.verify_kafka import compare_with_kafka  # noqa: PLC0415  (a slow import)

        compared = compare_with_kafka(warehouse, table, config, rows=recount)
        compared.print(as_json=as_json)
        raise typer.Exit(1 if compared.findings else 0)
    if table is None or recount or config is not None:
        raise ConfigError("name a table; --recount and --config only go with --against-kafka")
    findings = _look_into_files(warehouse, table, snapshot, as_json=as_json)
    raise typer.Exit(1 if findings else 0)


def _look_into_files(
    warehouse: str, table: str, snapshot: int | None, *, as_json: bool
) -> list[Finding]:
    opened = open_table(warehouse, table)
    with working("verifying", opened, left=UNCHANGED, files=live_count(snapshot)) as watched:
        findings = verify_table(watched, snapshot)
    rows = [asdict(finding) for finding in findings]
    if as_json:
        print_json(rows)
    else:
        none = f"{table}: nothing found, the table is sound."
        print_table(rows, ("severity", "code", "where", "message"), none=none)
    return findings
