"""Plan which snapshots and long-lived changelogs expire, by the retention options of a table.

The oldest snapshots expire, up to an id. Nothing is read or deleted here.

Specification: https://paimon.apache.org/docs/1.4/maintenance/manage-snapshots/#expire-snapshots
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ingestd.errors import ConfigError
from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.spec.option_types import TableOption


@dataclass(frozen=True, slots=True)
class Retention:
    """The snapshots to keep: at least `num_min` and at most `num_max`, between these by age.

    `time_ms` is the age in milliseconds up to which they are kept; `limit` is the maximum number of
    snapshots that expire per call.
    """

    num_min: int
    num_max: int
    time_ms: int
    limit: int


@dataclass(frozen=True, slots=True)
class ExpireSettings:
    """The retention of snapshots and of long-lived changelogs.

    With `has_producer`, changes are read from changelog files instead of the new data files. With
    `consumers_hold_snapshots`, snapshots that a consumer needs do not expire. With
    `clean_empty_directories`, directories that become empty are deleted. `consumer_ms` is the time
    in milliseconds after which a consumer without progress is deleted (None: never).
    """

    snapshots: Retention
    changelogs: Retention
    has_producer: bool
    consumers_hold_snapshots: bool
    clean_empty_directories: bool
    consumer_ms: int | None

    @property
    def is_changelog_decoupled(self) -> bool:
        """Whether changes are retained longer than their snapshots.

        Expired snapshots then become long-lived changelogs.
        """
        return _outlives(self.changelogs, self.snapshots)


def expire_settings(options: Mapping[str, str]) -> ExpireSettings:
    """Return the retention options of a table. Raises ConfigError for an invalid option."""
    limit = honoured.EXPIRE_LIMIT.of(options)
    if limit < 1:
        raise ConfigError(f"option '{honoured.EXPIRE_LIMIT.name}' = {limit}: nothing could expire")
    snapshots = Retention(
        honoured.SNAPSHOT_MIN.of(options),
        honoured.SNAPSHOT_MAX.of(options),
        honoured.SNAPSHOT_TIME.of(options),
        limit,
    )
    changelogs = Retention(
        _or(honoured.CHANGELOG_MIN.of(options), snapshots.num_min),
        _or(honoured.CHANGELOG_MAX.of(options), snapshots.num_max),
        _or(honoured.CHANGELOG_TIME.of(options), snapshots.time_ms),
        limit,
    )
    _check(snapshots, honoured.SNAPSHOT_MIN, honoured.SNAPSHOT_MAX)
    _check(changelogs, honoured.CHANGELOG_MIN, honoured.CHANGELOG_MAX)
    changelog_only = honoured.CONSUMER_CHANGELOG_ONLY.of(options)
    return ExpireSettings(
        snapshots=snapshots,
        changelogs=changelogs,
        has_producer=honoured.CHANGELOG_PRODUCER.of(options) != "none",
        consumers_hold_snapshots=not (changelog_only and _outlives(changelogs, snapshots)),
        clean_empty_directories=honoured.CLEAN_DIRECTORIES.of(options),
        consumer_ms=honoured.CONSUMER_EXPIRATION.of(options),
    )


def _or(value: int | None, default: int) -> int:
    return default if value is None else value


def _check(retention: Retention, least: TableOption[object], most: TableOption[object]) -> None:
    if retention.num_min < 1:
        raise ConfigError(f"option '{least.name}' = {retention.num_min}: the newest has to stay")
    if retention.num_max < retention.num_min:
        raise ConfigError(
            f"option '{most.name}' = {retention.num_max} is less than '{least.name}' = "
            f"{retention.num_min}"
        )


def _outlives(changelogs: Retention, snapshots: Retention) -> bool:
    return (
        changelogs.num_max > snapshots.num_max
        or changelogs.num_min > snapshots.num_min
        or changelogs.time_ms > snapshots.time_ms
    )


TimeOf = Callable[[int], int | None]
"""Returns the commit time of a snapshot in milliseconds of the epoch, None if it does not exist."""


@dataclass(frozen=True, slots=True)
class Window:
    """The ids of existing snapshots or changelogs from which an expiry selects.

    `earliest` and `latest` are the oldest and the newest id. `held_from` is the first id that a
    consumer needs (None: no limit).
    """

    earliest: int
    latest: int
    held_from: int | None = None


def snapshots_end(window: Window, retention: Retention, now_ms: int, time_of: TimeOf) -> int:
    """Return the id of the first snapshot to keep; at most `window.earliest` if nothing expires.

    Snapshots beyond the maximum number expire unless a consumer needs them. Between the minimum and
    the maximum number, a snapshot expires if its successor is older than the retention time: each
    reader that began when the snapshot was the newest has had this time to finish. At most
    `retention.limit` snapshots expire. `time_of` returns the commit time of a snapshot id (None: it
    does not exist); times are in milliseconds of the epoch.
    """
    first, end = _bounds(window, retention)
    for snapshot_id in range(first, end):
        committed = time_of(snapshot_id + 1)
        if committed is not None and now_ms - retention.time_ms <= committed:
            return snapshot_id
    return end


def changelogs_end(
    window: Window, latest_changelog: int, retention: Retention, now_ms: int, time_of: TimeOf
) -> int:
    """Return the id of the first long-lived changelog to keep, at most `latest_changelog`.

    `window.earliest` is the oldest changelog, `window.latest` the newest snapshot: the numbers in
    `retention` count snapshots and changelogs together. `latest_changelog` is the newest changelog,
    which is always kept. `time_of` returns the commit time of a snapshot or changelog id (None: it
    does not exist); times are in milliseconds of the epoch.
    """
    first, end = _bounds(window, retention)
    end = min(end, latest_changelog)
    for snapshot_id in range(first, end + 1):
        committed = time_of(snapshot_id)
        if committed is not None and now_ms - retention.time_ms <= committed:
            return min(snapshot_id, end)
    return end


def _bounds(window: Window, retention: Retention) -> tuple[int, int]:
    """Return the first id to check by age, and the first id that is kept regardless of its age."""
    first = max(window.latest - retention.num_max + 1, window.earliest)
    end = min(window.latest - retention.num_min + 1, window.earliest + retention.limit)
    if window.held_from is not None:
        end = min(end, window.held_from)
    return first, end
