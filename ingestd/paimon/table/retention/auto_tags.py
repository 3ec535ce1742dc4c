"""Tags that a table makes by itself, and the expiry of tags.

Specification: https://paimon.apache.org/docs/1.4/maintenance/manage-tags/

What tags are due is decided in `tag_periods`; here the snapshots are looked through.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.spec.snapshot import Snapshot
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import find_snapshot, snapshot_ids
from ingestd.paimon.table.metadata.time_travel import tag_names, tagged_snapshot
from ingestd.paimon.table.retention.tag_periods import TagPeriods, tag_periods
from ingestd.paimon.table.retention.tags import create_tag, delete_tag, expired_tags


@dataclass(frozen=True, slots=True)
class DueTag:
    """A tag that is to be made."""

    name: str
    snapshot: Snapshot


@dataclass(frozen=True, slots=True)
class AutoTags:
    """Tags that were made, or are due, and those that are more than the table wants to keep."""

    made: tuple[DueTag, ...] = ()
    deleted: tuple[str, ...] = ()


def make_auto_tags(
    table: FileStoreTable, options: Mapping[str, str], now_ms: int, *, dry_run: bool = False
) -> AutoTags:
    """Make the tags that are due; none without the option `tag.automatic-creation`.

    A name that is taken stays where it is. ConfigError and UnsupportedError name an option that
    cannot be followed.
    """
    periods = tag_periods(options)
    if periods is None:
        return AutoTags()
    there = _auto_tags(table, periods)
    due = _due(table, periods, there)
    behind = [(one.snapshot.id, one.name) for one in due]
    surplus = _surplus([*there, *behind], periods.most)
    if dry_run:
        return AutoTags(tuple(due), tuple(surplus))
    for one in due:
        create_tag(table, one.name, one.snapshot, retained_ms=periods.retained_ms, now_ms=now_ms)
    for name in surplus:
        delete_tag(table, name)
    return AutoTags(tuple(due), tuple(surplus))


def tags_to_expire(table: FileStoreTable, options: Mapping[str, str], now_ms: int) -> list[str]:
    """Names of the tags whose time is over; none if `tag.time-expire-enabled` is false."""
    if not honoured.TAG_TIME_EXPIRE.of(options):
        return []
    return expired_tags(table, now_ms)


def _auto_tags(table: FileStoreTable, periods: TagPeriods) -> list[tuple[int, str]]:
    """Snapshots and names of the tags made so, in the order of the snapshots."""
    names = [n for n in tag_names(table.io, table.paths) if periods.begin_of(n) is not None]
    return sorted((tagged_snapshot(table, name).id, name) for name in names)


def _due(table: FileStoreTable, periods: TagPeriods, there: list[tuple[int, str]]) -> list[DueTag]:
    taken = set(tag_names(table.io, table.paths))
    due, last = _start(periods, there)
    found: list[DueTag] = []
    for one in snapshot_ids(table.io, table.paths):
        snapshot = find_snapshot(table.io, table.paths, one) if one > last else None
        time = None if snapshot is None else periods.time_of(snapshot)
        begin = None if time is None else periods.tag_at(time, due)
        if snapshot is None or begin is None:
            continue
        name = begin.strftime(periods.name)
        if name not in taken:
            taken.add(name)
            found.append(DueTag(name, snapshot))
        due = begin + periods.length
    return found


def _start(periods: TagPeriods, there: list[tuple[int, str]]) -> tuple[datetime | None, int]:
    """The period that is due next, and the snapshot that the newest tag is at."""
    if not there:
        return None, 0
    last, name = there[-1]
    begin = periods.begin_of(name)
    return (None if begin is None else begin + periods.length), last


def _surplus(tags: list[tuple[int, str]], most: int | None) -> list[str]:
    """The oldest of the tags, as many as are too many."""
    return [] if most is None else [name for _, name in sorted(tags)[: max(len(tags) - most, 0)]]
