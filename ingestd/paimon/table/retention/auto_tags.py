"""Create automatic tags, and find tags whose retention time is over.

Specification: https://paimon.apache.org/docs/1.4/maintenance/manage-tags/#automatic-creation

A tag stands for a period, such as a day. The first snapshot after the end of the period is tagged.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from ingestd.errors import ConfigError, UnsupportedError
from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.spec.option_types import TableOption
from ingestd.paimon.spec.snapshot import Snapshot
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import (
    find_snapshot,
    latest_snapshot,
    snapshot_ids,
)
from ingestd.paimon.table.metadata.time_travel import tag_names, tagged_snapshots
from ingestd.paimon.table.retention.tags import create_tag, delete_tags, expired_tags

MODE = honoured.TAG_CREATION.name
_DAILY = {
    "with_dashes": "%Y-%m-%d",
    "without_dashes": "%Y%m%d",
    "without_dashes_and_spaces": "%Y%m%d",
}
_HOURLY = {
    "with_dashes": "%Y-%m-%d %H",
    "without_dashes": "%Y%m%d %H",
    "without_dashes_and_spaces": "%Y%m%d%H",
}
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  (tags name times without a zone)
_NO_WATERMARK = -(2**63)


@dataclass(frozen=True, slots=True)
class TagPeriod:
    """The length of the periods of automatic tags, and the strftime format of the tag names.

    If `is_daily`, a time that follows the date in the name of an existing tag is ignored, because
    Java may write such names.
    """

    length: timedelta
    name: str
    is_daily: bool = False


_PERIODS: Mapping[str, Callable[[str], TagPeriod]] = {
    "daily": lambda formatter: TagPeriod(timedelta(days=1), _DAILY[formatter], is_daily=True),
    "hourly": lambda formatter: TagPeriod(timedelta(hours=1), _HOURLY[formatter]),
    "two-hours": lambda _: TagPeriod(timedelta(hours=2), _HOURLY["with_dashes"]),
}


@dataclass(frozen=True, slots=True)
class TagPeriods:
    """The automatic tag options of a table; `period` has the length and the names of the periods.

    Times are commit times or, with `by_watermark`, watermarks, in the time zone `zone` (None: the
    zone of this machine). Tags after the first are created when `delay` has passed after their
    period. `most` is the maximum number of tags (None: no limit), `retained_ms` their retention
    time in milliseconds (None: no expiry). With `completed`, a period without a snapshot also gets
    a tag, as soon as the next snapshot exists.
    """

    period: TagPeriod
    by_watermark: bool
    zone: tzinfo | None
    delay: timedelta
    most: int | None
    retained_ms: int | None
    completed: bool

    def begin_of(self, tag: str) -> datetime | None:
        """Return the start of the period of a tag, or None if the name has another format.

        The result has no time zone.
        """
        text, form = tag.partition(" ")[0] if self.period.is_daily else tag, self.period.name
        try:
            begin = datetime.strptime(text, form)  # noqa: DTZ007  (without a zone)
        except ValueError:
            return None
        return begin if begin.strftime(form) == text else None

    def time_of(self, snapshot: Snapshot) -> datetime | None:
        """Return the time of a snapshot, or with `by_watermark` its watermark, in `zone`.

        The result has no time zone. Returns None if the watermark is missing.
        """
        millis = snapshot.watermark if self.by_watermark else snapshot.time_millis
        if millis is None or millis == _NO_WATERMARK:
            return None
        return datetime.fromtimestamp(millis / 1000, self.zone).replace(tzinfo=None)

    def tag_at(self, time: datetime, due: datetime | None) -> datetime | None:
        """Return the start of the period to tag when a snapshot has this time; None if none is due.

        `due` is the start of the period after that of the newest tag (None: no tag exists). Until
        this period is over and `delay` has passed, nothing is due. The period to tag is the last
        one that is over, or with `completed` the period `due` if a tag exists.
        """
        length = self.period.length
        if due is not None and time - self.delay < due + length:
            return None
        if due is not None and self.completed:
            return due
        return _EPOCH + ((time - _EPOCH) // length - 1) * length


def tag_periods(options: Mapping[str, str]) -> TagPeriods | None:
    """Return the automatic tag options of a table, or None if it creates no automatic tags.

    Raises ConfigError or UnsupportedError for an option that is invalid or not supported.
    """
    mode = honoured.TAG_CREATION.of(options)
    if mode == "none":
        return None
    if mode not in ("process-time", "watermark"):
        raise UnsupportedError(
            f"option '{MODE}' = '{mode}' is not supported; supported: none, process-time, watermark"
        )
    _refuse_callbacks(options)
    period = _period(options)
    delay = timedelta(milliseconds=honoured.TAG_DELAY.of(options))
    if delay >= period.length:
        name = honoured.TAG_DELAY.name
        raise ConfigError(f"option '{name}' = '{options[name]}' is not less than a period")
    by_watermark = mode == "watermark"
    return TagPeriods(
        period=period,
        by_watermark=by_watermark,
        zone=_zone(options, honoured.WATERMARK_ZONE if by_watermark else honoured.PROCESS_ZONE),
        delay=delay,
        most=honoured.TAG_MAX.of(options),
        retained_ms=honoured.TAG_TIME.of(options),
        completed=honoured.TAG_COMPLETION.of(options),
    )


def _refuse_callbacks(options: Mapping[str, str]) -> None:
    if honoured.TAG_CALLBACKS.of(options).strip():
        raise UnsupportedError(
            "option 'tag.callbacks' is not supported: ingestd does not run Java code"
        )


def _period(options: Mapping[str, str]) -> TagPeriod:
    duration = honoured.TAG_DURATION.of(options)
    if duration is not None:
        name = honoured.TAG_DURATION.name
        if not duration:
            raise ConfigError(f"option '{name}' = '{options[name]}': no period")
        return TagPeriod(timedelta(milliseconds=duration), "%Y%m%d%H%M")
    name, formatter = honoured.TAG_PERIOD.of(options), honoured.TAG_FORMATTER.of(options)
    if formatter not in _DAILY:
        raise UnsupportedError(
            f"option '{honoured.TAG_FORMATTER.name}' = '{formatter}' is not supported"
        )
    new_period = _PERIODS.get(name)
    if new_period is None:
        raise UnsupportedError(f"option '{honoured.TAG_PERIOD.name}' = '{name}' is not supported")
    return new_period(formatter)


def _zone(options: Mapping[str, str], option: TableOption[str | None]) -> tzinfo | None:
    name = option.of(options)
    try:
        return None if name is None else ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise UnsupportedError(
            f"option '{option.name}' = '{name}' is not supported; give a zone such as Europe/Berlin"
        ) from error


@dataclass(frozen=True, slots=True)
class AutoTag:
    """An automatic tag that exists or is due, and the snapshot that it keeps."""

    name: str
    snapshot: Snapshot


@dataclass(frozen=True, slots=True)
class AutoTags:
    """The tags that were created and deleted, or in a dry run, the tags to create and to delete.

    `deleted` are the oldest automatic tags beyond the maximum number.
    """

    created: tuple[AutoTag, ...] = ()
    deleted: tuple[str, ...] = ()


def make_auto_tags(
    table: FileStoreTable, options: Mapping[str, str], now_ms: int, *, dry_run: bool = False
) -> AutoTags:
    """Create the automatic tags that are due, and delete the oldest beyond the maximum number.

    Does nothing without the option `tag.automatic-creation`. An existing tag is not moved. With
    `dry_run`, nothing is changed. `now_ms` is the creation time of the tags, in milliseconds of the
    epoch. Raises ConfigError or UnsupportedError for an option that is invalid or not supported,
    FormatError if a snapshot, tag or branch is damaged.
    """
    periods = tag_periods(options)
    if periods is None:
        return AutoTags()
    existing = _auto_tags(table, periods)
    due = _due(table, periods, existing)
    surplus = _surplus([*existing, *due], periods.most)
    if dry_run:
        return AutoTags(tuple(due), tuple(surplus))
    for tag in due:
        create_tag(table, tag.name, tag.snapshot, retained_ms=periods.retained_ms, now_ms=now_ms)
    delete_tags(table, *surplus)
    return AutoTags(tuple(due), tuple(surplus))


def tags_to_expire(table: FileStoreTable, options: Mapping[str, str], now_ms: int) -> list[str]:
    """Return the names of the tags whose retention time is over at `now_ms` (ms of the epoch).

    Tags without a retention time never expire. Returns [] if the option `tag.time-expire-enabled`
    is false.
    """
    if not honoured.TAG_TIME_EXPIRE.of(options):
        return []
    return expired_tags(table, now_ms)


def _auto_tags(table: FileStoreTable, periods: TagPeriods) -> list[AutoTag]:
    """Return the automatic tags of a table, sorted by snapshot id and name."""
    tags = (AutoTag(name, snapshot) for name, snapshot in tagged_snapshots(table).items())
    return sorted((tag for tag in tags if periods.begin_of(tag.name) is not None), key=_age)


def _age(tag: AutoTag) -> tuple[int, str]:
    return tag.snapshot.id, tag.name


def _due(table: FileStoreTable, periods: TagPeriods, existing: Sequence[AutoTag]) -> list[AutoTag]:
    taken = set(tag_names(table.io, table.paths))
    newest = existing[-1] if existing else None
    last = 0 if newest is None else newest.snapshot.id
    begin = None if newest is None else periods.begin_of(newest.name)
    due = None if begin is None else begin + periods.period.length
    due_tags: list[AutoTag] = []
    if due is not None and not _may_be_due(table, periods, due):
        return due_tags
    for snapshot_id in snapshot_ids(table.io, table.paths):
        snapshot = find_snapshot(table.io, table.paths, snapshot_id) if snapshot_id > last else None
        time = None if snapshot is None else periods.time_of(snapshot)
        begin = None if time is None else periods.tag_at(time, due)
        if snapshot is None or begin is None:
            continue
        name = begin.strftime(periods.period.name)
        if name not in taken:
            taken.add(name)
            due_tags.append(AutoTag(name, snapshot))
        due = begin + periods.period.length
    return due_tags


def _may_be_due(table: FileStoreTable, periods: TagPeriods, due: datetime) -> bool:
    """Return whether a tag may be due by the newest snapshot, whose time is the latest of all."""
    snapshot = latest_snapshot(table.io, table.paths)
    time = None if snapshot is None else periods.time_of(snapshot)
    return time is not None and periods.tag_at(time, due) is not None


def _surplus(tags: Iterable[AutoTag], most: int | None) -> list[str]:
    """Return the names of the oldest tags beyond the maximum number `most` (None: no limit)."""
    if most is None:
        return []
    oldest_first = sorted(tags, key=_age)
    return [tag.name for tag in oldest_first[: max(len(oldest_first) - most, 0)]]
