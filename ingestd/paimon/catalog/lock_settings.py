"""The options and the release of locks, which JDBC catalogs and Hive catalogs have in common."""

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from ingestd.errors import StorageError
from ingestd.paimon.io.file_io import is_object_store
from ingestd.paimon.spec.option_types import parse_bool, parse_millis

_LOG = logging.getLogger(__name__)
LOCK_TIMEOUT = "lock-acquire-timeout"
_ENABLED = "lock.enabled"
_SLEEP = "lock-check-max-sleep"
LOCK_OPTIONS = (_ENABLED, LOCK_TIMEOUT, _SLEEP)
_FIRST_SLEEP_MS = 100
_RELEASE_PAUSES = (0.1, 0.5, 2.0)
"""Seconds between attempts to release a lock."""


@dataclass(frozen=True)
class LockSettings:
    """The longest wait for a lock, and the longest pause between two attempts, in milliseconds."""

    acquire_timeout_ms: int
    check_max_sleep_ms: int

    def attempts(self, sleep: Callable[[float], None]) -> Iterator[int]:
        """Yield at each attempt to acquire a lock the milliseconds waited so far; sleep between.

        The pauses double up to the longest one. `sleep` takes seconds.
        """
        waited, pause = 0, _FIRST_SLEEP_MS
        yield waited
        while waited < self.acquire_timeout_ms:
            pause = min(pause, self.check_max_sleep_ms)
            sleep(pause / 1000)
            waited += pause
            pause *= 2
            yield waited


def lock_settings(warehouse: str, options: Mapping[str, str]) -> LockSettings | None:
    """Return the settings of locks, or None if the catalog does not lock.

    By default, a catalog locks if `warehouse` is in an object store. Raises ConfigError for an
    invalid value.
    """
    settings = LockSettings(
        parse_millis(LOCK_TIMEOUT, options.get(LOCK_TIMEOUT, "8 min")),
        parse_millis(_SLEEP, options.get(_SLEEP, "8 s")),
    )
    enabled = options.get(_ENABLED, str(is_object_store(warehouse)).lower())
    return settings if parse_bool(_ENABLED, enabled) else None


def release_lock(release: Callable[[], object], lock: str, sleep: Callable[[float], None]) -> None:
    """Release a lock by calling `release`, which is repeated a few times after a StorageError.

    The last failure is logged, not raised, because the protected work is done and the lock expires.
    `lock` is the name of the lock in the log, `sleep` takes seconds.
    """
    for pause in (*_RELEASE_PAUSES, None):
        try:
            release()
        except StorageError as error:
            if pause is None:
                context = {"lock": lock, "error": str(error)}
                _LOG.warning("lock_not_released", extra={"ctx": context})
            else:
                sleep(pause)
        else:
            return
