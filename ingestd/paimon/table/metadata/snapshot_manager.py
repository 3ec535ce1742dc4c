"""Find and read the snapshot files of a table, and write their hint files.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/snapshot/#snapshot

Ids are consecutive from 1; the oldest snapshots expire first. The files LATEST and EARLIEST are
hints, by which a listing is avoided; their ids are always verified.
"""

import logging
from collections.abc import Iterable, Iterator

from ingestd.crash_points import CrashPoint, reach
from ingestd.errors import ArgumentError, FormatError, StorageError
from ingestd.paimon.io.file_io import FileIO
from ingestd.paimon.io.probes import has_file
from ingestd.paimon.spec.paths import TablePaths, file_numbers
from ingestd.paimon.spec.snapshot import Snapshot, encode_snapshot, parse_snapshot

_LOG = logging.getLogger(__name__)
_LOOKS = 3


def latest_snapshot_id(io: FileIO, paths: TablePaths) -> int | None:
    """Return the id of the newest snapshot, or None if the table has no snapshots.

    The hint is used only if its snapshot exists and the next one does not. Raises FormatError if
    the hint is newer than the newest snapshot: it is written last and removed first, so a snapshot
    was lost.
    """
    hint = newest = None
    for _ in range(_LOOKS):
        hint = _read_hint(io, paths.latest_hint)
        if hint is not None and is_newest(io, paths, hint):
            return hint
        newest = _newest_listed(io, paths, hint)
        if hint is None or newest is None or hint <= newest:
            return newest
    raise FormatError(
        f"{paths.latest_hint} names snapshot {hint}, but the newest snapshot file is "
        f"{paths.snapshot(newest or 0)}: a snapshot file is lost or the hint is damaged; delete "
        "the hint to continue without the lost snapshot"
    )


def _newest_listed(io: FileIO, paths: TablePaths, hint: int | None) -> int | None:
    """Return the newest snapshot id, by a listing and by probing the ids that follow it.

    A listing may be outdated; `hint` is considered, too. Returns None if no snapshot is found.
    """
    ids = snapshot_ids(io, paths)
    if hint is not None and has_file(io, paths.snapshot(hint)):
        ids.append(hint)
    newest = max(ids, default=None)
    while newest is not None and has_file(io, paths.snapshot(newest + 1)):
        newest += 1
    return newest


def is_newest(io: FileIO, paths: TablePaths, snapshot_id: int) -> bool:
    """Return whether a snapshot exists, and the next one does not."""
    if has_file(io, paths.snapshot(snapshot_id + 1)):
        return False
    return has_file(io, paths.snapshot(snapshot_id))


def earliest_snapshot_id(io: FileIO, paths: TablePaths) -> int | None:
    """Return the id of the oldest existing snapshot, or None if the table has no snapshots.

    If the snapshot of the hint EARLIEST exists, it is the result without a search for older ones.
    """
    hint = _read_hint(io, paths.earliest_hint)
    if hint is not None and has_file(io, paths.snapshot(hint)):
        return hint
    return min(snapshot_ids(io, paths), default=None)


def snapshot_ids(io: FileIO, paths: TablePaths) -> list[int]:
    """Return the ids of all snapshot files, ascending, from a listing."""
    return file_numbers(io.list_names(paths.snapshot_dir), "snapshot-")


def find_snapshot(io: FileIO, paths: TablePaths, snapshot_id: int) -> Snapshot | None:
    """Return a snapshot, or None if its file does not exist.

    Raises FormatError if the file is damaged.
    """
    return _parsed(io, paths.snapshot(snapshot_id), snapshot_id)


def find_changelog(io: FileIO, paths: TablePaths, snapshot_id: int) -> Snapshot | None:
    """Return the long-lived changelog of an expired snapshot, or None if it does not exist.

    Specification: https://paimon.apache.org/docs/1.4/concepts/spec/snapshot/#snapshot

    Files with its changes exist; files with its other rows may have been deleted. Raises
    FormatError if the changelog file is damaged.
    """
    return _parsed(io, paths.changelog(snapshot_id), snapshot_id)


def _parsed(io: FileIO, path: str, snapshot_id: int) -> Snapshot | None:
    try:
        data = io.read_bytes(path)
    except FileNotFoundError:
        return None
    snapshot = parse_snapshot(data, path)
    if snapshot.id != snapshot_id:
        raise FormatError(f"snapshot file {path} contains snapshot {snapshot.id}")
    return snapshot


def read_snapshot(io: FileIO, paths: TablePaths, snapshot_id: int) -> Snapshot:
    """Return the snapshot with this id.

    Raises FormatError if its file is damaged or missing.
    """
    snapshot = find_snapshot(io, paths, snapshot_id)
    if snapshot is not None:
        return snapshot
    raise FormatError(_missing(io, paths, snapshot_id))


