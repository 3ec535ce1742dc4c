"""The details of one table for the console, read from the warehouse when a page is requested."""

import shlex
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar, cast

from ingestd.daemon.console.stored_dead_letters import StoredDeadLetters, read_dead_letters
from ingestd.daemon.recent_history import schema_differences
from ingestd.ingest.settings.pipeline_settings import PipelineSettings
from ingestd.ingest.tables.pipeline_warehouse import open_catalog
from ingestd.paimon.catalog.base import Catalog, Identifier
from ingestd.paimon.spec.snapshot import Snapshot
from ingestd.paimon.spec.table_schema import TableSchema
from ingestd.paimon.table.metadata.file_store_scan import live_files
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.schema_manager import schema_ids
from ingestd.paimon.table.metadata.snapshot_manager import find_snapshot, latest_snapshot

_KEPT_SECONDS = 10.0
_MOST_SNAPSHOTS = 20
_MOST_SCHEMAS = 20


@dataclass(frozen=True, slots=True)
class LevelFiles:
    """The live data files of one level of all buckets; `size` is in bytes.

    A table without a key has only level 0.
    """

    level: int
    files: int
    rows: int
    size: int


@dataclass(frozen=True, slots=True)
class TableDetails:
    """A table: its newest schema, newest schema changes and snapshots, and files by level.

    `schema_changes` are (schema id, seconds since 1970, description). They and the snapshots are
    newest first, at most 20 of each.
    """

    schema: TableSchema
    schema_changes: tuple[tuple[int, float, str], ...]
    snapshots: tuple[Snapshot, ...]
    levels: tuple[LevelFiles, ...]


_DEAD_LETTERS = ""
_Read = TypeVar("_Read", TableDetails, StoredDeadLetters)


class DetailsReader:
    """Reads tables of the pipeline for the console; thread-safe.

    It reads one table at a time, and caches the last one for 10 seconds. `config` is the path of
    the pipeline's configuration, for the replay command. `ticks` is a monotonic clock in seconds.
    """

    def __init__(
        self,
        settings: PipelineSettings,
        ticks: Callable[[], float] = time.monotonic,
        config: str = "FILE",
    ) -> None:
        self._settings = settings
        self._config = config
        self._ticks = ticks
        self._lock = threading.Lock()
        self._kept: tuple[str, float, TableDetails | StoredDeadLetters] | None = None

    def details(self, name: str) -> TableDetails:
        """Return the details of a table, "database.table".

        Raises IngestdError if the table does not exist or cannot be read.
        """
        return self._read(
            name, lambda catalog: read_details(catalog.get_table(Identifier.parse(name)))
        )

    def dead_letters(self, *, with_bytes: bool) -> StoredDeadLetters:
        """Return the newest dead letters; none if the pipeline has no dead-letter table yet.

        Their keys and values are read if `with_bytes`, and if their files have at most 16 MiB.
        Raises IngestdError if the table cannot be read.
        """
        identifier = Identifier.parse(self._settings.dead_letters)

        def read(catalog: Catalog) -> StoredDeadLetters:
            if not catalog.table_exists(identifier):
                return StoredDeadLetters((), (), 0, 0, with_bytes)
            return read_dead_letters(catalog.get_table(identifier), with_bytes=with_bytes)

        return self._read(_DEAD_LETTERS, read)

    def replay_command(self) -> str:
        """Return the command that replays dead letters, without the options that select them.

        It names the catalog, but neither its credentials nor its other options.
        """
        settings = self._settings
        options = settings.catalog_options
        warehouse = options.get("warehouse", settings.warehouse)
        words = ["ingestd", "dlq", "replay", warehouse, settings.dead_letters,
                 "--config", self._config]  # fmt: skip
        if settings.metastore != "filesystem":
            words += ["--metastore", settings.metastore]
        if "uri" in options:
            words += ["--uri", options["uri"]]
        return shlex.join(words)

    def _read(self, name: str, read: Callable[[Catalog], _Read]) -> _Read:
        with self._lock:
            if self._kept is not None and self._kept[0] == name:
                _, read_at, kept = self._kept
                if self._ticks() - read_at < _KEPT_SECONDS:
                    return cast("_Read", kept)
            result = read(open_catalog(self._settings))
            self._kept = (name, self._ticks(), result)
            return result


def read_details(table: FileStoreTable) -> TableDetails:
    """Read the details of a table. Raises StorageError or FormatError if it cannot be read."""
    newest = latest_snapshot(table.io, table.paths)
    snapshots = []
    if newest is not None:
        oldest = max(newest.id - _MOST_SNAPSHOTS, 0)
        found = (
            find_snapshot(table.io, table.paths, number)
            for number in range(newest.id - 1, oldest, -1)
        )
        snapshots = [newest, *(snapshot for snapshot in found if snapshot is not None)]
    return TableDetails(
        table.schema, _schema_changes(table), tuple(snapshots), _levels(table, newest)
    )


def _schema_changes(table: FileStoreTable) -> tuple[tuple[int, float, str], ...]:
    ids = schema_ids(table.io, table.paths)[-_MOST_SCHEMAS - 1 :]
    schemas = [table.schemas(number) for number in ids]
    return tuple(
        (after.id, after.time_millis / 1000, "; ".join(schema_differences(before, after)))
        for before, after in reversed(list(pairwise(schemas)))
    )


def _levels(table: FileStoreTable, snapshot: Snapshot | None) -> tuple[LevelFiles, ...]:
    totals: dict[int, list[int]] = defaultdict(lambda: [0, 0, 0])
    for entry in live_files(table, snapshot):
        of_level = totals[entry.file.level]
        of_level[0] += 1
        of_level[1] += entry.file.row_count
        of_level[2] += entry.file.file_size
    return tuple(LevelFiles(level, *of_level) for level, of_level in sorted(totals.items()))
