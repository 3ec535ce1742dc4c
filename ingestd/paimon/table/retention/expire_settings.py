"""What the options of a table say about how long its snapshots and changelogs stay.

Specification: https://paimon.apache.org/docs/1.4/maintenance/manage-snapshots/
"""

from collections.abc import Mapping
from dataclasses import dataclass

from ingestd.errors import ConfigError
from ingestd.paimon.spec.option_values import bool_option, int_option, millis_option

_HOUR_MS = 3_600_000
_NO_BOUND = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Retention:
    """How many snapshots stay: at least `num_min`, at most `num_max`, in between by their age.

    `time_ms` is the age up to which they stay; `limit` the most that go at a time.
    """

    num_min: int
    num_max: int
    time_ms: int
    limit: int


@dataclass(frozen=True, slots=True)
class ExpireSettings:
    """Retention of snapshots and of long-lived changelogs, and what else holds snapshots.

    `has_producer`: changes are kept in changelog files, not read from the new data files.
    `consumer_ms`: a consumer that has not moved for so long is forgotten; None: never.
    """

    snapshots: Retention
    changelogs: Retention
    has_producer: bool
    consumers_hold_snapshots: bool
    clean_empty_directories: bool
    consumer_ms: int | None

    @property
    def changelog_decoupled(self) -> bool:
        """Return whether changelogs live longer than their snapshots, in a folder of their own."""
        return _outlives(self.changelogs, self.snapshots)


def expire_settings(options: Mapping[str, str]) -> ExpireSettings:
    """Return the settings in table options; ConfigError names one that cannot be meant."""
    snapshots = _retention(options, "snapshot", Retention(10, _NO_BOUND, _HOUR_MS, 50))
    changelogs = _retention(options, "changelog", snapshots)
    changelog_only = bool_option(options, "consumer.changelog-only", False)
    consumer = "consumer.expiration-time"
    return ExpireSettings(
        snapshots=snapshots,
        changelogs=changelogs,
        has_producer=options.get("changelog-producer", "none").strip().lower() != "none",
        consumers_hold_snapshots=not (changelog_only and _outlives(changelogs, snapshots)),
        clean_empty_directories=bool_option(options, "snapshot.clean-empty-directories", False),
        consumer_ms=millis_option(options, consumer, 0) if consumer in options else None,
    )


def _retention(options: Mapping[str, str], what: str, default: Retention) -> Retention:
    least, most = f"{what}.num-retained.min", f"{what}.num-retained.max"
    found = Retention(
        num_min=int_option(options, least, default.num_min),
        num_max=int_option(options, most, default.num_max),
        time_ms=millis_option(options, f"{what}.time-retained", default.time_ms),
        limit=int_option(options, "snapshot.expire.limit", default.limit),
    )
    if found.num_min < 1:
        raise ConfigError(f"option '{least}' = {found.num_min}: the newest has to stay")
    if found.num_max < found.num_min:
        raise ConfigError(
            f"option '{most}' = {found.num_max} is less than '{least}' = {found.num_min}"
        )
    if found.limit < 1:
        raise ConfigError(f"option 'snapshot.expire.limit' = {found.limit}: nothing could expire")
    return found


def _outlives(changelogs: Retention, snapshots: Retention) -> bool:
    return (
        changelogs.num_max > snapshots.num_max
        or changelogs.num_min > snapshots.num_min
        or changelogs.time_ms > snapshots.time_ms
    )
