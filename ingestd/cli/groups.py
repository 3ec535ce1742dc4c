"""Groups of commands, and options that several commands share."""

import time
from collections.abc import Mapping
from typing import Annotated, TypeAlias

import typer

from ingestd.cli.output import print_json, say
from ingestd.errors import ConfigError
from ingestd.paimon.io.probes import store_now_ms
from ingestd.paimon.spec.snapshot import Snapshot
from ingestd.paimon.table.metadata.file_store_scan import PartitionFilter
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.partition_spec import parse_partition_spec, partition_filter
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot, requested_snapshot

DryRun: TypeAlias = Annotated[
    bool, typer.Option("--dry-run", help="Show what would be done without doing it.")
]

Yes: TypeAlias = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")]

Partitions: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--partition", metavar="COLUMN=VALUE,...", help="Only these partitions; repeatable."
    ),
]

_MILLIS = 1000


def group(name: str, about: str, *examples: str) -> typer.Typer:
    """Return a group of commands; its help is `about` and `examples`, which are command lines."""
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
    """Return the time in milliseconds since 1970."""
    return int(time.time() * _MILLIS)


def table_now_ms(table: FileStoreTable) -> int:
    """Return the time of the table's store in milliseconds since 1970.

    The ages of files are measured by this clock. Writes a file to the snapshot directory and
    deletes it, even in a dry run. Raises StorageError if that fails.
    """
    return store_now_ms(table.io, table.paths.snapshot_dir)


def chosen_snapshot(table: FileStoreTable, snapshot_id: int | None) -> Snapshot:
    """Return the snapshot with this id, or the newest snapshot if the id is None.

    Raises ConfigError if the snapshot does not exist, and FormatError if its file is damaged.
    """
    if snapshot_id is not None:
        return requested_snapshot(table.io, table.paths, snapshot_id)
    newest = latest_snapshot(table.io, table.paths)
    if newest is None:
        raise ConfigError(f"table {table.name} has no snapshot yet")
    return newest


def chosen_partitions(table: FileStoreTable, texts: list[str] | None) -> PartitionFilter | None:
    """Return a filter for the partitions that `--partition` names, or None for all partitions.

    `texts` are specifications such as `dt=2024-01-01,hr=3`; a partition that matches one of them is
    selected. Raises ConfigError for an invalid specification.
    """
    specs = [parse_partition_spec(table, text) for text in texts or ()]
    return partition_filter(table, specs) if specs else None


def print_result(
    text: str, document: Mapping[str, object], *, as_json: bool, dry_run: bool
) -> None:
    """Print the result of a command: the sentence `text`, or `document` as JSON.

    With `dry_run`, words before the sentence state that nothing was done. The JSON always has the
    key `dry_run` in addition.
    """
    if as_json:
        print_json({**document, "dry_run": dry_run})
    else:
        say(f"Nothing is done (--dry-run). It would be: {text}" if dry_run else text)
