"""Commands that have commands of their own, and what these commands share."""

import time
from collections.abc import Mapping
from typing import Annotated, TypeAlias

import typer

from ingestd.cli.output import print_json, say
from ingestd.errors import ConfigError
from ingestd.paimon.io.store_clock import store_now_ms
from ingestd.paimon.spec.snapshot import Snapshot
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.partition_spec import parse_partition_spec, partition_filter
from ingestd.paimon.table.metadata.scan import PartitionFilter
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot, read_snapshot

DryRun: TypeAlias = Annotated[
    bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")
]

Partitions: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--partition", metavar="COLUMN=VALUE,...", help="Only these partitions; repeatable."
    ),
]

_MILLIS = 1000


def group(name: str, about: str, *examples: str) -> typer.Typer:
    """A command that has commands of its own; `examples` are command lines."""
    return typer.Typer(
        name=name,
        help="\n\n".join([about, "**Examples**", *examples]),
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode="markdown",
        context_settings={"help_option_names": ["-h", "--help"]},
    )


def now_ms() -> int:
    """This moment, in milliseconds of the epoch."""
    return int(time.time() * _MILLIS)


def table_now_ms(table: FileStoreTable) -> int:
    """This moment by the clock of the table's store, in milliseconds of the epoch.

    What is deleted because of its age is judged by it. Raises StorageError as `store_now_ms`.
    """
    return store_now_ms(table.io, table.paths.snapshot_dir)


def chosen_snapshot(table: FileStoreTable, snapshot_id: int | None) -> Snapshot:
    """The snapshot of an id, without one the newest; ConfigError if the table has none yet."""
    if snapshot_id is not None:
        return read_snapshot(table.io, table.paths, snapshot_id)
    newest = latest_snapshot(table.io, table.paths)
    if newest is None:
        raise ConfigError(f"table {table.name} has no snapshot yet")
    return newest


def chosen_partitions(table: FileStoreTable, texts: list[str] | None) -> PartitionFilter | None:
    """What `Partitions` lets through, None for all; ConfigError names one that cannot be."""
    specs = [parse_partition_spec(table, text) for text in texts or ()]
    return partition_filter(table, specs) if specs else None


def tell(text: str, document: Mapping[str, object], *, as_json: bool, dry_run: bool) -> None:
    """Print what was done, or would be: a sentence, or a document that has `dry_run` too."""
    if as_json:
        print_json({**document, "dry_run": dry_run})
    else:
        say(f"Nothing is done (--dry-run). It would be: {text}" if dry_run else text)
