"""Scan options of a table, which select the snapshot or changes that readers get by default.

Writers and maintenance always use the newest snapshot.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from ingestd.errors import ConfigError, UnsupportedError
from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.spec.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind, Snapshot
from ingestd.paimon.spec.table_options import UNREAD_SCANS
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import (
    earliest_snapshot_id,
    latest_snapshot,
    read_snapshot,
    requested_snapshot,
    snapshot_ids,
    snapshots_from_latest,
)
from ingestd.paimon.table.metadata.time_travel import (
    snapshot_as_of,
    tag_names,
    tagged_snapshot,
)

MODE = honoured.SCAN_MODE.name
SNAPSHOT_ID = honoured.SCAN_SNAPSHOT.name
TIMESTAMP = honoured.SCAN_TIMESTAMP.name
BETWEEN = honoured.INCREMENTAL.name
_SNAPSHOTS = (
    honoured.SCAN_SNAPSHOT, honoured.SCAN_TAG, honoured.SCAN_WATERMARK, honoured.SCAN_VERSION
)  # fmt: skip
_TIMES = (honoured.SCAN_TIMESTAMP, honoured.SCAN_TIME)
_CHOICES = (*_SNAPSHOTS, *_TIMES, honoured.INCREMENTAL)
_WATERMARK_VERSION = "watermark-"

_MODES: Mapping[str, frozenset[str]] = {
    "latest-full": frozenset(),
    "full": frozenset(),
    "latest": frozenset(),
    "compacted-full": frozenset(),
    "from-timestamp": frozenset(option.name for option in _TIMES),
    "from-snapshot": frozenset(option.name for option in _SNAPSHOTS),
    "from-snapshot-full": frozenset({SNAPSHOT_ID}),
    "incremental": frozenset({BETWEEN}),
}
"""The scan modes of a batch read, each with options of which exactly one must be set.

