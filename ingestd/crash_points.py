"""Crash points: named steps of batches, commits and maintenance at which a test kills a process.

Every step that changes storage ends with a call of `reach`, which does nothing unless a watcher is
set. Storage does not change between the ends of two successive steps, so code that recovers from a
kill at each step recovers from a kill at any time. With the environment variable
`INGESTD_CRASH_AT=<name>:<n>:<file>`, a process creates the file and kills itself when it reaches
the step for the n-th time, unless the file exists: so only one process of a run is killed, even if
the variable is set for several.
"""

import os
import signal
from collections import Counter
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path

VARIABLE = "INGESTD_CRASH_AT"


class CrashPoint(StrEnum):
    """A step at which a test can kill a process.

    The steps are listed roughly in the order in which a batch reaches them, steps of maintenance
    last.
    """

    BATCH_PLANNED = "batch.planned"
    SLOT_RECEIVED = "slot.received"
    FILE_NAMED = "file.named"
    DATA_WRITTEN = "data.written"
    CHANGELOG_WRITTEN = "changelog.written"
    INDEX_WRITTEN = "index.written"
    SLOT_WRITTEN = "slot.written"
    BATCH_COLLECTED = "batch.collected"
    SCHEMA_CHOSEN = "schema.chosen"
    SCHEMA_PUBLISHED = "schema.published"
    CONFLICTS_CHECKED = "conflicts.checked"
    MANIFEST_WRITTEN = "manifest.written"
    DELTA_WRITTEN = "delta.written"
    CHANGELOG_LISTED = "changelog.listed"
    BASE_WRITTEN = "base.written"
    INDEX_MANIFEST_WRITTEN = "index-manifest.written"
    SNAPSHOT_READY = "snapshot.ready"
    PUBLISH_PREPARED = "publish.prepared"
    PUBLISH_LINKED = "publish.linked"
    SNAPSHOT_PUBLISHED = "snapshot.published"
    HINT_WRITTEN = "hint.written"
    DEAD_LETTERS_COMMITTED = "dead-letters.committed"
    TABLES_COMMITTED = "tables.committed"
    CLAIMS_WRITTEN = "claims.written"
    BATCH_DONE = "batch.done"
    VECTORS_WRITTEN = "vectors.written"
    MOVES_WRITTEN = "moves.written"
    COMPACTION_PLANNED = "compaction.planned"
    COMPACTION_WRITTEN = "compaction.written"
    COMPACTION_COMMITTED = "compaction.committed"
    EXPIRY_PLANNED = "expiry.planned"
    EXPIRED_SNAPSHOTS = "expiry.snapshots-gone"
    EXPIRY_HINTED = "expiry.hinted"
    EXPIRED_FILES = "expiry.files-gone"


Watcher = Callable[[CrashPoint], None]


def reach(point: CrashPoint) -> None:
    """Report a completed step to the watcher, if one is set."""
    if _watchers:
        _watchers[-1](point)


def watch(watcher: Watcher | None) -> None:
    """Set the watcher that is called at each step of this process; None removes it."""
    _watchers.clear()
    if watcher is not None:
        _watchers.append(watcher)


def killer(name: str, times: int, mark: Path) -> Watcher:
    """Return a watcher that kills this process when a step is reached for the `times`-th time.

    The watcher first creates the file `mark`; if the file exists already, it does not kill. Raises
    ValueError if `name` is not the name of a step.
    """
    chosen, reached = CrashPoint(name), Counter[CrashPoint]()

    def watcher(point: CrashPoint) -> None:
        reached[point] += 1
        if point is chosen and reached[point] >= times and _is_mine(mark):
            os.kill(os.getpid(), signal.SIGKILL)

    return watcher


def from_environment(environ: Mapping[str, str]) -> Watcher | None:
    """Return the watcher that the variable `INGESTD_CRASH_AT` configures, or None if it is not set.

    Raises ValueError if the value is invalid.
    """
    text = environ.get(VARIABLE)
    if text is None:
        return None
    name, times, mark = text.split(":", 2)
    return killer(name, int(times), Path(mark))


def _is_mine(mark: Path) -> bool:
    """Create the file `mark`; return False if it exists: a process has been killed already."""
    try:
        mark.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


_watchers: list[Watcher] = []
watch(from_environment(os.environ))
