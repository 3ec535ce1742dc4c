"""Tables for tests of metadata: true manifests and snapshots that name imagined data files."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ingestd.paimon.io.file_io import FileIO, LocalFileIO, MemoryFileIO
from ingestd.paimon.spec.binary_row import EMPTY_ROW, serialize_row
from ingestd.paimon.spec.data_file import DataFileMeta, SimpleStats
from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.index_manifest import HASH_INDEX, IndexManifestEntry
from ingestd.paimon.spec.manifest import FileKind
from ingestd.paimon.spec.paths import TablePaths
from ingestd.paimon.spec.schema import new_schema
from ingestd.paimon.spec.snapshot import Snapshot
from ingestd.paimon.table.commit.table_commit import CommitResult, commit
from ingestd.paimon.table.files.data_files import live_path
from ingestd.paimon.table.metadata.file_store_scan import live_files
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.index_paths import index_path
from ingestd.paimon.table.metadata.schema_manager import publish_schema
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot
from ingestd.paimon.table.metadata.table_state import TableState, load_state
from ingestd.paimon.table.write.commit_message import CommitMessage, ManifestCommittable

NOW_MS = 1_700_000_000_000
INT = parse_type("INT")
QUICK = {"commit.min-retry-wait": "1 ms", "commit.max-retry-wait": "2 ms"}


def key_row(key: int) -> bytes:
    return serialize_row([INT], [key])


def metadata_table(
    io: FileIO | None = None,
    *,
    path: str = "/warehouse/db.db/t",
    partition_keys: Sequence[str] = (),
    primary_keys: Sequence[str] = ("k",),
    options: Mapping[str, str] | None = None,
) -> FileStoreTable:
    """A new table with an INT key `k`, a STRING `v` and an INT `p` (the partition, if any)."""
    columns = [("k", INT), ("v", parse_type("STRING")), ("p", INT)]
    keys = [*partition_keys, *primary_keys] if primary_keys else []
    schema = new_schema(
        columns, keys, partition_keys, {"bucket": "2", **QUICK, **(options or {})}, NOW_MS
    )
    table = FileStoreTable(path, schema, io if io is not None else MemoryFileIO(), "db.t")
    assert publish_schema(table.io, TablePaths(path), schema)
    return table


def data_file(name: str, *, rows: int = 1, level: int = 0, keys: tuple[int, int] = (1, 2),
              sequence: int = 0) -> DataFileMeta:  # fmt: skip
    low, high = key_row(keys[0]), key_row(keys[1])
    return DataFileMeta(
        file_name=name,
        file_size=100,
        row_count=rows,
        min_key=low,
        max_key=high,
        key_stats=SimpleStats(low, high, (0,)),
        value_stats=SimpleStats(EMPTY_ROW, EMPTY_ROW, ()),
        min_sequence_number=sequence,
        max_sequence_number=sequence,
        schema_id=0,
        level=level,
        creation_time_ms=NOW_MS,
        delete_row_count=0,
        file_source=0,
        value_stats_cols=(),
    )


def hash_file(name: str, *, bucket: int = 0, partition: bytes = EMPTY_ROW) -> IndexManifestEntry:
    return IndexManifestEntry(FileKind.ADD, partition, bucket, HASH_INDEX, name, 8, 2)


def message(
    *names: str,
    bucket: int = 0,
    partition: bytes = EMPTY_ROW,
    total_buckets: int = 2,
    index: Sequence[IndexManifestEntry] = (),
    sequence: int = 0,
) -> CommitMessage:
    """A message that appends files of one row each."""
    files = tuple(data_file(name, sequence=sequence) for name in names)
    return CommitMessage(
        partition, bucket, total_buckets, new_files=files, new_index_files=tuple(index)
    )


def commit_imagined(
    table: FileStoreTable, user: str, committable: ManifestCommittable, **how: Any
) -> CommitResult:
    """Commit files that need not be there: those that are not come into being, empty."""
    io: Any = table.io
    while hasattr(io, "inner"):  # what a test lets happen to files is not about these
        io = io.inner
    imagining = committable.messages if isinstance(io, MemoryFileIO | LocalFileIO) else ()
    for message in imagining:
        files = (*message.new_files, *message.changelog_files)
        files = (*files, *message.compact_after, *message.compact_changelog)
        place = (table, message.partition, message.bucket)
        paths = [live_path(*place, file) for file in files]
        paths += [index_path(table, entry) for entry in message.new_index_files]
        for path in paths:
            if not io.exists(path):
                io.write_new(path, b"")
    return commit(table, user, committable, **how)


def append(table: FileStoreTable, user: str, identifier: int, *messages: CommitMessage,
           state: TableState | None = None) -> CommitResult:  # fmt: skip
    """Commit messages on a state, by default a fresh one."""
    committable = ManifestCommittable(identifier, messages)
    known = load_state(table) if state is None else state
    return commit_imagined(table, user, committable, state=known, now_ms=NOW_MS)


def newest(table: FileStoreTable) -> Snapshot:
    snapshot = latest_snapshot(table.io, table.paths)
    assert snapshot is not None
    return snapshot


def live_names(table: FileStoreTable) -> list[str]:
    """Names of the live files of the newest snapshot, sorted."""
    snapshot = latest_snapshot(table.io, table.paths)
    return sorted(entry.file.file_name for entry in live_files(table, snapshot))


def with_io(table: FileStoreTable, io: FileIO) -> FileStoreTable:
    return replace(table, io=io)
