"""The options of locks, which the JDBC catalog and the Hive catalog have in common."""

from collections.abc import Mapping
from dataclasses import dataclass

from ingestd.paimon.io.file_io import is_object_store
from ingestd.paimon.spec.option_types import parse_bool, parse_millis

LOCK_TIMEOUT = "lock-acquire-timeout"
_ENABLED = "lock.enabled"
_SLEEP = "lock-check-max-sleep"
LOCK_OPTIONS = (_ENABLED, LOCK_TIMEOUT, _SLEEP)


@dataclass(frozen=True)
class LockSettings:
    """Durations in milliseconds: the longest wait for a lock, and between two attempts."""

    acquire_timeout_ms: int
    check_max_sleep_ms: int


def lock_settings(warehouse: str, options: Mapping[str, str]) -> LockSettings | None:
    """Return the settings of locks, or None if the catalog does not lock.

    By default, catalogs lock in object stores. Raises ConfigError for an invalid value.
    """
    settings = LockSettings(
        parse_millis(LOCK_TIMEOUT, options.get(LOCK_TIMEOUT, "8 min")),
        parse_millis(_SLEEP, options.get(_SLEEP, "8 s")),
    )
    enabled = options.get(_ENABLED, str(is_object_store(warehouse)).lower())
    return settings if parse_bool(_ENABLED, enabled) else None