For a mode without options, no option of `_CHOICES` may be set.
"""
_BY_OPTION = {
    **{option.name: "from-snapshot" for option in _SNAPSHOTS},
    **{option.name: "from-timestamp" for option in _TIMES},
    BETWEEN: "incremental",
}


@dataclass(frozen=True, slots=True)
class ScanTarget:
    """The rows that a reader gets: all rows of a snapshot, or the rows added between two snapshots.

    If `between` is not None, it has the ids of the snapshot before the first change and of the last
    change, and the rows are the result of `iter_added_rows`. Otherwise they are the rows of
    `snapshot` (None: no rows). With `is_time_travel`, the columns are taken from the snapshot's
    schema. `of_branch` returns the target of the same request for another branch of the table
    (None: by the scan options of that branch).
    """

    snapshot: Snapshot | None = None
    between: tuple[int, int] | None = None
    is_time_travel: bool = False
    of_branch: "Callable[[FileStoreTable], ScanTarget] | None" = field(
        default=None, repr=False, compare=False
    )

    def at(self, table: FileStoreTable) -> FileStoreTable:
        """Return the table with the columns that readers of the target get.

        Without time travel, these are the columns of `table`.
        """
        if not self.is_time_travel or self.snapshot is None:
            return table
        return table.at_schema(self.snapshot.schema_id)


def scan_target(table: FileStoreTable) -> ScanTarget:
    """Return the scan target that the options of a table select for batch readers.

    Raises ConfigError for options that contradict each other, and for an unknown snapshot, tag or
    range; FormatError for a damaged snapshot file; UnsupportedError, naming the option, for an
    option that is not implemented.
    """
    options = table.schema.options
    mode = _mode(table)
    if mode in ("from-snapshot", "from-snapshot-full", "from-timestamp"):
        return ScanTarget(_point(table), is_time_travel=True)
    if mode == "incremental":
        _refuse_fallback(table)
        return ScanTarget(latest_snapshot(table.io, table.paths), _between(table))
    if mode == "compacted-full":
        return ScanTarget(_newest_compacted(table, _picks(options)))
    return ScanTarget(latest_snapshot(table.io, table.paths))


def requested_target(
    table: FileStoreTable, *, snapshot: int | None, tag: str | None, as_of_millis: int | None
) -> ScanTarget:
    """Return the scan target of a snapshot, tag or time, by default the result of `scan_target`.

    At most one of the three arguments is not None. `as_of_millis` is in milliseconds of the epoch.
    Raises ArgumentError for an unknown tag or snapshot, and for a time before the first snapshot;
    and the errors of `scan_target`.
    """
    if snapshot is not None:
        chosen = requested_snapshot(table.io, table.paths, snapshot)
        return ScanTarget(chosen, None, True, lambda branch: _at_snapshot(branch, chosen))
    if tag is not None:
        tagged = tagged_snapshot(table, tag)
        return ScanTarget(tagged, None, True, lambda branch: _at_time(branch, tagged.time_millis))
    if as_of_millis is not None:
        chosen = snapshot_as_of(table, as_of_millis)
        return ScanTarget(chosen, None, True, lambda branch: _at_time(branch, as_of_millis))
    return scan_target(table)


def _at_snapshot(branch: FileStoreTable, other: Snapshot) -> ScanTarget:
    """Return the target on a branch for a snapshot of another branch: that of its time.

    As in Java, a branch without a snapshot of that time is read from its snapshot 1.
    """
    target = _at_time(branch, other.time_millis)
    if target.snapshot is not None:
        return target
    return ScanTarget(requested_snapshot(branch.io, branch.paths, 1), is_time_travel=True)


def _at_time(branch: FileStoreTable, millis: int) -> ScanTarget:
    """Return the target on a branch for a time in milliseconds of the epoch.

    It has no snapshot if all snapshots of the branch are later.
    """
    oldest = earliest_snapshot_id(branch.io, branch.paths)
    if oldest is None or read_snapshot(branch.io, branch.paths, oldest).time_millis > millis:
        return ScanTarget(is_time_travel=True)
    return ScanTarget(snapshot_as_of(branch, millis), is_time_travel=True)


def _mode(table: FileStoreTable) -> str:
    options = table.schema.options
    for option in UNREAD_SCANS:
        if option.given(options):
            raise _unsupported(table, option.name)
    given = [option.name for option in _CHOICES if option.given(options)]
    mode = honoured.SCAN_MODE.of(options)
    if mode == "default":
        mode = _BY_OPTION[given[0]] if given else "latest-full"
    if mode not in _MODES:
        raise _unsupported(table, MODE)
    needed = _MODES[mode]
    if len(given) != bool(needed) or not needed.issuperset(given):
        names = ", ".join(sorted(needed))
        rule = f"requires exactly one of {names}" if needed else "excludes these options"
        raise ConfigError(
            f"table {table.name} has the options {', '.join(given) or 'none'}, but '{MODE}' = "
            f"'{mode}' {rule}; change the options, or choose the rows in the command"
        )
    return mode


def _unsupported(table: FileStoreTable, name: str) -> UnsupportedError:
    return UnsupportedError(
        f"table {table.name}: option '{name}' = '{table.schema.options.get(name)}' is not "
        "supported for reading; remove it, or say what to read (a snapshot, a tag, a time)"
    )


def _point(table: FileStoreTable) -> Snapshot:
    options = table.schema.options
    snapshot_id, tag = honoured.SCAN_SNAPSHOT.of(options), honoured.SCAN_TAG.of(options)
    if snapshot_id is not None:
        return requested_snapshot(table.io, table.paths, snapshot_id)
    if tag is not None:
        return tagged_snapshot(table, tag)
    watermark, version = honoured.SCAN_WATERMARK.of(options), honoured.SCAN_VERSION.of(options)
    if watermark is not None:
        return _reached(table, watermark)
    if version is not None:
        return _version(table, version)
    millis = honoured.SCAN_TIMESTAMP.of(options)
    return snapshot_as_of(table, _local_millis(options) if millis is None else millis)


def _local_millis(options: Mapping[str, str]) -> int:
    """Return the milliseconds of the epoch of the option `scan.timestamp`."""
    text = honoured.SCAN_TIME.of(options) or ""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise ConfigError(
            f"option '{honoured.SCAN_TIME.name}' = '{text}' is no time; write it like "
            "'2026-01-31 12:00:00'"
        ) from error
    return int(moment.timestamp() * 1000)


def _reached(table: FileStoreTable, watermark: int) -> Snapshot:
    """Return the first snapshot whose watermark is at least `watermark`."""
    for snapshot_id in snapshot_ids(table.io, table.paths):
        snapshot = read_snapshot(table.io, table.paths, snapshot_id)
        if snapshot.watermark is not None and snapshot.watermark >= watermark:
            return snapshot
    raise ConfigError(f"table {table.name} has no snapshot with a watermark of {watermark} or more")


def _version(table: FileStoreTable, version: str) -> Snapshot:
    """Return the snapshot of the option `scan.version`; a tag precedes what else it may name."""
    if version in tag_names(table.io, table.paths):
        return tagged_snapshot(table, version)
    watermark = version.removeprefix(_WATERMARK_VERSION)
    if watermark != version and watermark.isascii() and watermark.isdigit():
        return _reached(table, int(watermark))
    if version.isascii() and version.isdigit():
        return requested_snapshot(table.io, table.paths, int(version))
    return tagged_snapshot(table, version)


def _between(table: FileStoreTable) -> tuple[int, int]:
    options = table.schema.options
    parts = options[BETWEEN].split(",")
    producer = table.options.changelog_producer
    files = "delta" if producer == "none" else "changelog"
    if honoured.INCREMENTAL_MODE.of(options) not in ("auto", files):
        raise _unsupported(table, honoured.INCREMENTAL_MODE.name)
    if set(parts) <= set(tag_names(table.io, table.paths)):
        raise _unsupported(table, BETWEEN)
    earliest = earliest_snapshot_id(table.io, table.paths) or 1
    newest = latest_snapshot(table.io, table.paths)
    last = newest.id if newest else 0
    numbers = [int(digits) for digits in parts if digits.isascii() and digits.isdigit()]
    if len(numbers) != 2 or not earliest - 1 <= numbers[0] <= numbers[1] <= last:
        raise ConfigError(
            f"table {table.name}: option '{BETWEEN}' = '{options[BETWEEN]}' must be two snapshot "
            f"ids in order, from {earliest - 1} to {last}"
        )
    return numbers[0], numbers[1]


def _refuse_fallback(table: FileStoreTable) -> None:
    name = honoured.SCAN_FALLBACK.given(table.schema.options)
    if name is not None:
        raise ConfigError(
            f"table {table.name}: options '{BETWEEN}' and '{name}' exclude each other; remove one"
        )


def _picks(options: Mapping[str, str]) -> Callable[[Snapshot], bool]:
    """Return a function that tests whether a COMPACT snapshot may be read as `compacted-full`.

    If the options schedule full compactions, only snapshots of full compactions may be read.
    """
    scheduled = honoured.CHANGELOG_PRODUCER.of(options) == "full-compaction"
    given = honoured.DELTA_COMMITS.of(options)
    if not scheduled and given is None:
        return lambda snapshot: True
    commits = 1 if given is None else given
    return lambda snapshot: (
        snapshot.commit_identifier == BATCH_COMMIT_IDENTIFIER
        or snapshot.commit_identifier % commits == 0
    )


def _newest_compacted(table: FileStoreTable, picks: Callable[[Snapshot], bool]) -> Snapshot | None:
    """Return the newest COMPACT snapshot that `picks` accepts, or else the newest snapshot.

    Returns None for a table without snapshots.
    """
    for snapshot in snapshots_from_latest(table.io, table.paths):
        if snapshot.commit_kind == CommitKind.COMPACT and picks(snapshot):
            return snapshot
    return latest_snapshot(table.io, table.paths)
