"""Tags: named snapshots, which remain readable after they have expired.

Specification: https://paimon.apache.org/docs/1.4/maintenance/manage-tags/#create-tags

A tag is a copy of a snapshot file. A tag that expires also contains its creation time and its
retention time.
"""

import contextlib
import json
import logging
from collections.abc import Iterable
from datetime import datetime

from ingestd.errors import ArgumentError, ConfigError, FormatError
from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.spec.snapshot import Snapshot, encode_snapshot, parse_snapshot
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import find_snapshot
from ingestd.paimon.table.metadata.time_travel import (
    tag_bytes,
    tag_names,
    tag_path,
    tag_success_path,
    tagged_snapshot,
)
from ingestd.paimon.table.retention.referenced_files import (
    UsedFiles,
    all_branches,
    files_of,
    files_of_new_references,
    is_kept,
    reference_marks,
    referring_snapshots,
    unneeded_files,
)
from ingestd.paimon.table.retention.success_file import SuccessFile, read_success_file

_LOG = logging.getLogger(__name__)
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

    With `retained_ms` (None: the tag does not expire), the tag stores this retention time and its
    creation time, which as in Java is a local time. `now_ms` is the creation time in milliseconds
    of the epoch, `retained_ms` is in milliseconds, too. Raises ConfigError if the name is invalid
    or in use, or if the snapshot has expired meanwhile. With `must_exist`, raises ArgumentError if
    the tag does not exist, FormatError if its file is damaged.
    """
    check_name("tag", name)
    if tag_path(table.paths, name) == tag_success_path(table.paths, "").rpartition("/")[0]:
        raise ConfigError(f"tag name '{name}' is that of the directory of success files")
    data = _encode_tag(snapshot, retained_ms, now_ms)
    path = tag_path(table.paths, name)
    before = tag_bytes(table.io, table.paths, name) if must_exist else None
    if before is not None:
        parse_snapshot(before, path)
        table.io.overwrite(path, data)
    elif not table.io.try_write_atomic(path, data):
        raise ConfigError(f"table {table.name} has a tag '{name}' already; delete or replace it")
    # An expiry deletes the snapshot before it looks for new tags.
    if not is_kept(table, snapshot, but_tag=name):
        if before is None:
            table.io.delete_quietly(path)
        else:
            table.io.overwrite(path, before)
        raise ConfigError(f"table {table.name}: snapshot {snapshot.id} has expired meanwhile")
    if before is None and honoured.TAG_SUCCESS_FILE.of(table.schema.options):
        _write_success_file(table, name, now_ms)


def delete_tags(table: FileStoreTable, *names: str) -> list[str]:
    """Delete tags and, if their snapshots have expired, the files that only these tags needed.

    Returns the paths of these files. Before the first deletion, raises ArgumentError, with the
    existing tags, if a tag does not exist, and FormatError if the file of a tag, or another
    snapshot or branch, is damaged.
    """
    if not names:
        return []
    known = reference_marks(all_branches(table))
    files = plan_tag_deletion(table, *names)
    for name in names:
        table.io.delete_quietly(tag_path(table.paths, name))
        if honoured.TAG_SUCCESS_FILE.of(table.schema.options):
            table.io.delete_quietly(tag_success_path(table.paths, name))
    if files:
        # Branches, tags and snapshots that were created from the tags meanwhile keep their files.
        kept = files_of_new_references(all_branches(table), known)
        files = [path for path in files if path not in kept]
    for path in files:
        table.io.delete_quietly(path)
    return files


def plan_tag_deletion(table: FileStoreTable, *names: str) -> list[str]:
    """Return the paths of the files that `delete_tags` would delete, sorted.

    Files of a tag whose manifests are missing or damaged are unknown; they become orphan files.
    Raises ArgumentError, with the existing tags, if a tag does not exist; FormatError if the file
    of a tag, or another snapshot or branch, is damaged.
    """
    tagged = {snapshot.id: snapshot for snapshot in (tagged_snapshot(table, n) for n in names)}
    expired = [s for s in tagged.values() if find_snapshot(table.io, table.paths, s.id) is None]
    if not expired:
        return []
    others = referring_snapshots(table, but_tags=names)
    kept_ids = {other.id for _, other in others}
    paths = {
        path
        for snapshot in expired
        if snapshot.id not in kept_ids
        for path in _known_files(table, snapshot)
    }
    in_changelogs = UsedFiles()
    for branch in all_branches(table):
        in_changelogs.add_changelogs(branch)
    unneeded = [path for path in paths if path.rpartition("/")[2] not in in_changelogs.names]
    return unneeded_files(table, unneeded, others)


def _known_files(table: FileStoreTable, snapshot: Snapshot) -> set[str]:
    try:
        return files_of(table, snapshot)
    except FormatError as error:
        context = {"table": table.name, "snapshot": snapshot.id, "error": error.message}
        _LOG.warning("tagged_files_unknown", extra={"ctx": context})
        return set()


def expired_tags(table: FileStoreTable, now_ms: int) -> list[str]:
    """Return the names of the tags whose retention time was over at `now_ms` (ms of the epoch).

    Tags without a retention time are not among them. Raises FormatError if the file of a tag is
    damaged.
    """
    expired = []
    for name in tag_names(table.io, table.paths):
        with contextlib.suppress(ArgumentError):  # another process has deleted the tag
            data = tag_bytes(table.io, table.paths, name)
            parse_snapshot(data, tag_path(table.paths, name))
            if _is_over(data, now_ms):
                expired.append(name)
    return expired


def check_name(what: str, name: str) -> None:
    """Raise ConfigError if a name is invalid for a tag, branch or consumer.

    `what` is the kind of object, for the message.
    """
    bad = any(char in _FORBIDDEN or char < " " for char in name)
    if not name.strip() or name.startswith(".") or bad:
        raise ConfigError(
            f"{what} name '{name}' is blank, begins with a dot, or contains a slash, a backslash, "
            "a colon or a control character: choose another"
        )


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


def _is_over(tag: bytes, now_ms: int) -> bool:
    document = json.loads(tag)
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
