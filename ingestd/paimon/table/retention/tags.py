"""Tags: named snapshots, which remain readable after they have expired.

Specification: https://paimon.apache.org/docs/1.4/maintenance/manage-tags/#create-tags

A tag is a copy of a snapshot file. A tag that expires also contains its creation time and its
retention time.
"""

import json
from collections.abc import Iterable
from datetime import datetime

from ingestd.errors import ConfigError
from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.spec.snapshot import Snapshot, encode_snapshot
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import find_snapshot
from ingestd.paimon.table.metadata.time_travel import (
    tag_names,
    tag_path,
    tag_success_path,
    tagged_snapshot,
)
from ingestd.paimon.table.retention.referenced_files import (
    UsedFiles,
    all_branches,
    delete_unless_kept,
    files_of,
    referring_snapshots,
)
from ingestd.paimon.table.retention.success_file import SuccessFile, read_success_file

_FORBIDDEN = frozenset("/\\:")


def create_tag(
    table: FileStoreTable,
    name: str,
    snapshot: Snapshot,
    *,
    retained_ms: int | None = None,
    now_ms: int,
    must_exist: bool = False,
) -> None:
    """Tag a snapshot; with `must_exist`, move an existing tag to the snapshot.

    With `retained_ms` (None: the tag does not expire), the tag contains its creation time `now_ms`,
    in local time as in Java, and its retention time; both are in milliseconds. Raises ConfigError
    if the name is invalid or in use, or with `must_exist`, ArgumentError if the tag does not exist.
    """
    check_name("tag", name)
    if tag_path(table.paths, name) == tag_success_path(table.paths, "").rpartition("/")[0]:
        raise ConfigError(f"tag name '{name}' is that of the directory of success files")
    data = _encode_tag(snapshot, retained_ms, now_ms)
    path = tag_path(table.paths, name)
    if must_exist:
        tagged_snapshot(table, name)
        table.io.overwrite(path, data)
    elif not table.io.try_write_atomic(path, data):
        raise ConfigError(f"table {table.name} has a tag '{name}' already; delete or replace it")
    elif honoured.TAG_SUCCESS_FILE.of(table.schema.options):
        _write_success_file(table, name, now_ms)


def delete_tag(table: FileStoreTable, name: str) -> list[str]:
    """Delete a tag and, if its snapshot has expired, the files that only the tag needed.

    Returns the paths of these files. Raises ArgumentError, with the existing tags, if the tag does
    not exist; FormatError if a snapshot, tag or branch is damaged.
    """
    snapshot = tagged_snapshot(table, name)
    others = None
    if find_snapshot(table.io, table.paths, snapshot.id) is None:
        others = referring_snapshots(table, but_tag=name)
    table.io.delete_quietly(tag_path(table.paths, name))
    if honoured.TAG_SUCCESS_FILE.of(table.schema.options):
        table.io.delete_quietly(tag_success_path(table.paths, name))
    if others is None or any(other.id == snapshot.id for _, other in others):
        return []
    in_changelogs = UsedFiles()
    for branch in all_branches(table):
        in_changelogs.add_changelogs(branch)
    files = files_of(table, snapshot)
    unneeded = [path for path in files if path.rpartition("/")[2] not in in_changelogs.names]
    return delete_unless_kept(table, unneeded, others)


def expired_tags(table: FileStoreTable, now_ms: int) -> list[str]:
    """Return the names of the tags whose retention time was over at `now_ms` (ms of the epoch)."""
    return [name for name in tag_names(table.io, table.paths) if _is_over(table, name, now_ms)]


def check_name(what: str, name: str) -> None:
    """Raise ConfigError if a name is invalid for a tag, branch or consumer.

    `what` is the kind of object, for the message.
    """
    bad = any(char in _FORBIDDEN or char < " " for char in name)
    if not name.strip() or name.startswith(".") or bad:
        raise ConfigError(f"{what} name '{name}' is blank, or no name of a file")


def _write_success_file(table: FileStoreTable, name: str, now_ms: int) -> None:
    path = tag_success_path(table.paths, name)
    known = read_success_file(table.io, path)
    SuccessFile(path, known.created_ms if known else now_ms, now_ms).write(table.io)


def _encode_tag(snapshot: Snapshot, retained_ms: int | None, now_ms: int) -> bytes:
    data = encode_snapshot(snapshot)
    if retained_ms is None:
        return data
    created = datetime.fromtimestamp(now_ms / 1000).astimezone()
    moment = [*created.timetuple()[:6], created.microsecond * 1000]
    document = {
        **json.loads(data),
        "tagCreateTime": moment,
        "tagTimeRetained": retained_ms / 1000,
    }
    return json.dumps(document, indent=2, ensure_ascii=False).encode()


def _is_over(table: FileStoreTable, name: str, now_ms: int) -> bool:
    document = json.loads(table.io.read_bytes(tag_path(table.paths, name)))
    created, retained = document.get("tagCreateTime"), document.get("tagTimeRetained")
    if created is None or retained is None:
        return False
    return _local_ms(created) + float(retained) * 1000 < now_ms


def _local_ms(parts: Iterable[int]) -> float:
    """Return the milliseconds since 1970 of a local time, given as numbers from year to nanosecond.

    Java omits the nanoseconds, or the seconds and nanoseconds, if they are zero.
    """
    year, month, day, hour, minute, second, nanos = [*parts, 0, 0][:7]
    moment = datetime(year, month, day, hour, minute, second, nanos // 1000).astimezone()
    return moment.timestamp() * 1000
