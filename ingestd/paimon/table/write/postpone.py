"""Write rows to the postponed bucket (`bucket` = -2).

Its rows are neither ordered nor merged; a later compaction moves them to buckets (see
`postpone_move`). Until then, only streaming readers read them.

Specification: https://paimon.apache.org/docs/1.4/primary-key-table/data-distribution/#postpone-bucket
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from ingestd.errors import UnsupportedError
from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.spec.data_types import DataField
from ingestd.paimon.spec.file_options import data_file_styles, refuse_style
from ingestd.paimon.spec.manifest import FileKind, ManifestEntry
from ingestd.paimon.spec.paths import POSTPONE_BUCKET
from ingestd.paimon.spec.snapshot import Snapshot
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable

WRITER = 0
"""The writer number in file names.

Compaction jobs read the files of one writer in order, but files of several writers in no particular
order. All rows of a key must therefore have the same writer number, however many tasks write.
"""


def postponed_table(table: FileStoreTable, commit_user: str) -> FileStoreTable:
    """Return a handle of the table with the options by which rows are written to bucket -2.

    The files are Avro files without statistics, or if Avro does not support the type of a column,
    files as in the other buckets. Their names contain the commit user.
    """
    prefix = f"{table.options.data_file_prefix}-u-{commit_user}-s-{WRITER}-w-"
    options = {**table.schema.options, honoured.DATA_FILE_PREFIX.name: prefix}
    plain = {
        **options,
        honoured.FILE_FORMAT.name: "avro",
        honoured.STATS_MODE.name: "none",
    }
    avro = table.with_schema(replace(table.schema, options=plain))
    if _can_hold(avro, table.schema.fields):
        return avro
    return table.with_schema(replace(table.schema, options=options))


def in_commit_order(
    entries: tuple[ManifestEntry, ...], previous: Snapshot | None, now_ms: int
) -> tuple[ManifestEntry, ...]:
    """Return the entries of a commit; those of new postponed files get increasing creation times.

    Compaction jobs read postponed files in the order of their creation times. A clock that was set
    back, or the clock of another machine, must not put newer rows before older ones, so the times
    are after the snapshot `previous` (None: the commit is the first). `now_ms` is the time of the
    commit in milliseconds since the epoch.
    """
    first = max(now_ms, previous.time_millis + 1 if previous else 0)
    files: Counter[bytes] = Counter()

    def timed(entry: ManifestEntry) -> ManifestEntry:
        if not _is_new(entry):
            return entry
        files[entry.partition] += 1
        created_ms = first + files[entry.partition] - 1
        return replace(entry, file=replace(entry.file, creation_time_ms=created_ms))

    return tuple(map(timed, entries))


def snapshot_time(entries: Iterable[ManifestEntry], previous: Snapshot | None, now_ms: int) -> int:
    """Return the time of the snapshot with these entries, in milliseconds since the epoch.

    Readers find snapshots by time with a binary search, so it is not before `previous`, and the
    postponed files of the next commit are newer, so it is not before those of this one. `now_ms` is
    the time of the commit.
    """
    times = [entry.file.creation_time_ms or 0 for entry in entries if _is_new(entry)]
    return max(now_ms, previous.time_millis if previous else 0, *times)


def _is_new(entry: ManifestEntry) -> bool:
    """Return whether an entry adds a file of a postponed bucket."""
    return entry.bucket == POSTPONE_BUCKET and entry.kind == FileKind.ADD


def _can_hold(table: FileStoreTable, fields: tuple[DataField, ...]) -> bool:
    try:
        refuse_style(data_file_styles(table.schema)[None], fields)
    except UnsupportedError:
        return False
    return True