def requested_snapshot(io: FileIO, paths: TablePaths, snapshot_id: int) -> Snapshot:
    """Return the snapshot with an id given by a user.

    Raises ArgumentError if the snapshot has expired or does not exist yet, and FormatError if its
    file is damaged, or missing although older and newer snapshots exist.
    """
    snapshot = find_snapshot(io, paths, snapshot_id)
    if snapshot is not None:
        return snapshot
    ids = snapshot_ids(io, paths)
    damaged = bool(ids) and ids[0] < snapshot_id < ids[-1]
    raise (FormatError if damaged else ArgumentError)(_missing(io, paths, snapshot_id))


def _missing(io: FileIO, paths: TablePaths, snapshot_id: int) -> str:
    ids = snapshot_ids(io, paths)
    existing = f"snapshots {ids[0]} to {ids[-1]} exist" if ids else "the table has no snapshots"
    return f"{paths.snapshot(snapshot_id)} does not exist; {existing}"


def latest_snapshot(io: FileIO, paths: TablePaths) -> Snapshot | None:
    """Return the newest snapshot, or None if the table has no snapshots.

    If the snapshot is deleted by a rollback before it is read, the lookup is repeated, so that a
    table with content does not appear empty. Raises StorageError if this fails repeatedly, and
    FormatError if the snapshot is damaged or was lost.
    """
    for _ in range(_LOOKS):
        snapshot = _hinted_snapshot(io, paths)
        if snapshot is not None:
            return snapshot
        snapshot_id = latest_snapshot_id(io, paths)
        if snapshot_id is None:
            return None
        snapshot = find_snapshot(io, paths, snapshot_id)
        if snapshot is not None:
            return snapshot
    raise StorageError(f"{paths.root}: its newest snapshot file cannot be found; try again")


def _hinted_snapshot(io: FileIO, paths: TablePaths) -> Snapshot | None:
    """Return the snapshot of the hint LATEST if it is the newest, with one request less."""
    hint = _read_hint(io, paths.latest_hint)
    if hint is None or has_file(io, paths.snapshot(hint + 1)):
        return None
    return find_snapshot(io, paths, hint)


def snapshots_from_latest(io: FileIO, paths: TablePaths) -> Iterator[Snapshot]:
    """Yield the snapshots from the newest on, in descending order, until one does not exist.

    Raises StorageError or FormatError like `latest_snapshot`.
    """
    snapshot = latest_snapshot(io, paths)
    while snapshot is not None:
        yield snapshot
        snapshot = find_snapshot(io, paths, snapshot.id - 1)


def write_hints(io: FileIO, paths: TablePaths, snapshot_id: int) -> None:
    """Write the id of a new snapshot to the hint LATEST and, if it is 1, to the hint EARLIEST.

    Hints only save requests, so failures are logged and not raised.
    """
    hints = [paths.latest_hint]
    if snapshot_id == 1:
        hints.append(paths.earliest_hint)
    for hint in hints:
        _write_hint(io, hint, snapshot_id)


def mend_earliest_hint(io: FileIO, paths: TablePaths) -> None:
    """Write the hint EARLIEST again if it is missing, or if its snapshot does not exist.

    This is the case if an expiry was killed before it updated the hint. Nothing is written for a
    table without snapshots.
    """
    earliest = earliest_snapshot_id(io, paths)
    if earliest is not None and _read_hint(io, paths.earliest_hint) != earliest:
        _write_hint(io, paths.earliest_hint, earliest)


def put_back_hinted(io: FileIO, paths: TablePaths, snapshots: Iterable[Snapshot]) -> None:
    """Write the snapshot of the hint LATEST again if it is one of `snapshots` and none is left.

    Expiry does this if it has deleted the target of a rollback that ran at the same time.
    """
    if snapshot_ids(io, paths):
        return
    hint = _read_hint(io, paths.latest_hint)
    for snapshot in snapshots:
        if snapshot.id == hint:
            io.try_write_atomic(paths.snapshot(snapshot.id), encode_snapshot(snapshot))


def _write_hint(io: FileIO, hint: str, snapshot_id: int) -> None:
    try:
        io.overwrite(hint, str(snapshot_id).encode())
        reach(CrashPoint.HINT_WRITTEN)
    except (StorageError, FileNotFoundError) as error:
        _LOG.warning("hint_not_written", extra={"ctx": {"path": hint, "error": str(error)}})


def _read_hint(io: FileIO, path: str) -> int | None:
    try:
        text = io.read_bytes(path).strip()
    except FileNotFoundError:
        return None
    return int(text) if text.isdigit() else None
