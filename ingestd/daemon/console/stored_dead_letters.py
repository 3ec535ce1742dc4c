"""The newest dead letters of a pipeline's dead-letter table, read for the console."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

from ingestd.paimon.spec.manifest import ManifestEntry
from ingestd.paimon.table.metadata.file_store_scan import live_files
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot
from ingestd.paimon.table.read.scan_plan import plan_read
from ingestd.paimon.table.read.table_read import TableReader, index_entries

SHOWN = 50
_COUNTED = 10_000
_MOST_BYTES = 16 << 20
_GROUP = ("topic", "stage", "reason")
_NEWEST_FIRST: list[tuple[str, Literal["ascending", "descending"]]] = [
    ("timestamp", "descending"),
    ("offset", "descending"),
]
_LISTED = ("timestamp", "topic", "partition", "offset", "table", "stage", "reason", "message")


@dataclass(frozen=True, slots=True)
class StoredDeadLetters:
    """The newest dead letters of a table, and counts.

    `newest` are at most 50 rows by column name, with the columns `key` and `value` if `has_bytes`.
    `counts` are the numbers of dead letters by (topic, stage, reason), of the newest `counted` of
    all `total`.
    """

    newest: Sequence[dict[str, Any]]
    counts: Sequence[tuple[tuple[str, str, str], int]]
    counted: int
    total: int
    has_bytes: bool


def read_dead_letters(table: FileStoreTable, *, with_bytes: bool) -> StoredDeadLetters:
    """Read the newest dead letters of a table.

    Their keys and values are read if `with_bytes`, and if their files have at most 16 MiB. Raises
    StorageError or FormatError if the table cannot be read.
    """
    snapshot = latest_snapshot(table.io, table.paths)
    if snapshot is None:
        return StoredDeadLetters((), (), 0, 0, with_bytes)
    entries = live_files(table, snapshot)
    index = index_entries(table, snapshot)

    def read(files: Sequence[ManifestEntry], names: Sequence[str]) -> pa.Table:
        reader = TableReader(table, [name for name in names if name in table.schema.field_names])
        units = plan_read(table, files).units
        return pa.concat_tables([reader.empty(), *reader.read_units(units, index)])

    files = list(_newest(entries, SHOWN))
    has_bytes = with_bytes and sum(entry.file.file_size for entry in files) <= _MOST_BYTES
    rows = read(files, (*_LISTED, *(("key", "value") if has_bytes else ())))
    groups = read(list(_newest(entries, _COUNTED)), _GROUP)
    counts = Counter(zip(*(groups.column(name).to_pylist() for name in _GROUP), strict=True))
    return StoredDeadLetters(
        rows.sort_by(_NEWEST_FIRST).slice(0, SHOWN).to_pylist(),
        counts.most_common(),
        groups.num_rows,
        sum(entry.file.row_count for entry in entries),
        has_bytes,
    )


def _newest(entries: Iterable[ManifestEntry], rows: int) -> Iterator[ManifestEntry]:
    """Yield files, newest first, until they have at least this number of rows together."""
    for entry in reversed(list(entries)):
        if rows <= 0:
            return
        rows -= entry.file.row_count
        yield entry
