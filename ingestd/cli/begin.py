"""`ingestd begin`: set the offsets from which a table is written."""

from collections.abc import Callable
from contextlib import ExitStack, closing
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ingestd.cli.groups import Yes, now_ms, print_result
from ingestd.cli.output import AsJson, Row, print_table
from ingestd.cli.prompts import confirm
from ingestd.config.load import load_config
from ingestd.config.runtime import pipeline_settings
from ingestd.ingest.recovery.set_progress import (
    NextOffset,
    at_claims,
    at_now,
    at_origin,
    check_table,
)
from ingestd.ingest.recovery.set_progress import begin as give_record
from ingestd.ingest.settings.pipeline_settings import PipelineSettings
from ingestd.ingest.tables.claims import read_claims
from ingestd.ingest.tables.heartbeat import running_daemon
from ingestd.ingest.tables.leadership import Leadership, this_process
from ingestd.ingest.tables.log_positions import Vector
from ingestd.ingest.tables.pipeline_warehouse import open_catalog, open_file_io, pipeline_folder
from ingestd.ingest.tables.table_registry import TableRegistry
from ingestd.kafka.offsets import OffsetClient
from ingestd.paimon.io.file_io import FileIO


class StartAt(StrEnum):
    """The offsets from which a table starts.

    ORIGIN are the first offsets of the pipeline, CLAIMS those in its claims file, NOW the log ends.
    """

    ORIGIN = "origin"
    CLAIMS = "claims"
    NOW = "now"


def begin(
    config: Annotated[Path, typer.Option("--config", "-c", help="The configuration file.")],
    table: Annotated[str, typer.Argument(help="The table, as database.table.")],
    at: Annotated[
        StartAt,
        typer.Option(
            "--at",
            help="`origin`: where the pipeline began with each topic partition; `claims`: where "
            "the table is complete by the pipeline's claims file; `now`: the ends of the logs.",
        ),
    ],
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Set the offsets from which a table is written, by a progress record in a new snapshot.

    Use it for a table whose progress records another writer expired, that another program filled,
    or that was emptied to be read again. A running daemon is stopped: it ends with exit code 6.

    Use `--at claims` only if the table was not rolled back, restored or overwritten since the last
    batch. A table without a key is refused if the daemon died after a commit of rows to it.

    **Examples**

    ingestd begin -c ingestd.yaml ods.orders --at claims
    """
    settings = pipeline_settings(load_config(config))
    io = open_file_io(settings)
    catalog = open_catalog(settings)
    check_table(settings, catalog, table)
    _take_over(settings, io, yes=yes)
    with ExitStack() as stack:
        vector = _vector(at, table, settings, io, stack)
        starts = give_record(settings, catalog, io, table, vector, now_ms)
    rows = [_row(start) for start in starts]
    document = {"table": table, "at": at.value, "offsets": rows}
    print_result(f"{table} is written from here on.", document, as_json=as_json, dry_run=False)
    if not as_json:
        columns = ("topic", "partition", "next_offset")
        print_table(rows, columns, none="no topic has been read yet")


def _row(start: NextOffset) -> Row:
    return {"topic": start.name.topic, "partition": start.partition, "next_offset": start.offset}


def _take_over(settings: PipelineSettings, io: FileIO, *, yes: bool) -> None:
    folder = pipeline_folder(settings.warehouse, settings.name)
    daemon = running_daemon(io, folder)
    if daemon is not None:
        what = f"pipeline {settings.name}: its daemon ({daemon}) will end with exit code 6."
        confirm(f"{what} Continue?", "--yes", given=yes)
    Leadership(io, folder, settings.name, this_process()).claim()


def _vector(
    at: StartAt, table: str, settings: PipelineSettings, io: FileIO, stack: ExitStack
) -> Callable[[TableRegistry], Vector]:
    if at is StartAt.ORIGIN:
        return at_origin(table)
    if at is StartAt.CLAIMS:
        return at_claims(table, read_claims(io, settings.warehouse, settings.name))
    return at_now(
        {
            name: stack.enter_context(closing(OffsetClient(source.kafka)))
            for name, source in settings.sources.items()
        }
    )
